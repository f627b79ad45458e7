"""Make tables, pages and figures from finished runs.

main_report.py RUN [RUN ...] [--figure FILE.svg]   training runs side by side
main_report.py evaluation RUN                      recompute every number from the responses; exit
                                                   code 1 when one differs from results.json
main_report.py compare RUN_A RUN_B [--common]      B minus A, paired problem by problem
main_report.py html DIR [DIR ...] -o page.html     one HTML page of runs, also of one in progress,
                                                   and of campaigns
main_report.py campaign DIR [DIR ...] -o FILE.md   tables, intervals and claims of whole campaigns
main_report.py keep DIR -o DIR2                    save what that page needs, a small file per run
main_report.py same RUN_A RUN_B                    whether two training runs sampled the same; exit
                                                   code 1 when not
main_report.py samples RUN [--step N] [--why W]    responses that training kept to read, newest last

Ends with exit code 2 and one line on stderr when a folder cannot be read. docs/evaluation.md says
what the numbers mean.
"""

from __future__ import annotations

import argparse
import io
import itertools
import re
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recipe.hint.samples import REASONS
from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import DataError
from recipe.run.rows import accuracies
from recipe.run.whole_file import write_whole
from recipe.study.campaign_page import results_page
from recipe.study.campaign_results import keep_results, read_results_of, runs_of
from recipe.study.estimators import wilson_interval
from recipe.study.results import compare_runs, evaluation_table, recompute
from recipe.study.runs import VLLM_DIFFERENCE, Run, compare_records, num_problems, read_run
from recipe.study.tables import markdown, printable

_COLOURS = ("#6b6b6b", "#1b6ca8", "#d9822b", "#5b8c5a", "#8e5ea2", "#c0504d")
_WINDOW = 8  # steps that the share of prompts with signal is averaged over
_CHARS = 160  # of a text of a sample
_VERDICTS = 3  # shown of a sample


@errors_in_one_line(hears_sigterm=True)
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names; without one, the training table."""
    argv = [*sys.argv[1:]] if argv is None else [*argv]
    commands = {
        "runs": _runs, "evaluation": _evaluation, "compare": _compare, "html": _html, "same": _same,
        "samples": _samples, "campaign": _campaign, "keep": _keep,
    }  # fmt: skip
    command = argv.pop(0) if argv[:1] and argv[0] in commands else "runs"
    prog = f"{Path(sys.argv[0]).name} {command}".removesuffix(" runs")
    as_is = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog=prog, description=__doc__, formatter_class=as_is)
    return commands[command](parser, argv) or 0


def _runs(parser: Parser, argv: Sequence[str]) -> None:
    """Print the table; draw the figure when asked."""
    parser.add_argument("runs", nargs="+", help="folders of runs")
    parser.add_argument("--source", default="tiny/hard", help="data source of the accuracy")
    parser.add_argument("--figure", type=Path, help="an SVG file to write")
    given = parser.parse_args(argv)
    runs = [read_run(folder) for folder in given.runs]
    _tell_apart(runs, given.runs)
    print("\n".join(training_table(runs, given.source)))
    if given.figure:
        draw_learning(runs, given.source, given.figure)


def _evaluation(parser: Parser, argv: Sequence[str]) -> int:
    """Recompute, print the table and what differs."""
    parser.add_argument("run", type=Path, help="folder of a run with trainer.eval_only=true")
    folder = parser.parse_args(argv).run / "evaluation"
    results, differences = recompute(folder)
    print("\n".join(evaluation_table(results)))
    if differences:
        print(f"\n{folder / 'results.json'} differs from the samples in {len(differences)} places:")
        print("\n".join(f"  {line}" for line in differences))
        return 1
    print(f"\nequal: every number of {folder / 'results.json'} follows from the samples")
    return 0


def _compare(parser: Parser, argv: Sequence[str]) -> None:
    """Print the paired table."""
    parser.add_argument("runs", nargs=2, type=Path, metavar="RUN", help="A, then B")
    parser.add_argument("--common", action="store_true", help="only problems that both have")
    given = parser.parse_args(argv)
    print("\n".join(compare_runs(*given.runs, should_intersect=given.common)))


def _same(parser: Parser, argv: Sequence[str]) -> int:
    """Print how many prompts have equal rounds, and each run's difference to vLLM."""
    parser.add_argument("runs", nargs=2, type=Path, metavar="RUN")
    folders = parser.parse_args(argv).runs
    same = compare_records(*folders)
    print(
        f"{same.num_equal} of {same.num_prompts} prompts have equal levels, tokens and verdicts, "
        f"in the {same.num_steps} steps that both have of {same.of_steps}"
    )
    if same.first_step is not None:
        print(f"the first that differs is of step {same.first_step}")
    for folder in folders:
        rows = [row for row in read_run(folder).rows if VLLM_DIFFERENCE in row]
        if rows:
            mean = sum(row[VLLM_DIFFERENCE] for row in rows) / len(rows)
            most = max(row[VLLM_DIFFERENCE.replace("_mean", "_max")] for row in rows)
            told = f"trainer and vLLM differ by {mean:.1e} in the mean, {most:.1e} at most"
            print(f"{folder}: {told}")
    return int(same.num_equal < same.num_prompts)


def _samples(parser: Parser, argv: Sequence[str]) -> None:
    """Print odd and random prompts with their responses and verdicts."""
    parser.add_argument("run", type=Path, help="folder of a training run")
    parser.add_argument("--step", type=int, help="only of this step")
    parser.add_argument("--why", choices=REASONS, help="only those kept for this reason")
    parser.add_argument("--limit", type=int, default=20, help="the newest N (default: 20)")
    given = parser.parse_args(argv)
    reasons: Counter[str] = Counter()
    newest: deque[dict[str, Any]] = deque(maxlen=max(1, given.limit))
    for row in read_run(given.run).samples():
        if given.step is None or row["step"] == given.step:
            reasons.update(row["why"])
            if given.why is None or given.why in row["why"]:
                newest.append(row)
    for line in itertools.chain.from_iterable(map(_sample, newest)):
        print(printable(line))  # text is the model's: escaped, it cannot act on the terminal
    counts = ", ".join(f"{name} {count}" for name, count in reasons.most_common())
    print(f"{len(newest)} samples shown; by reason there are: {counts or 'none'}")


def _html(parser: Parser, argv: Sequence[str]) -> None:
    """Write the page of some runs."""
    parser.add_argument("runs", nargs="+", help="folders of training runs or campaigns")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the HTML file")
    parser.add_argument("--prompts", type=int, default=200, help="of a run (default: 200)")
    given = parser.parse_args(argv)
    from recipe.study.page import render_page

    runs, folders = [], []
    for folder in given.runs:
        found = [*runs_of(folder)]
        runs += found
        folders += [folder if len(found) == 1 else f"{folder}/{run.name}" for run in found]
    if not runs:
        raise DataError(f"{', '.join(given.runs)}: no run yet; make them with main_campaign.py")
    _tell_apart(runs, folders)
    page = render_page(runs, max(0, given.prompts))
    write_whole(given.output, page)
    print(f"{given.output}: {len(page.encode()) / 1e6:.1f} MB, {len(runs)} runs")


def _campaign(parser: Parser, argv: Sequence[str]) -> None:
    """Write the page of some campaigns' results."""
    parser.add_argument("folders", nargs="+", help="folders that main_campaign.py or keep filled")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the Markdown file")
    parser.add_argument("--figure", type=Path, help="an SVG file: learning curves")
    parser.add_argument("--source", default="tiny/hard", help="data source of the figure")
    parser.add_argument("--arm", action="append", default=[], help="in the figure; repeatable")
    given = parser.parse_args(argv)
    results = [read_results_of(folder) for folder in given.folders]
    write_whole(given.output, results_page(results))
    if given.figure:
        runs = [run for result in results for run in result.runs]
        arms = given.arm or dict.fromkeys(run.variant for run in runs)
        ordered = [run for arm in arms for run in runs if run.variant == arm]
        draw_learning(ordered, given.source, given.figure)
    missing = sum(len(each.missing) for each in results)
    print(f"{given.output}: {len(results)} campaigns, {missing} runs missing")


def _keep(parser: Parser, argv: Sequence[str]) -> None:
    """Keep what a page needs of a campaign's finished runs."""
    parser.add_argument("folder", help="a folder that main_campaign.py filled")
    parser.add_argument("-o", "--output", type=Path, required=True, help="another folder")
    given = parser.parse_args(argv)
    print(f"{given.output}: {keep_results(given.folder, given.output)} runs")


def _tell_apart(runs: Sequence[Run], folders: Sequence[str]) -> None:
    """Name runs of one name by their folders as they were given."""
    names = [run.name for run in runs]
    for run, folder in zip(runs, folders, strict=True):
        if names.count(run.name) > 1:
            run.name = folder


def training_table(runs: Sequence[Run], source: str) -> list[str]:
    """Return a line per run: the last validation, tokens sampled and minutes of all steps.

    The interval counts the problems of the validation files, not responses: those to one problem
    are not independent.
    """
    _check_source(runs, source)
    rows = []
    for run in runs:
        share, interval, minutes = "-", "-", run.minutes()
        if curve := run.curve(source):
            last = curve[max(curve)]
            share = f"{100 * last:.1f} %"
            if count := num_problems(run, source):
                low, high = wilson_interval(last, count)
                interval = f"{100 * low:.1f} - {100 * high:.1f}"
        cells = [str(len(run.training)), share, interval, f"{run.tokens() / 1000:.0f}k"]
        rows.append([run.name, run.method, *cells, "-" if minutes is None else f"{minutes:.1f}"])
    return markdown(["run", "method", "steps", "accuracy", "95 %", "tokens", "minutes"], rows)


def _check_source(runs: Sequence[Run], source: str) -> None:
    """Refuse a data source that no run validated on."""
    known = sorted({name for run in runs for row in run.rows for name in accuracies(row)})
    if known and source not in known:
        raise DataError(f"no run validated on {source!r}; give --source {' or '.join(known)}")


def _sample(row: dict[str, Any]) -> Iterator[str]:
    yield f"step {row['step']}  {row['problem_id']}  why: {', '.join(row['why'])}"
    yield f"  problem: {_short(row['problem'])}"
    yield f"  gold: {_short(row['answer'])}"
    for each in row["rounds"]:
        if each["level"]:
            leaks = " (holds the answer)" if each["leaks"] else ""
            yield f"  hint {each['level']} {each['hint_status']}{leaks}: {_short(each['hint'])}"
    for each in row["responses"][:_VERDICTS]:
        count, reason = len(each["rows"]), each["reason"].replace("_", " ")
        trains = "trains" if each["trains"] else "does not train"
        ignored = f", ignored: {_short(each['ignored'])}" if each["ignored"] else ""
        yield (
            f"  level {each['level']}, {count} x {reason}, by {each['basis']}, reward "
            f"{each['reward']}, {trains}{ignored}"
        )
        yield f"    extracted: {_short(each['extracted'])}"
        if "response" in each:  # its end has the answer
            yield f"    response: {_short(each['response'][::-1])[::-1]}"
    yield ""


def _short(text: str) -> str:
    """Return one line of a text's beginning."""
    line = " ".join(text.split())
    return f"{line[:_CHARS]} ..." if len(line) > _CHARS else line


def draw_learning(runs: Sequence[Run], source: str, path: Path) -> None:
    """Draw accuracy without hints, and prompts with signal, over the steps into an SVG file.

    Thin lines are runs, thick ones the mean of an arm (of a method, outside a campaign) over the
    steps that all its runs have. The same runs give the same file.

    Raises:
        DataError: If no run validated on the source.
    """
    _check_source(runs, source)
    import matplotlib as mpl

    # An arm of another campaign may have the same name, and never met these problems.
    runs = [run for run in runs if run.curve(source)] or list(runs)
    mpl.use("svg")
    # Nothing random, and text as text instead of the outlines of its letters.
    mpl.rcParams.update({"svg.hashsalt": "hint", "svg.fonttype": "none"})
    mpl.rcParams["font.sans-serif"] = ["DejaVu Sans"]
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.0, 3.4))
    _panel(left, [(run.variant, run.curve(source)) for run in runs])
    left.set(xlabel="step", ylabel="accuracy without hints", ylim=(-0.02, 1.0), title=source)
    left.legend(frameon=False, loc="upper left")
    _panel(right, [(run.variant, _signal(run)) for run in runs])
    right.set(xlabel="step", ylabel="share of prompts with signal", ylim=(0, 1.0))
    for axes in (left, right):
        axes.locator_params(nbins=5)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    svg = io.StringIO()
    figure.savefig(svg, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    pyplot.close(figure)
    # A path on a line of its own, in hundredths of a point: a third of the size.
    text = re.sub(r' d="[^"]*"', lambda found: " " + " ".join(found[0].split()), svg.getvalue())
    write_whole(path, re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", text))


def _panel(axes: Any, lines: Sequence[tuple[str, dict[int, float]]]) -> None:
    by_arm = defaultdict(list)
    for arm, points in lines:
        by_arm[arm].append(points)
    colour = dict(zip(sorted(by_arm), itertools.cycle(_COLOURS), strict=False))
    for arm, points in lines:
        axes.plot([*points], [*points.values()], color=colour[arm], alpha=0.35, linewidth=1)
    for arm, group in sorted(by_arm.items()):
        means = pd.DataFrame(group).T.dropna().sort_index().mean(axis=1)
        axes.plot(means.index, means, color=colour[arm], linewidth=2.2, label=arm)


def _signal(run: Run) -> dict[int, float]:
    """Return step -> share of prompts with signal, as a moving mean of ``_WINDOW`` steps."""
    name = "hint/zero_signal_after"
    shares = pd.Series({row["step"]: 1 - row[name] for row in run.rows if name in row}, dtype=float)
    return dict(zip(shares.index, shares.rolling(_WINDOW, min_periods=1).mean(), strict=True))

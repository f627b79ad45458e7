"""Make tables, pages and figures from finished runs.

evaluation RUN              recompute every number from the responses; exit code 1 when one differs
compare RUN_A RUN_B         B minus A, paired problem by problem
html DIR ... -o page.html   one HTML page of runs, also of one in progress, and of campaigns
campaign DIR ... -o FILE.md tables, intervals and claims of whole campaigns
keep DIR -o DIR2            save what that page needs, a small file per run
same RUN_A RUN_B            whether two training runs sampled the same; exit code 1 when not
samples RUN                 responses that training kept to read, newest last

Ends with exit code 2 and one line on stderr when a folder cannot be read. docs/evaluation.md says
what the numbers mean.
"""

from __future__ import annotations

import argparse
import io
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from recipe.hint.samples import REASONS
from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import DataError
from recipe.run.whole_file import write_whole
from recipe.study.campaign_results import keep_results, read_results_of, results_page, runs_of
from recipe.study.results import compare_runs, evaluation_table, recompute
from recipe.study.runs import VLLM_DIFFERENCE, Run, compare_records, read_run
from recipe.study.tables import printable

_COLOURS = ("#6b6b6b", "#1b6ca8", "#d9822b", "#5b8c5a", "#8e5ea2", "#c0504d")
_WINDOW = 8  # steps that the share of informative groups is averaged over


@errors_in_one_line()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first argument names."""
    as_is = argparse.RawDescriptionHelpFormatter
    parser = Parser(description=__doc__, formatter_class=as_is)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(run: Callable[[argparse.Namespace], int | None]) -> argparse.ArgumentParser:
        added = commands.add_parser(run.__name__.strip("_"), description=run.__doc__)
        added.set_defaults(run=run)
        return added

    command(_evaluation).add_argument("run_folder", type=Path, metavar="RUN")
    for run in (compare := command(_compare), command(_same)):
        run.add_argument("runs", nargs=2, type=Path, metavar="RUN", help="A, then B")
    compare.add_argument("--common", action="store_true", help="only problems that both have")
    for run in (html := command(_html), campaign := command(_campaign), keep := command(_keep)):
        many = 1 if run is keep else "+"
        run.add_argument("folders", nargs=many, metavar="DIR", help="folders of runs or campaigns")
        run.add_argument("-o", "--output", type=Path, required=True, help="what is written")
    html.add_argument("--prompts", type=int, default=200, help="of a page (default: 200)")
    campaign.add_argument("--figure", type=Path, help="an SVG file: learning curves")
    campaign.add_argument("--source", default="tiny/hard", help="data source of the figure")
    campaign.add_argument("--arm", action="append", default=[], help="in the figure; repeatable")
    samples = command(_samples)
    samples.add_argument("run_folder", type=Path, metavar="RUN")
    samples.add_argument("--step", type=int, help="only of this step")
    samples.add_argument("--why", choices=REASONS, help="only those kept for this reason")
    samples.add_argument("--limit", type=int, default=20, help="the newest N (default: 20)")
    given = parser.parse_args(argv)
    return given.run(given) or 0


def _evaluation(given: argparse.Namespace) -> int:
    """Recompute every number of an evaluation, print the table and what differs."""
    folder = given.run_folder / "evaluation"
    results, differences = recompute(folder)
    print("\n".join(evaluation_table(results)))
    if differences:
        print(f"\n{folder / 'results.json'} differs from the samples in {len(differences)} places:")
        print("\n".join(f"  {line}" for line in differences))
        return 1
    print(f"\nequal: every number of {folder / 'results.json'} follows from the samples")
    return 0


def _compare(given: argparse.Namespace) -> None:
    """Compare two evaluations, paired problem by problem."""
    print("\n".join(compare_runs(*given.runs, should_intersect=given.common)))


def _same(given: argparse.Namespace) -> int:
    """Say how many prompts have equal rounds, and each run's difference to vLLM."""
    same = compare_records(*given.runs)
    print(
        f"{same.num_equal} of {same.num_prompts} prompts of the steps that both have have equal "
        f"levels, tokens and verdicts"
    )
    if same.first_step is not None:
        print(f"the first that differs is of step {same.first_step}")
    for folder in given.runs:
        gaps = [row[VLLM_DIFFERENCE] for row in read_run(folder).rows if VLLM_DIFFERENCE in row]
        if gaps:
            print(f"{folder}: trainer and vLLM differ by {sum(gaps) / len(gaps):.1e} in the mean")
    return int(same.num_equal < same.num_prompts)


def _samples(given: argparse.Namespace) -> None:
    """Print odd and random prompts with their responses and verdicts."""
    newest: deque[dict[str, Any]] = deque(maxlen=max(1, given.limit))
    for row in read_run(given.run_folder).samples():
        if given.step in (None, row["step"]) and (not given.why or given.why in row["why"]):
            newest.append(row)
    for row in newest:
        text = yaml.safe_dump(row, sort_keys=False, allow_unicode=True, width=100)
        for line in text.splitlines():
            print(printable(line))  # text is the model's: escaped, it cannot act on the terminal
        print()
    print(f"{len(newest)} samples shown")


def _html(given: argparse.Namespace) -> None:
    """Write the page of some runs."""
    from recipe.study.page import render_page

    runs = [run for folder in given.folders for run in runs_of(folder)]
    if not runs:
        raise DataError(f"{', '.join(given.folders)}: no run yet; make them with main_campaign.py")
    names = [run.name for run in runs]
    for run in runs:
        if names.count(run.name) > 1:
            run.name = str(run.folder)
    page = render_page(runs, max(0, given.prompts))
    write_whole(given.output, page)
    print(f"{given.output}: {len(page.encode()) / 1e6:.1f} MB, {len(runs)} runs")


def _campaign(given: argparse.Namespace) -> None:
    """Write the page of some campaigns' results."""
    results = [read_results_of(folder) for folder in given.folders]
    write_whole(given.output, results_page(results))
    if given.figure:
        runs = [run for result in results for run in result.runs]
        arms = given.arm or dict.fromkeys(run.variant for run in runs)
        draw_learning([run for run in runs if run.variant in arms], given.source, given.figure)
    missing = sum(len(each.missing) for each in results)
    print(f"{given.output}: {len(results)} campaigns, {missing} runs missing")


def _keep(given: argparse.Namespace) -> None:
    """Keep what a page needs of a campaign's finished runs."""
    print(f"{given.output}: {keep_results(given.folders[0], given.output)} runs")


def draw_learning(runs: Sequence[Run], source: str, path: Path) -> None:
    """Draw accuracy without hints, and informative groups, over the steps into an SVG file.

    Thin lines are runs, thick ones the mean of an arm over the steps that all its runs have. The
    same runs give the same file.

    Raises:
        DataError: If no run validated on the source.
    """
    runs = [run for run in runs if run.curve(source)]
    if not runs:
        raise DataError(f"no run validated on {source!r}; give another --source")
    import matplotlib as mpl

    mpl.use("svg")
    # Nothing random, and text as text instead of the outlines of its letters.
    mpl.rcParams.update({"svg.hashsalt": "hint", "svg.fonttype": "none"})
    mpl.rcParams["font.sans-serif"] = ["DejaVu Sans"]
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.0, 3.4))
    for number, arm in enumerate(sorted({run.variant for run in runs})):
        group, colour = [run for run in runs if run.variant == arm], _COLOURS[number % 6]
        accuracy = [run.curve(source) for run in group]
        for axes, curves, window in ((left, accuracy, 1), (right, map(_signal, group), _WINDOW)):
            lines: Any = pd.DataFrame(curves).T.sort_index().rolling(window, 1).mean()
            axes.plot(lines, color=colour, alpha=0.35, linewidth=1)
            axes.plot(lines.dropna().mean(axis=1), color=colour, linewidth=2.2, label=arm)
    left.set(xlabel="step", ylabel="accuracy without hints", ylim=(-0.02, 1.0), title=source)
    left.legend(frameon=False, loc="upper left")
    right.set(xlabel="step", ylabel="share of informative groups", ylim=(0, 1.0))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    svg = io.StringIO()
    figure.savefig(svg, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    pyplot.close(figure)
    write_whole(path, svg.getvalue())


def _signal(run: Run) -> dict[int, float]:
    name = "hint/zero_signal_after"
    return {row["step"]: 1 - row[name] for row in run.rows if name in row}

"""Make tables and figures from finished runs.

main_report.py RUN [RUN ...] [--figure FILE.svg]   training runs side by side
main_report.py evaluation RUN                      recompute every number from the responses; exit
                                                   code 1 when one differs from results.json
main_report.py compare RUN_A RUN_B [--common]      B minus A, paired problem by problem
main_report.py html DIR [DIR ...] -o page.html     one HTML page of runs, also of one in progress,
                                                   and of campaigns
main_report.py campaign DIR [DIR ...] -o FILE.md   tables, intervals and claims of whole campaigns
main_report.py keep DIR -o DIR2                    save what that page needs, a small file per run
main_report.py same RUN_A RUN_B                     whether two training runs sampled the same; exit
                                                   code 1 when not
main_report.py samples RUN [--step N] [--why W]    responses that training kept to read, newest last

Ends with exit code 2 and one line on stderr when a folder cannot be read. docs/evaluation.md says
what the numbers mean.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from recipe.hint.command.compose import CONFIG_DIR, primary_config, set_config_paths
from recipe.hint.samples import REASONS
from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import ConfigError, DataError
from recipe.run.streams import is_output_lost
from recipe.run.whole_file import write_whole
from recipe.study.compare import compare_runs
from recipe.study.report.campaign import CampaignResult
from recipe.study.report.campaign_folder import keep_results, read_results_of, read_runs
from recipe.study.report.campaign_page import results_page
from recipe.study.report.runs import RunResult, accuracy_curve, read_run
from recipe.study.report.samples import sample_lines
from recipe.study.report.training import draw_learning, training_table
from recipe.study.results import evaluation_table, recompute
from recipe.study.runs import VLLM_DIFFERENCE, compare_records
from recipe.study.runs import read_run as read_any_run
from recipe.study.work import work_right

_MORE = {"work": work_right}  # measures of the embedded worlds


@errors_in_one_line(hears_sigterm=True)
def main(argv: list[str] | None = None) -> int:
    """Run the command that the first argument names; without one, the training table."""
    argv = sys.argv[1:] if argv is None else argv
    commands = {"evaluation": _evaluation, "compare": _compare, "html": _html}
    commands |= {"same": _same, "samples": _samples, "campaign": _campaign, "keep": _keep}
    command = commands.get(argv[0] if argv else "")
    if argv and not command and not Path(argv[0]).exists():
        _suggest(argv[0], list(commands))
    code = command(argv[1:]) if command else _training(argv)
    return 2 if is_output_lost() else code


def _suggest(word: str, commands: list[str]) -> None:
    """Refuse what is neither a folder nor a command but nearly one.

    Raises:
        ConfigError: Naming the command.
    """
    if near := difflib.get_close_matches(word, commands, 1):
        raise ConfigError(f"{word} is neither a folder nor a command; did you mean {near[0]}?")


def _file(ending: str) -> Callable[[str], Path]:
    """Return what reads the name of a file to write, which has this ending and can be written."""

    def path(name: str) -> Path:
        file = Path(name)
        if file.suffix.lower() != ending:
            raise argparse.ArgumentTypeError(f"{name}: the name must end in {ending}")
        if file.is_dir():
            raise argparse.ArgumentTypeError(f"{name}: is a folder; name a file in it")
        if not file.parent.is_dir():
            raise argparse.ArgumentTypeError(f"{file.parent}: no such folder; make it")
        if not os.access(file.parent, os.W_OK):
            raise argparse.ArgumentTypeError(
                f"{file.parent}: cannot be written; name a file in another folder"
            )
        return file

    return path


def _training(argv: list[str]) -> int:
    """Print the table; draw the figure when asked."""
    parser = _parser("")
    parser.add_argument("runs", nargs="+", help="folders of runs")
    parser.add_argument("--source", default="tiny/hard", help="data source of the accuracy")
    parser.add_argument(
        "--problems", type=int, help="problems behind an accuracy (default: counted in the files)"
    )
    parser.add_argument("--figure", type=_file(".svg"), help="an SVG file to write")
    arguments = parser.parse_args(argv)
    if arguments.problems is not None and arguments.problems < 1:
        parser.error(f"--problems {arguments.problems}: it must be at least 1")
    _check_folders(arguments.runs)
    runs = [read_run(folder) for folder in arguments.runs]
    _tell_apart(runs, arguments.runs)
    print("\n".join(training_table(runs, arguments.source, arguments.problems)))
    if arguments.figure:
        draw_learning(runs, arguments.source, arguments.figure)
    return 0


def _evaluation(argv: list[str]) -> int:
    """Recompute, print the table and what differs."""
    parser = _parser(" evaluation")
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


def _two_runs(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """Return the arguments of a command that compares two run folders.

    Raises:
        ConfigError: If one of them is not there, or both are one.
    """
    parser.add_argument("first", metavar="RUN_A", type=Path)
    parser.add_argument("second", metavar="RUN_B", type=Path)
    arguments = parser.parse_args(argv)
    _check_folders([arguments.first, arguments.second])
    return arguments


def _compare(argv: list[str]) -> int:
    """Print the paired table."""
    parser = _parser(" compare")
    parser.add_argument(
        "--common", action="store_true", help="leave out problems that only one run has"
    )
    arguments = _two_runs(parser, argv)
    lines = compare_runs(arguments.first, arguments.second, should_intersect=arguments.common)
    print("\n".join(lines))
    return 0


def _same(argv: list[str]) -> int:
    """Print how many prompts have equal rounds, and each run's difference to vLLM."""
    arguments = _two_runs(_parser(" same"), argv)
    same = compare_records(arguments.first, arguments.second)
    print(
        f"{same.num_equal} of {same.num_prompts} prompts have equal levels, tokens and verdicts, "
        f"in the {same.num_steps} steps that both have of {same.of_steps}"
    )
    if same.first_step is not None:
        print(f"the first that differs is of step {same.first_step}")
    for folder in (arguments.first, arguments.second):
        rows = read_any_run(folder).rows
        means, mosts = (
            [
                row[f"{VLLM_DIFFERENCE.removesuffix('mean')}{end}"]
                for row in rows
                if VLLM_DIFFERENCE in row
            ]
            for end in ("mean", "max")
        )
        if not means:
            raise DataError(f"{folder}/metrics.jsonl has no {VLLM_DIFFERENCE}")
        mean, most = sum(means) / len(means), max(mosts)
        print(f"{folder}: trainer and vLLM differ by {mean:.1e} in the mean, {most:.1e} at most")
    return int(same.num_equal < same.num_prompts)


def _samples(argv: list[str]) -> int:
    """Print odd and random prompts with their responses and verdicts."""
    parser = _parser(" samples")
    parser.add_argument("run", type=Path, help="folder of a training run")
    parser.add_argument("--step", type=int, help="only of this step")
    parser.add_argument("--why", choices=REASONS, help="only those kept for this reason")
    parser.add_argument("--limit", type=int, default=20, help="the newest N (default: 20)")
    given = parser.parse_args(argv)
    if given.limit < 1:
        parser.error(f"--limit {given.limit}: it must be at least 1")
    print("\n".join(sample_lines(given.run, step=given.step, why=given.why, limit=given.limit)))
    return 0


def _html(argv: list[str]) -> int:
    """Write the page of some runs."""
    parser = _parser(" html")
    parser.add_argument("runs", nargs="+", help="folders of training runs or campaigns")
    parser.add_argument("-o", "--output", type=_file(".html"), required=True, help="the HTML file")
    parser.add_argument("--max-mb", type=float, default=5.0, help="size at most (default: 5)")
    given = parser.parse_args(argv)
    if not 3 <= given.max_mb <= 500:
        parser.error(f"--max-mb {given.max_mb}: it must be from 3 to 500; the charts take 2")
    _check_folders(given.runs)
    from recipe.study.report.page.render import render_page

    runs, folders = [], []
    for folder in given.runs:
        print(f"reading {folder} ...", file=sys.stderr, flush=True)
        found = read_runs(folder)
        runs += found
        folders += [folder if len(found) == 1 else f"{folder}/{run.name}" for run in found]
    _tell_apart(runs, folders)
    print("writing the page ...", file=sys.stderr, flush=True)
    page = render_page(runs, _default_settings(), round(1e6 * given.max_mb))
    write_whole(given.output, page)
    print(
        f"{given.output}: {len(page.encode()) / 1e6:.1f} MB, {len(runs)} run{'s' * (len(runs) > 1)}"
    )
    return 0


def _campaign(argv: list[str]) -> int:
    """Write the page of some campaigns' results."""
    parser = _parser(" campaign")
    parser.add_argument("folders", nargs="+", help="folders that main_campaign.py or keep filled")
    parser.add_argument(
        "-o", "--output", type=_file(".md"), required=True, help="the Markdown file"
    )
    parser.add_argument("--figure", type=_file(".svg"), help="an SVG file: learning curves")
    parser.add_argument("--source", default="tiny/hard", help="data source of the figure")
    parser.add_argument("--arm", action="append", default=[], help="in the figure; repeatable")
    given = parser.parse_args(argv)
    if given.arm and not given.figure:
        parser.error("--arm chooses the arms of a figure; give --figure FILE.svg too")
    _check_folders(given.folders)
    results = []
    for folder in given.folders:
        print(f"reading {folder} ...", file=sys.stderr, flush=True)
        results.append(read_results_of(folder, _MORE))
    page = results_page(results)
    if given.figure:
        draw_learning(_curves(results, given.arm, given.source), given.source, given.figure)
    write_whole(given.output, page)
    missing = sum(len(each.missing) for each in results)
    print(f"{given.output}: {len(results)} campaigns, {missing} runs missing")
    return 0


def _curves(results: Sequence[CampaignResult], arms: Sequence[str], source: str) -> list[RunResult]:
    """Return the runs of some arms, of all where none is named, for a figure.

    Arms of one name that two campaigns validated on ``source`` are different arms.

    Raises:
        DataError: If an arm has no finished run.
    """
    names = list(dict.fromkeys(arm for result in results for arm in result.seeds))
    for arm in arms:
        if arm not in names:
            raise DataError(f"--arm {arm} has no finished run; choose from {', '.join(names)}")
    found = []
    for arm in arms or names:
        runs = [
            (result.campaign.title, run.training)
            for result in results
            for run in result.seeds.get(arm, {}).values()
        ]
        titles = {title for title, run in runs if accuracy_curve(run.rows, source)}
        for title, run in runs:
            name = f"{title}: {run.name}" if len(titles) > 1 else run.name
            found.append(replace(run, name=name))
    return found


def _keep(argv: list[str]) -> int:
    """Keep what a page needs of a campaign's finished runs."""
    parser = _parser(" keep")
    parser.add_argument("folder", help="a folder that main_campaign.py filled")
    parser.add_argument("-o", "--output", type=Path, required=True, help="another folder")
    parser.add_argument(
        "--replace", action="store_true", help="of runs that were kept with other numbers"
    )
    given = parser.parse_args(argv)
    _check_folders([given.folder])
    if os.path.realpath(given.folder) == os.path.realpath(given.output):
        raise ConfigError(f"--output {given.output} is the campaign's own folder; give another")
    if given.output.exists() and not given.output.is_dir():
        raise ConfigError(f"--output {given.output} is a file; give a folder, which need not exist")
    result = keep_results(given.folder, given.output, _MORE, should_replace=given.replace)
    print(f"{given.output}: {sum(map(len, result.seeds.values()))} runs")
    return 0


def _check_folders(folders: Sequence[str | Path]) -> None:
    """Refuse a folder that is not there, and one that is given twice.

    Raises:
        ConfigError: Naming it.
    """
    places: set[str] = set()
    for folder in folders:
        place = os.path.realpath(folder)
        if not os.path.isdir(place):
            raise ConfigError(f"{folder}: no such folder; give the folder of a run (outputs/NAME)")
        if place in places:
            raise ConfigError(f"{folder} is given twice; give each folder once")
        places.add(place)


def _tell_apart(runs: Sequence[Any], folders: Sequence[str]) -> None:
    """Name runs of one name by their folders as they were given."""
    names = [run.name for run in runs]
    for run, folder in zip(runs, folders, strict=True):
        if names.count(run.name) > 1:
            run.name = folder


def _default_settings() -> dict[str, Any]:
    """Return all settings as the primary configuration gives them; none without verl."""
    from omegaconf import OmegaConf

    try:
        set_config_paths()
        config = primary_config(CONFIG_DIR)
    except ConfigError as error:
        print(f"without defaults: {error}", file=sys.stderr)
        return {}
    return cast("dict[str, Any]", OmegaConf.to_container(config, resolve=False))


def _parser(command: str) -> Parser:
    return Parser(
        prog=f"{Path(sys.argv[0]).name}{command}",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


if __name__ == "__main__":
    sys.exit(main())

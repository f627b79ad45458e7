"""Tables and figures from finished runs.

main_report.py RUN [RUN ...] [--figure FILE.svg]   training runs side by side
main_report.py evaluation RUN                      every number again from the samples; exit code 1
                                                   when one differs from results.json
main_report.py compare RUN_A RUN_B [--common]      B minus A, paired problem by problem
main_report.py samples RUN [--step N] [--why W]    what training kept to look at, newest last

Ends with exit code 2 and one line on stderr when a folder cannot be read. docs/evaluation.md says
what the numbers mean.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from recipe.hint.errors import HintError
from recipe.hint.evaluation.comparison import compare_runs
from recipe.hint.evaluation.results import evaluation_table, recompute
from recipe.hint.report.runs import read_run
from recipe.hint.report.samples import sample_lines
from recipe.hint.report.training import draw_learning, training_table
from recipe.hint.samples import REASONS


def main(argv: list[str] | None = None) -> int:
    """Run the command that the first argument names; without one, the training table."""
    argv = sys.argv[1:] if argv is None else argv
    commands = {"evaluation": _evaluation, "compare": _compare, "samples": _samples}
    command = commands.get(argv[0] if argv else "")
    try:
        return command(argv[1:]) if command else _training(argv)
    except HintError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror or error}", file=sys.stderr)
    return 2


def _training(argv: list[str]) -> int:
    """Print the table; draw the figure when asked."""
    parser = _parser("")
    parser.add_argument("runs", nargs="+", help="folders of runs")
    parser.add_argument("--source", default="tiny/hard", help="data source of the accuracy")
    parser.add_argument(
        "--problems", type=int, help="problems behind an accuracy (default: counted in the files)"
    )
    parser.add_argument("--figure", type=Path, help="an SVG file to write")
    arguments = parser.parse_args(argv)
    if arguments.problems is not None and arguments.problems < 1:
        parser.error(f"--problems {arguments.problems}: it must be at least 1")
    runs = [read_run(folder) for folder in arguments.runs]
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


def _compare(argv: list[str]) -> int:
    """Print the paired table."""
    parser = _parser(" compare")
    parser.add_argument("first", metavar="RUN_A", type=Path)
    parser.add_argument("second", metavar="RUN_B", type=Path)
    parser.add_argument(
        "--common", action="store_true", help="leave out problems that only one run has"
    )
    arguments = parser.parse_args(argv)
    lines = compare_runs(arguments.first, arguments.second, should_intersect=arguments.common)
    print("\n".join(lines))
    return 0


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


def _parser(command: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=f"main_report.py{command}",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


if __name__ == "__main__":
    sys.exit(main())

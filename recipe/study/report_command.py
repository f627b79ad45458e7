"""Make tables, pages and figures from finished runs.

evaluation RUN              the table of an evaluation, computed again from the responses
compare RUN_A RUN_B         B minus A, paired problem by problem
html DIR ... -o page.html   one HTML page of runs, also of one in progress, and of campaigns
serve DIR                   the same pages at http://127.0.0.1, live: of DIR or of what is in it
campaign DIR ... -o FILE.md tables, intervals and claims of whole campaigns
keep DIR -o DIR2            save what that page needs, a small file per run

Ends with exit code 2 and one line on stderr when a folder cannot be read. docs/evaluation.md says
what the numbers mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from recipe.run.ending import Parser, errors_in_one_line
from recipe.run.whole_file import write_whole
from recipe.study.campaign_results import keep_results, read_results_of, results_page
from recipe.study.results import compare_runs, evaluation_table, recomputed


@errors_in_one_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command that the first argument names."""
    as_is = argparse.RawDescriptionHelpFormatter
    parser = Parser(description=__doc__, formatter_class=as_is)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(run: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
        added = commands.add_parser(run.__name__.strip("_"), description=run.__doc__)
        added.set_defaults(run=run)
        return added

    command(_evaluation).add_argument("run_folder", type=Path, metavar="RUN")
    compared = command(_compare)
    compared.add_argument("runs", nargs=2, type=Path, metavar="RUN", help="A, then B")
    for run in (html := command(_html), command(_campaign), keep := command(_keep)):
        many = 1 if run is keep else "+"
        run.add_argument("folders", nargs=many, metavar="DIR", help="folders of runs or campaigns")
        run.add_argument("-o", "--output", type=Path, required=True, help="what is written")
    (served := command(_serve)).add_argument("folder", type=Path, metavar="DIR")
    served.add_argument("--port", type=int, default=8321, help="0: any free one (default: 8321)")
    for run in (html, served):
        run.add_argument("--prompts", type=int, default=200, help="of a page (default: 200)")
    given = parser.parse_args(argv)
    given.run(given)


def _evaluation(given: argparse.Namespace) -> None:
    """Compute the table of an evaluation again, from the responses."""
    print("\n".join(evaluation_table(recomputed(given.run_folder / "evaluation"))))


def _compare(given: argparse.Namespace) -> None:
    """Compare two evaluations, paired problem by problem."""
    print("\n".join(compare_runs(*given.runs)))


def _html(given: argparse.Namespace) -> None:
    """Write the page of some runs."""
    from recipe.study.serve import page_of

    page = page_of(given.folders, given.prompts)
    write_whole(given.output, page)
    print(f"{given.output}: {len(page.encode()) / 1e6:.1f} MB")


def _serve(given: argparse.Namespace) -> None:
    """Show pages of runs in a browser on this machine, rendered anew on every request."""
    from recipe.study.serve import serve

    serve(given.folder, given.port, given.prompts)


def _campaign(given: argparse.Namespace) -> None:
    """Write the page of some campaigns' results."""
    results = [read_results_of(folder) for folder in given.folders]
    write_whole(given.output, results_page(results))
    missing = sum(len(each.missing) for each in results)
    print(f"{given.output}: {len(results)} campaigns, {missing} runs missing")


def _keep(given: argparse.Namespace) -> None:
    """Keep what a page needs of a campaign's finished runs."""
    print(f"{given.output}: {keep_results(given.folders[0], given.output)} runs")

"""Make tables, pages and figures from finished runs.

evaluation RUN              the table of an evaluation, computed again from the responses
compare RUN_A RUN_B         B minus A, paired problem by problem
html DIR ... -o page.html   one HTML page of runs, also of one in progress, and of campaigns
serve DIR                   the same pages at http://127.0.0.1, live: of DIR or of what is in it
campaign DIR ... -o FILE.md tables, intervals and claims of whole campaigns
keep DIR -o DIR2            save what that page needs, a small file per run

docs/page.md, docs/evaluation.md and docs/campaigns.md say what the numbers mean.
"""

from __future__ import annotations

import argparse
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from aiohttp import web
from jinja2 import Environment

from recipe.run.ending import Parser, errors_in_one_line
from recipe.run.errors import ConfigError, DataError, HintError, one_line
from recipe.run.typed import at_least_1
from recipe.run.whole_file import write_whole
from recipe.study.campaign import CAMPAIGN_FILE
from recipe.study.campaign_results import keep_results, read_results_of, results_page, runs_of
from recipe.study.page import render_page
from recipe.study.results import compare_runs, evaluation_table, recomputed

_HOST = "127.0.0.1"
_INDEX = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{{ root }}</title>
<h1>{{ root }}</h1><ul>{% for name in names %}
<li><a href="/?run={{ name | urlencode }}">{{ name }}</a>{% else %}<li>no run yet{% endfor %}
</ul>"""


@errors_in_one_line()
def main(argv: Sequence[str] | None = None) -> None:
    parser = Parser(description=__doc__)
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
        run.add_argument("--prompts", type=at_least_1, default=200, help="of a page (default: 200)")
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
    page = page_of(given.folders, given.prompts)
    write_whole(given.output, page)
    print(f"{given.output}: {len(page.encode()) / 1e6:.1f} MB")


def _serve(given: argparse.Namespace) -> None:
    """Show pages of runs in a browser on this machine, rendered anew on every request."""
    app = app_of(given.folder, given.prompts)
    try:
        place = socket.create_server((_HOST, given.port))
    except (OSError, OverflowError) as error:
        told = f"--port {given.port}: {error}; give another, or 0 for any free one"
        raise ConfigError(told) from None
    port = place.getsockname()[1]
    told = f"http://{_HOST}:{port}/ shows {given.folder}; Ctrl-C ends it"
    web.run_app(app, sock=place, print=lambda _: print(told, flush=True), access_log=None)


def _campaign(given: argparse.Namespace) -> None:
    """Write the page of some campaigns' results."""
    results = [read_results_of(folder) for folder in given.folders]
    write_whole(given.output, results_page(results))
    missing = sum(len(each.missing) for each in results)
    print(f"{given.output}: {len(results)} campaigns, {missing} runs missing")


def _keep(given: argparse.Namespace) -> None:
    """Keep what a page needs of a campaign's finished runs."""
    print(f"{given.output}: {keep_results(given.folders[0], given.output)} runs")


def page_of(folders: Sequence[str | Path], max_prompts: int) -> str:
    """Return the page of the runs in folders of runs and campaigns; ``DataError`` if none."""
    runs = [run for folder in folders for run in runs_of(folder)]
    if not runs:
        told = ", ".join(map(str, folders))
        raise DataError(f"{told}: no run yet; `hint train` and `hint campaign` make them")
    names = [run.name for run in runs]
    for run in runs:
        if names.count(run.name) > 1:
            run.name = str(run.folder)
    return render_page(runs, max(0, max_prompts))


def app_of(root: Path, max_prompts: int) -> web.Application:
    """Return the pages of a folder for this machine alone; a request names runs, never paths."""
    shown_folders(root)

    async def page(request: web.Request) -> web.Response:
        if request.url.host not in (_HOST, "localhost"):  # a page elsewhere whose name leads here
            told = f"this server answers {_HOST} and localhost only"
            raise web.HTTPForbidden(text=told)
        names = request.query.getall("run", [])
        try:
            folders = shown_folders(root)
            if names or len(folders) == 1:
                text = page_of([folders[each] for each in names or folders], max_prompts)
            else:
                template = Environment(autoescape=True).from_string(_INDEX)
                text = template.render(root=str(root), names=[*folders])
        except KeyError as error:
            raise web.HTTPNotFound(text=f"no run {error}") from None
        except (HintError, OSError) as error:
            raise web.HTTPInternalServerError(text=one_line(error)) from None
        headers = {"Cache-Control": "no-store"}
        return web.Response(text=text, content_type="text/html", headers=headers)

    app = web.Application()
    app.router.add_get("/", page)
    return app


def shown_folders(root: Path) -> dict[str, Path]:
    """Return the folders of runs and campaigns by name, newest first: ``root``, or those in it."""
    if not root.is_dir():
        raise DataError(f"{root} is no folder; give that of a run or a campaign, or one with some")
    found = [root] if _changed_s(root) else [each for each in root.iterdir() if _changed_s(each)]
    return {each.resolve().name: each for each in sorted(found, key=_changed_s, reverse=True)}


def _changed_s(folder: Path) -> float:
    """Return when a run or campaign was last written, 0 of any other folder."""
    files = (folder / name for name in ("metrics.jsonl", "records.jsonl", CAMPAIGN_FILE))
    return max((file.stat().st_mtime for file in files if file.is_file()), default=0.0)

"""Serve pages of runs to this machine; a request names runs, never paths, and renders anew."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jinja2 import Environment

from recipe.run.errors import ConfigError, DataError, HintError, one_line
from recipe.study.campaign import CAMPAIGN_FILE
from recipe.study.campaign_results import runs_of
from recipe.study.page import render_page

_HOST = "127.0.0.1"
_INDEX = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{{ root }}</title>
<h1>{{ root }}</h1><ul>{% for name in names %}
<li><a href="/?run={{ name | urlencode }}">{{ name }}</a>{% else %}<li>no run yet{% endfor %}
</ul>"""


def page_of(folders: Iterable[str | Path], max_prompts: int) -> str:
    """Return the page of the runs in folders of runs and campaigns; ``DataError`` if none."""
    folders = [*folders]
    runs = [run for folder in folders for run in runs_of(folder)]
    if not runs:
        told = ", ".join(map(str, folders))
        raise DataError(f"{told}: no run yet; `hint train` and `hint campaign` make them")
    names = [run.name for run in runs]
    for run in runs:
        if names.count(run.name) > 1:
            run.name = str(run.folder)
    return render_page(runs, max(0, max_prompts))


def serve(root: Path, port: int, max_prompts: int) -> None:
    """Serve until Ctrl-C."""
    try:
        server = make_server(root, port, max_prompts)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"--port {port}: {error}; give another, or 0 for any free one") from None
    with server, contextlib.suppress(KeyboardInterrupt):
        print(f"http://{_HOST}:{server.server_port}/ shows {root}; Ctrl-C ends it", flush=True)
        server.serve_forever()


def make_server(root: Path, port: int, max_prompts: int) -> ThreadingHTTPServer:
    """Return a server that only this machine reaches."""
    shown_folders(root)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            own = {f"{name}:{server.server_port}" for name in (_HOST, "localhost")}
            asked = urlsplit(self.path)
            if self.headers["Host"] not in own:  # a page elsewhere whose name leads here
                return self._answer(403, f"this server answers {_HOST} and localhost only")
            if asked.path != "/":
                return self._answer(404, "the pages are at /")
            names = parse_qs(asked.query).get("run", [])
            try:
                folders = shown_folders(root)
                if names or len(folders) == 1:
                    text = page_of([folders[each] for each in names or folders], max_prompts)
                else:
                    template = Environment(autoescape=True).from_string(_INDEX)
                    text = template.render(root=str(root), names=[*folders])
                self._answer(200, text, "html")
            except KeyError as error:
                self._answer(404, f"no run {error}")
            except (HintError, OSError) as error:
                self._answer(500, one_line(error))

        def _answer(self, code: int, text: str, kind: str = "plain") -> None:
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", f"text/{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            with contextlib.suppress(ConnectionError):  # the browser has gone on
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: Any, **__: Any) -> None:
            """Say nothing of requests."""

    server = ThreadingHTTPServer((_HOST, port), Handler)
    return server


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

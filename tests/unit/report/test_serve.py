"""Pages over HTTP: anew on every request, to this machine alone, and of nothing but runs."""

import asyncio
import functools
import re
import signal
import socket
import subprocess
import sys
import threading
from http.client import HTTPConnection
from pathlib import Path

import pytest
from aiohttp import web
from ends import code_of
from page_runs import metrics, write_run

from recipe.study.report_command import app_of, main

ROOT = Path(__file__).parents[3]


@pytest.fixture
def runs(tmp_path):
    """A folder with two runs, a folder that is none, and a secret beside it."""
    (tmp_path / "secret").write_text("secret")
    for name in ("a & <b>", "other"):
        write_run(tmp_path / "outputs" / name, rows=[metrics(1, 0.5)])
    (tmp_path / "outputs/notes").mkdir()
    return tmp_path / "outputs"


@pytest.fixture
def ask(runs):
    """Asks a server of the runs; gives status, headers and text."""
    place = socket.create_server(("127.0.0.1", 0))
    port, loop = place.getsockname()[1], asyncio.new_event_loop()
    served = {"sock": place, "print": None, "handle_signals": False, "loop": loop}
    serve = functools.partial(web.run_app, app_of(runs, 200), **served)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()

    def answer(path, host=None):
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", path, headers={"Host": f"{host or '127.0.0.1'}:{port}"})
        response = connection.getresponse()
        return response.status, response.headers, response.read().decode()

    def end():
        raise web.GracefulExit

    answer.port = port
    yield answer
    loop.call_soon_threadsafe(end)
    thread.join(60)


def test_several_runs_are_listed_by_escaped_names_and_one_is_its_page(ask, runs):
    status, _, text = ask("/")
    assert status == 200 and "notes" not in text
    links = re.findall(r'<a href="(.*?)">(.*?)</a>', text)
    assert sorted(links) == [
        ("/?run=a%20%26%20%3Cb%3E", "a &amp; &lt;b&gt;"),
        ("/?run=other", "other"),
    ]
    for link, name in links:
        assert f"<h1>{name}</h1>" in ask(link)[2]
    assert "2 runs of 2 variants" in ask("/?run=other&run=a%20%26%20%3Cb%3E")[2]


def test_a_page_shows_what_was_written_since(ask, runs):
    assert "<th>other</th><td>1</td><td>1</td>" in ask("/?run=other")[2]
    write_run(runs / "other", rows=[metrics(1, 0.5), metrics(2)])
    status, headers, text = ask("/?run=other")
    assert "<th>other</th><td>1</td><td>2</td>" in text
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    [
        "/../secret",
        "/secret",
        "//secret",
        "/%2e%2e/secret",
        "/?run=../secret",
        "/?run=..",
        "/?run=notes",
        "/?run=other&run=%2Fetc",
        "/?run=other%00",
    ],
)
def test_nothing_but_runs_of_the_folder_can_be_asked_for(ask, path):
    status, headers, text = ask(path)
    assert status == 404 and headers["Content-Type"] == "text/plain; charset=utf-8"
    assert "secret\n" not in text and len(text) < 60


def test_only_this_machine_is_answered_and_only_by_its_own_name(ask):
    assert ask("/", host="localhost")[0] == 200
    assert ask("/", host="evil.example")[0] == 403
    with pytest.raises(ConnectionRefusedError):  # another address of the same machine
        socket.create_connection(("127.0.0.2", ask.port), timeout=10)


def test_a_run_that_cannot_be_read_is_told_in_one_line(ask, runs):
    (runs / "other/metrics.jsonl").write_text("{\n")
    status, _, text = ask("/?run=other")
    assert status == 500 and "line 1 is no row" in text


def test_ctrl_c_ends_it_without_a_word(runs):
    code = "from recipe.hint.main_report import main; main()"
    command = [sys.executable, "-c", code, "serve", str(runs / "other"), "--port", "0"]
    # A job in the background starts its programs with the signal ignored.
    attended = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, preexec_fn=attended, **pipes) as process:
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        try:
            assert (process.wait(60), process.stderr.read()) == (0, "")
        finally:
            process.kill()


def test_a_folder_without_runs_and_a_port_in_use_are_one_line(tmp_path, ask, capsys):
    for arguments, said in (
        ([str(tmp_path / "gone")], "is no folder"),
        ([str(tmp_path), "--port", str(ask.port)], "Address already in use"),
    ):
        assert code_of(main, ["serve", *arguments]) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert said in line

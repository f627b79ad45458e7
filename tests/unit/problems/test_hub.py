"""Downloads: from a server that answers as the hub does, and from servers that do not."""

import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub.constants
import pytest

from recipe.hint.errors import DataError
from recipe.hint.problems.hub import fetch

COMMIT = "c" * 40
BODY = b'{"problem": "1+1?", "answer": "2"}\n'
PATH = f"/datasets/a/b/resolve/{COMMIT}/test.jsonl"


class Hub(BaseHTTPRequestHandler):
    def do_HEAD(self):
        if self.path != PATH:
            code = "GatedRepo" if "gated" in self.path else "RevisionNotFound"
            self.send_response(401 if "gated" in self.path else 404)
            self.send_header("X-Error-Code", code)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha256(BODY).hexdigest()}"')
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()

    def do_GET(self):
        self.do_HEAD()
        if self.path == PATH:
            self.wfile.write(BODY)

    def log_message(self, *_):
        pass


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


@pytest.fixture
def hub(cache, monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
    yield server
    server.shutdown()
    server.server_close()


def test_a_file_is_downloaded_once_and_then_read_without_the_network(hub, monkeypatch):
    path = fetch("a/b", "test.jsonl", revision=COMMIT)
    assert path.read_bytes() == BODY
    hub.shutdown()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert fetch("a/b", "test.jsonl", revision=COMMIT) == path


def test_a_commit_that_is_not_there_is_one_line(hub):
    with pytest.raises(DataError, match="a/b, file test.jsonl, commit dddddddddddd: Revision") as e:
        fetch("a/b", "test.jsonl", revision="d" * 40)
    assert "\n" not in str(e.value)
    assert "give it with --from PATH" in str(e.value)


def test_a_gated_set_says_what_to_accept(hub):
    with pytest.raises(
        DataError, match="Gated.*needs its terms accepted on its page, and `hf auth"
    ):
        fetch("a/gated", "test.jsonl", revision=COMMIT)


def test_a_server_that_refuses_is_told_at_once(cache, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    # Not "no answer within ...": the refusal itself ended it.
    with pytest.raises(DataError, match="ConnectError.*refused; without the network, copy the"):
        fetch("a/b", "test.jsonl", revision=COMMIT, probe_limit_s=300)


def test_a_server_that_never_answers_is_given_up_at_the_limit(cache, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(DataError, match="no answer within 2 s; without the network"):
            fetch("a/b", "test.jsonl", revision=COMMIT, probe_limit_s=2)


def test_a_branch_is_no_pin():
    with pytest.raises(DataError, match="must be a commit of 40 hex digits, got 'main'"):
        fetch("a/b", "test.jsonl", revision="main")

"""Downloads: from a server that answers as the hub does, and from servers that do not."""

import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import constants

from recipe.problems.sources import fetch
from recipe.run.errors import DataError

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
def ask(tmp_path, monkeypatch):
    """Asks an address for files, and keeps them in a cache of the test's own."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

    def ask(address, repo="a/b", revision=COMMIT, **options):
        url = f"http://{address[0]}:{address[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", url)
        template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        return fetch(repo, "test.jsonl", revision=revision, **options)

    return ask


@pytest.fixture
def hub():
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address
        server.shutdown()


NOBODY = ("127.0.0.1", 9)


def test_a_file_is_downloaded_once_and_then_read_without_the_network(hub, ask):
    path = ask(hub)
    assert path.read_bytes() == BODY
    assert ask(NOBODY) == path


def test_a_commit_that_is_not_there_is_one_line(hub, ask):
    with pytest.raises(DataError, match="a/b, file test.jsonl, commit dddddddddddd: Revision") as e:
        ask(hub, revision="d" * 40)
    assert "\n" not in str(e.value)
    assert "give it with --from PATH" in str(e.value)


def test_a_gated_set_says_what_to_accept(hub, ask):
    with pytest.raises(
        DataError, match="Gated.*needs its terms accepted on its page, and `hf auth"
    ):
        ask(hub, repo="a/gated")


def test_a_server_that_never_answers_is_given_up_at_the_limit(ask):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(DataError, match="ReadTimeout.*; without the network, copy the"):
            ask(silent.getsockname(), probe_limit_s=2)

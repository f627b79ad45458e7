"""Every named source is read from files laid out as the hub lays them out, or from the hub."""

import hashlib
import re
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hub_files import SETS, lay_out, write
from huggingface_hub import constants

from recipe.problems import prepare
from recipe.problems.prepare import SOURCES, Given, fetch, read_rows
from recipe.run.errors import DataError

COMMIT = "c" * 40
BODY = b'{"problem": "1+1?", "answer": "2"}\n'
PATH = f"/datasets/a/b/resolve/{COMMIT}/test.jsonl"


def read(name, copy, split="", **options):
    return read_rows(name, Given(split=split), copy=copy, **options)


def shown(row):
    """A row in the words of the golden file."""
    return {
        "id": row["extra_info"]["index"],
        "problem": row["problem"],
        "answer": row["answer"],
        "solution": row["solution"],
        "kind": row["reward_model"]["kind"],
    }


@pytest.mark.parametrize("name", [name for name in SETS if SETS[name]["expected"]])
def test_the_hub_s_files_of_a_source_become_rows(tmp_path, name):
    prepared = read(name, lay_out(name, tmp_path), SETS[name]["split"])
    assert [shown(row) for row in prepared.rows] == SETS[name]["expected"]
    source = SETS[name].get("data_source", name)
    assert {row["data_source"] for row in prepared.rows} == {source}
    assert {row["extra_info"]["split"] for row in prepared.rows} == {SETS[name]["split"]}


def test_gpqa_options_are_shuffled_by_the_id_and_the_letters_are_spread_evenly(tmp_path):
    (row,) = read("gpqa_diamond", lay_out("gpqa_diamond", tmp_path)).rows
    assert row["extra_info"]["index"] == "gpqa_diamond/rec1"
    assert f"({row['answer']}) Neon" in row["problem"]
    assert row["prompt"][-1]["content"].endswith(r"as the final answer, as in \boxed{A}.")
    assert "as in" not in row["problem"]  # hints are written from the question alone
    (golden,) = SETS["gpqa_diamond"]["files"]["gpqa_diamond.csv"]
    rows = [{**golden, "Record ID": f"rec{n}", "Question": f"{n}?"} for n in range(800)]
    path = write(tmp_path / "gpqa_diamond.csv", rows)
    count = Counter(row["answer"] for row in read("gpqa_diamond", path).rows)
    # 800 draws of one in four: 200, standard deviation sqrt(800 * 3/16) = 12; 4 of them are 49.
    assert {letter for letter in count if abs(count[letter] - 200) < 49} == set("ABCD")


def test_a_program_shows_its_tests(tmp_path):
    (row,) = read("mbpp", lay_out("mbpp", tmp_path)).rows
    system, user = row["prompt"]
    assert "```python" in system["content"] and "assert halve(4) == 2" in user["content"]


@pytest.mark.parametrize(
    ("name", "row", "column"),
    [
        ("gsm8k", {"question": "x", "answer": "no mark"}, "answer"),
        ("gsm8k", {"q": "x"}, "answer"),
        ("math", {"problem": "x", "solution": r"$\boxed{1}$, $\boxed{2$"}, "solution"),
        ("mmlu_pro", {"question": "x", "options": ["1", "2"], "answer": "C"}, "answer"),
        ("mmlu_pro", {"question": "x", "options": ["1"], "answer": "A"}, "options"),
        ("mbpp", {"prompt": "x", "test_list": []}, "test_list"),
        ("mbpp", {"prompt": "x", "test_list": ["assert"]}, "answer"),
        ("olympiadbench", {"question": "x", "final_answer": []}, "final_answer"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(tmp_path, name, row, column):
    path = write(tmp_path / "a.jsonl", [row])
    with pytest.raises(DataError, match=f"a.jsonl: line 1, column `{column}`"):
        read(name, path)


def test_rows_of_several_files_are_named_with_their_file(tmp_path):
    lay_out("math", tmp_path)
    file = tmp_path / "geometry" / "test-00000-of-00001.parquet"
    write(file, [{"problem": "x", "solution": ""}])
    with pytest.raises(DataError, match=r"geometry/test-00000.*, row 0, column `solution`: is em"):
        read("math", tmp_path, "test")


def test_a_source_is_pinned_or_asks_for_a_commit():
    for source in SOURCES.values():
        assert re.fullmatch(r"[0-9a-f]{40}|", source.get("revision", "")), source
    with pytest.raises(DataError, match="sage_train: no commit is on record; give --rev"):
        read("sage_train", None)


def test_the_pinned_or_the_given_commit_is_fetched(tmp_path, monkeypatch):
    asked = []

    def fetch(repo, file, *, revision):
        asked.append((repo, file, revision))
        return lay_out("gsm8k", tmp_path) / "main" / "train-00000-of-00001.parquet"

    monkeypatch.setattr(prepare, "fetch", fetch)
    assert len(read("gsm8k", None, "train").rows) == 1
    read("gsm8k", None, "train", revision="b" * 40)
    file = "main/train-00000-of-00001.parquet"
    pinned = SOURCES["gsm8k"]["revision"]
    assert asked == [("openai/gsm8k", file, pinned), ("openai/gsm8k", file, "b" * 40)]


# -- a server that answers as the hub does, and servers that do not -------------------------------


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


def test_a_file_is_downloaded_once_and_what_the_hub_refuses_is_one_line(ask):
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hub = server.server_address
        path = ask(hub)
        assert path.read_bytes() == BODY
        assert ask(("127.0.0.1", 9)) == path
        told = "a/b, file test.jsonl, commit d{12}: Revision.*--from PATH"
        with pytest.raises(DataError, match=told):
            ask(hub, revision="d" * 40)
        with pytest.raises(DataError, match="Gated.*a gated set has terms"):
            ask(hub, repo="a/gated")
        server.shutdown()


def test_a_server_that_never_answers_is_given_up_at_the_limit(ask):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(DataError, match="ReadTimeout.*; without the network give"):
            ask(silent.getsockname(), probe_limit_s=2)

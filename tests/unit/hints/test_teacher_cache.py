"""Answers on disk: whole or not at all, shared by processes, and only paid for once."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from recipe.hint.hints.teacher_cache import FILE, CachedResponse, ResponseCache
from recipe.run.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]
ANSWER = CachedResponse("a \\frac{1}{2} ∑ \x00", 7, 20, is_cut=True)


def test_an_answer_comes_back_as_it_was(tmp_path):
    ResponseCache(tmp_path).add("k", ANSWER)
    again = ResponseCache(tmp_path)
    assert again.get("k") == ANSWER
    assert again.get("other") is None
    assert again.paid_tokens() == 20


def test_the_first_answer_of_a_key_stays_and_both_are_paid(tmp_path):
    cache = ResponseCache(tmp_path)
    cache.add("k", ANSWER)
    cache.add("k", CachedResponse("later", 1, 5))
    cache.pay(3)
    assert cache.get("k") == ANSWER
    assert cache.paid_tokens() == 28  # 20 + 5 + 3


@pytest.mark.parametrize("spoil", ["folder", "file"])
def test_what_cannot_be_a_cache_is_told(tmp_path, spoil):
    if spoil == "file":
        (tmp_path / FILE).write_text("not a database, but long enough to have a header" * 20)
        folder = tmp_path
    else:
        (tmp_path / "file").write_text("")
        folder = tmp_path / "file"
    with pytest.raises(ConfigError, match=r"hint\.teacher\.cache_dir=.*answers\.sqlite cannot be"):
        ResponseCache(folder)


def start(code: str, folder: Path) -> subprocess.Popen:
    code = "from recipe.hint.hints.teacher_cache import *\n" + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", code, str(folder)], cwd=ROOT)


def test_processes_that_write_together_lose_nothing(tmp_path):
    ResponseCache(tmp_path)
    code = """
        import os, sys
        cache = ResponseCache(sys.argv[1])
        for i in range(40):
            cache.add(f"{os.getpid()}-{i}", CachedResponse("own", 1, 3))
            cache.add(f"shared-{i}", CachedResponse("shared", 1, 2))
    """
    writers = [start(code, tmp_path) for _ in range(3)]
    assert [writer.wait(300) for writer in writers] == [0, 0, 0]
    with sqlite3.connect(tmp_path / FILE) as connection:
        [count] = connection.execute("SELECT count(*) FROM answers").fetchone()
    assert count == 3 * 40 + 40
    assert ResponseCache(tmp_path).paid_tokens() == 3 * 40 * (3 + 2)


def test_a_writer_that_is_killed_leaves_whole_answers_and_the_right_sum(tmp_path):
    cache = ResponseCache(tmp_path)
    code = """
        import itertools, sys
        cache = ResponseCache(sys.argv[1])
        for i in itertools.count():
            cache.add(str(i), CachedResponse("x" * 20_000, 1, 3))
    """
    writer = start(code, tmp_path)
    deadline = time.monotonic() + 300
    while cache.get("5") is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait(30)
    kept = 0
    while answer := cache.get(str(kept)):
        assert len(answer.text) == 20_000
        kept += 1
    assert kept > 5
    assert cache.paid_tokens() == 3 * kept

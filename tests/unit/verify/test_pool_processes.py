"""The pool's lines of JSON, and what the processes that it starts have around them."""

from __future__ import annotations

import json
import resource
import socket
import time

import psutil
import pytest
from processes import wait_for

from recipe.run.errors import VerifierError
from recipe.verify.pool.processes import Line, WorkerDied
from recipe.verify.pool.worker_process import one_line
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.schema import Item

# A verdict that tells of the process that gave it.
GRADE_MODULE = """
import json, os, resource
from recipe.verify.schema import Verdict

def grade(item, options):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    told = {
        "session": os.getsid(0) == os.getpid(),
        "factory": os.getsid(os.getppid()) == os.getppid(),
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "input": os.read(0, 1).decode(),
        "threads": [os.environ.get(name) for name in names],
    }
    return Verdict(0.0, "wrong", json.dumps(told))
"""


@pytest.fixture
def ends():
    """A line, and the other end of its socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Line(ours), theirs


def soon():
    return time.monotonic() + 60


def test_lines_that_come_together_are_received_one_by_one(ends):
    line, theirs = ends
    theirs.sendall(b'"ready"\n[1, 2]\n{"a"')
    assert [line.receive(soon()), line.receive(soon())] == ["ready", [1, 2]]
    # The rest is a beginning, which its end completes.
    theirs.sendall(b": 3}\n")
    assert line.receive(soon()) == {"a": 3}


def test_what_came_before_a_limit_is_there_after_it(ends):
    line, theirs = ends
    theirs.sendall(b'"hal')
    with pytest.raises(TimeoutError):
        line.receive(time.monotonic() + 0.05)
    # A limit that has passed still takes what is there.
    theirs.sendall(b'f"\n')
    passed = time.monotonic() - 1
    assert line.receive(passed) == "half"


@pytest.mark.parametrize("sent", [b"{\n", b"\xff\n", b"[" * 100_000 + b"\n"])
def test_a_line_that_is_not_json_is_a_process_that_is_lost(ends, sent):
    line, theirs = ends
    theirs.sendall(sent)
    with pytest.raises(WorkerDied, match="sent a line that is not JSON"):
        line.receive(soon())


def test_an_end_that_is_closed_is_a_process_that_died_whoever_speaks(ends):
    line, theirs = ends
    theirs.sendall(b'"cut off')
    theirs.close()
    with pytest.raises(WorkerDied):
        line.receive(soon())
    with pytest.raises(WorkerDied):
        line.send("fork", soon())


def test_a_line_that_nobody_reads_ends_with_its_limit(ends):
    """More than a socket holds, and no reader."""
    line, _ = ends
    with pytest.raises(TimeoutError):
        line.send("x" * (1 << 24), time.monotonic() + 0.05)


def told(grade_path):
    with VerifierPool(1, grade_path=grade_path) as pool:
        [verdict] = pool.grade_many_blocking([Item("tell", "")])
    return json.loads(verdict.extracted)


def test_a_grade_has_a_session_of_its_own_no_core_file_and_nothing_to_read(grade_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        found = told(grade_path)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert found == {
        "session": True,
        "factory": True,
        "core": [0, 0],
        "input": "",
        # One grade computes on one core, unless the user has asked for more.
        "threads": ["1", "2"],
    }


def test_files_of_the_working_folder_shadow_no_module_of_a_grade(grade_path, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("json", "socket", "recipe"):
        (folder / f"{name}.py").write_text("raise RuntimeError('this is not the module')\n")
    monkeypatch.chdir(folder)
    assert told(grade_path)["session"]


def test_a_factory_that_cannot_be_reached_is_replaced(grade_path):
    with VerifierPool(1, grade_path=grade_path) as pool:
        pool.grade_many_blocking([Item("tell", "")])
        before = pool._factory._process
        pool._factory._line.socket.shutdown(socket.SHUT_RDWR)
        [verdict] = pool.grade_many_blocking([Item("tell", "")])
        assert verdict.reason == "wrong"
        assert pool._factory._process is not before and before.returncode is not None


def test_ended_grades_leave_no_process_behind_not_even_an_ended_one(grade_path):
    with VerifierPool(2, grade_path=grade_path) as pool:
        pool.grade_many_blocking([Item("tell", "")] * 4)
        [factory] = psutil.Process().children()
        wait_for(lambda: not factory.children())


def test_a_factory_that_ends_while_it_imports_is_told_with_its_exit_code(tmp_path, monkeypatch):
    (tmp_path / "ends_at_once.py").write_text("import os\nos._exit(7)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pool = VerifierPool(1, grade_path="ends_at_once:grade")
    told = r"verifier worker 1 \(pid \d+\) died \(exit code 7\) while importing ends_at_once:grade"
    with pool, pytest.raises(VerifierError, match=told):
        pool.grade_many_blocking([Item("a", "a")])


def test_a_factory_that_cannot_import_says_why(tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text("raise ValueError('two\\nlines')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pool = VerifierPool(1, grade_path="broken:grade")
    told = r"died while importing broken:grade: ValueError: two lines; see stderr"
    with pool, pytest.raises(VerifierError, match=told):
        pool.grade_many_blocking([Item("a", "a")])


def test_an_exception_is_told_in_one_line_of_at_most_300_characters():
    assert one_line(KeyError("a")) == "KeyError: 'a'"
    assert one_line(ValueError("a\n  b\tc")) == "ValueError: a b c"
    long = one_line(ValueError("x" * 1000))
    assert (len(long), long[:14]) == (300, "ValueError: xx")


def test_a_pool_starts_as_many_threads_as_it_can_use(grade_path):
    """2 workers and 8 spares for 30 grades; for 3 grades 3."""
    for num_grades, num_threads in ((3, 3), (30, 10)):
        with VerifierPool(2, grade_path=grade_path) as pool:
            pool.grade_many_blocking([Item("tell", "")] * num_grades)
            assert len(pool._threads) == num_threads


def test_a_fault_of_the_pool_itself_reaches_the_caller(grade_path, monkeypatch):
    with VerifierPool(1, grade_path=grade_path) as pool:
        monkeypatch.setattr(pool, "_grade", lambda *_: 1 / 0)
        with pytest.raises(VerifierError, match="verifier worker 1: ZeroDivisionError: division"):
            pool.submit([Item("tell", "")]).result(timeout=60)
        monkeypatch.undo()
        assert pool.submit([Item("tell", "")]).result(timeout=60)[0].reason == "wrong"

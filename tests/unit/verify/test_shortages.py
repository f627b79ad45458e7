"""A machine short of threads, processes or open files delays a grade and ends none beside it."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import threading
from types import SimpleNamespace

import pytest
from processes import wait_for

from recipe.run.errors import VerifierError
from recipe.verify.options import GradeOptions
from recipe.verify.pool.processes import Line, WorkerFactory
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.programs import program
from recipe.verify.schema import Item

# A response names a file that is waited for. A file "no fork" or "no file" in the folder is one
# shortage of the factory, which imports this too.
GRADE_MODULE = """
import errno, os, socket, time
from pathlib import Path
from recipe.verify.schema import Verdict

HERE = Path(__file__).parent
fork, recv_fds = os.fork, socket.recv_fds

def is_short(name):
    there = (HERE / name).exists()
    (HERE / name).unlink(missing_ok=True)
    return there

def scarce_fork():
    if is_short("no fork"):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
    return fork()

def scarce_recv_fds(*arguments):
    message, descriptors, flags, address = recv_fds(*arguments)
    if is_short("no file"):
        while descriptors:
            os.close(descriptors.pop())
    return message, descriptors, flags, address

os.fork, socket.recv_fds = scarce_fork, scarce_recv_fds

def grade(item, options):
    (HERE / "started").touch()
    while item.response and not (HERE / item.response).exists():
        time.sleep(0.01)
    return Verdict(1.0, "correct")
"""


def fail_once(monkeypatch, number):
    """Let ``os.pidfd_open`` fail the first time."""
    real, failures = os.pidfd_open, [OSError(number, os.strerror(number))]

    def pidfd_open(pid):
        if failures:
            raise failures.pop()
        return real(pid)

    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    return failures


@pytest.mark.parametrize("shortage", ["no fork", "no file", "pidfd"])
def test_a_shortage_while_a_grade_starts_ends_no_grade_beside_it(
    grade_path, tmp_path, monkeypatch, shortage
):
    with VerifierPool(2, 600.0, grade_path=grade_path) as pool:
        beside = pool.submit([Item("go on", "")])
        wait_for((tmp_path / "started").exists)
        factory = pool._factory._process
        if shortage == "pidfd":
            failures = fail_once(monkeypatch, errno.EMFILE)
        else:
            (tmp_path / shortage).touch()
        [verdict] = pool.submit([Item("", "")]).result(timeout=60)
        assert verdict.reason == "correct"
        # It has come, and the one process still serves both.
        assert not (failures if shortage == "pidfd" else (tmp_path / shortage).exists())
        assert pool._factory._process is factory and factory.poll() is None
        assert not beside.done()
        (tmp_path / "go on").touch()
        assert beside.result(timeout=60)[0].reason == "correct"


def test_a_shortage_that_does_not_end_is_told_and_the_factory_goes_on(grade_path, monkeypatch):
    factory = WorkerFactory(grade_path, GradeOptions(), 60.0)
    try:
        factory.check()
        process = factory._process
        factory._start_timeout_s = 0.25

        def pidfd_open(pid):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

        told = "w 1 cannot be started: .*Too many open files.*; free memory or processes"
        with monkeypatch.context() as short, pytest.raises(VerifierError, match=told):
            short.setattr(os, "pidfd_open", pidfd_open)
            factory.start_worker("w 1")
        assert factory._process is process and process.poll() is None
        factory._start_timeout_s = 60.0
        factory.start_worker("w 2").reap()
    finally:
        factory.close()


def test_a_thread_that_could_not_start_counts_for_nothing(grade_path, monkeypatch):
    """1 worker and 8 spares are the most: nine failures leave room for all of them."""
    start = threading.Thread.start

    def no_thread(thread):
        if thread.name.startswith("verifier worker"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with VerifierPool(1, grade_path=grade_path) as pool:
        with monkeypatch.context() as short:
            short.setattr(threading.Thread, "start", no_thread)
            for _ in range(9):
                with pytest.raises(RuntimeError, match="can't start new thread"):
                    pool.submit([Item("", "")])
        assert pool.submit([Item("", "")]).result(timeout=60)[0].reason == "correct"


class _Dropping(WorkerFactory):
    """Whoever looks at the process is the last: the thread that starts it drops it then."""

    held = None

    @property
    def _process(self):
        process, self.held = self.held, None
        return process

    @_process.setter
    def _process(self, process):
        self.held = process


def test_a_stop_beside_a_start_that_fails_kills_what_it_saw():
    factory = _Dropping("own_grades:grade", GradeOptions(), 1.0)
    killed = []
    factory._process, factory._is_starting = SimpleNamespace(kill=lambda: killed.append(1)), True
    factory.stop()
    assert killed == [1]


class _Stuck:
    """A process that waits for a disk: it has been killed and does not end."""

    pid = 2**22 + 7  # above all that Linux gives

    def __init__(self, *_arguments, **_options):
        self.returncode = None

    def kill(self):
        pass

    def wait(self, timeout=None):
        assert timeout is not None, "waited for ever"
        raise subprocess.TimeoutExpired("python", timeout)


def test_a_factory_that_does_not_end_is_left_behind_and_named(caplog):
    factory = WorkerFactory("own_grades:grade", GradeOptions(), 1.0)
    ours, theirs = socket.socketpair()
    factory._process, factory._line = _Stuck(), Line(ours)
    with theirs:
        factory.close()
        assert theirs.recv(1) == b""  # its socket is closed
    assert f"the worker factory (pid {_Stuck.pid}) has not ended" in caplog.text


def test_a_program_that_does_not_end_is_left_behind_and_named(caplog, monkeypatch):
    monkeypatch.setattr(program.subprocess, "Popen", _Stuck)
    with program._process("candidate_process", [], []):
        pass
    assert f"candidate_process (pid {_Stuck.pid}) has not ended" in caplog.text

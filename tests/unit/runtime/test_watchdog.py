"""Every wait has a limit; who died or does not answer is named, and who is busy is not."""

import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    RayTaskError,
)

from recipe.run.errors import HintError
from recipe.run.watchdog import (
    EXIT_CODE,
    Liveness,
    read_fatal,
    sentence_of,
)


class Actor:
    """Answers with ``answer``; ``None`` never comes, and an exception is raised."""

    def __init__(self, answer):
        self.answer, self.num_asked = answer, 0

    def ask(self):
        self.num_asked += 1
        return self


@pytest.fixture
def fake_ray(monkeypatch):
    def get(actor):
        if isinstance(actor.answer, Exception):
            raise actor.answer
        return actor.answer

    def wait(refs, timeout, num_returns=1):
        return [each for each in refs if each.answer is not None], []

    monkeypatch.setattr(ray, "wait", wait)
    monkeypatch.setattr(ray, "get", get)


def watched(*, busy=(), **actors):
    liveness = Liveness(limit_s=10.0, on_fault=lambda fault: None)
    for name, actor in actors.items():
        liveness.add(name, actor.ask, may_be_busy=name in busy)
    return liveness


def test_who_gives_no_answer_within_the_limit_is_named_and_who_does_is_asked_again(fake_ray):
    here, silent = Actor("here"), Actor(None)
    late = "b, c did not answer within hint.watchdog.answer_s=10 s"
    assert watched(a=here, b=silent, c=silent).look() == late
    liveness = watched(a=here)
    assert [liveness.look(), liveness.look()] == [None, None]
    assert here.num_asked == 3


def test_a_busy_one_may_take_any_time_and_its_death_is_told_at_once(fake_ray):
    actor = Actor(None)
    liveness = watched(rank=actor, b=Actor("here"), busy=["rank"])
    assert [liveness.look() for _ in range(5)] == [None] * 5
    assert actor.num_asked == 1
    actor.answer = "here"
    assert liveness.look() is None
    actor.answer = ActorDiedError()
    assert liveness.look().startswith("rank died: ")


def test_the_error_with_which_one_answers_is_told_and_one_that_cannot_be_reached_is_not(fake_ray):
    error = RayTaskError("ping", "a traceback", HintError("the queue took no word"))
    told = watched(a=Actor(error.as_instanceof_cause())).look()
    assert told == "a cannot go on: the queue took no word"
    assert watched(a=Actor(ActorUnavailableError("no route", b"0" * 16))).look() is None


def test_the_thread_tells_of_a_fault_while_the_block_runs(fake_ray):
    told, seen = [], threading.Event()
    liveness = Liveness(limit_s=10.0, on_fault=lambda fault: (told.append(fault), seen.set()))
    liveness.add("a", Actor(ActorDiedError()).ask)
    with liveness.watching():
        assert seen.wait(30)
    assert len(told) == 1
    assert told[0].startswith("a died: ")


def test_a_disk_that_hangs_keeps_no_phase_alive(tmp_path):
    code = (
        "import os, sys, threading, time\n"
        "from pathlib import Path\n"
        "from recipe.run import watchdog\n"
        "hang = lambda *_, **__: threading.Event().wait()\n"
        "watchdog._END_S = 0.5\n"
        "os.utime = hang\n"
        "watch = watchdog.Watchdog(Path(sys.argv[1]), {'x': 0.1})\n"
        "watchdog.faulthandler.dump_traceback = hang\n"
        "with watch.phase('the disk', 'x'):\n"
        "    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    end = subprocess.run(command, timeout=50, capture_output=True, text=True)
    assert (end.returncode, end.stderr) == (
        EXIT_CODE,
        "error: the disk took longer than hint.watchdog.x=0.1 s\n",
    )


def test_an_error_on_a_full_disk_and_an_order_to_end_are_told_as_such(tmp_path, monkeypatch):
    usage = SimpleNamespace(free=3_200_000)
    monkeypatch.setattr("recipe.run.watchdog.shutil.disk_usage", lambda path: usage)
    told = sentence_of(RuntimeError("file write\nfailed"), tmp_path)
    assert told == f"RuntimeError: file write failed (the disk of {tmp_path} has 3.2 MB left)"
    assert sentence_of(SystemExit(1), tmp_path) == "the driver was told to end, by SIGTERM"


def test_of_phases_that_are_late_together_the_innermost_is_named(tmp_path):
    code = (
        "import time, pathlib\n"
        "from recipe.run.watchdog import Watchdog\n"
        f"dog = Watchdog(pathlib.Path({str(tmp_path)!r}), {{'x_s': 0.0, 'y_s': 0.0}})\n"
        "with dog.phase('the step', 'x_s'), dog.phase('the server', 'y_s'):\n"
        "    time.sleep(600)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=300, check=False)
    assert done.returncode == 70
    assert read_fatal(tmp_path).startswith(
        "the server took longer than hint.watchdog.y_s=0 s; stacks"
    )


def test_an_error_is_told_by_its_first_cause_however_deep(tmp_path):
    inner = RayTaskError("f", "a traceback", ValueError("no\n  such\tthing")).as_instanceof_cause()
    outer = RayTaskError("g", "a traceback", inner)
    group = ExceptionGroup("all", [ExceptionGroup("some", [outer]), KeyError("later")])
    assert sentence_of(group, tmp_path) == "ValueError: no such thing"

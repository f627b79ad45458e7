"""Who died or does not answer is named; who is busy is left in peace."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import psutil
import pytest
import ray
from processes import wait_for
from ray.exceptions import (
    ActorDiedError,
    ActorUnavailableError,
    OutOfMemoryError,
    RayTaskError,
)

from recipe.run.errors import ConfigError, HintError, StallError, Terminated
from recipe.run.folder_lock import claimed
from recipe.run.liveness import Liveness
from recipe.run.ray_services import RayServices, starting, wait_until_gone
from recipe.run.watchdog import EXIT_CODE, Watchdog, sentence_of, silence_of

LIMIT_S = 10.0


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

    def wait(refs, timeout):
        return ([], refs) if refs[0].answer is None else (refs, [])

    monkeypatch.setattr(ray, "wait", wait)
    monkeypatch.setattr(ray, "get", get)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def watched(clock=None, may_be_busy=False, **actors):
    liveness = Liveness(limit_s=LIMIT_S, on_fault=lambda fault: None, now=clock or Clock())
    for name, actor in actors.items():
        liveness.add(name, actor.ask, may_be_busy=may_be_busy)
    return liveness


def looks(liveness, clock, every_s, count):
    found = []
    for _ in range(count):
        found.append(liveness.look())
        clock.now += every_s
    return found


def test_an_actor_that_answers_is_asked_again_for_as_long_as_it_does(fake_ray):
    clock, actor = Clock(), Actor("here")
    liveness = watched(clock, a=actor)
    assert looks(liveness, clock, every_s=9.0, count=5) == [None] * 5
    assert actor.num_asked == 5
    assert liveness.answers() == {"a": "here"}


def test_one_that_gives_no_answer_within_the_limit_is_named(fake_ray):
    clock = Clock()
    liveness = watched(clock, a=Actor("here"), b=Actor(None))
    # Asked at 0 s; 4 and 8 are within 10 s, 12 is not.
    found = looks(liveness, clock, every_s=4.0, count=4)
    assert found == [None, None, None, "b did not answer within hint.watchdog.answer_s=10 s"]
    assert liveness.answers() == {"a": "here", "b": None}


def test_one_that_stops_answering_is_named_after_the_limit_from_its_last_question(fake_ray):
    clock, actor = Clock(), Actor("here")
    liveness = watched(clock, a=actor)
    assert looks(liveness, clock, every_s=4.0, count=3) == [None] * 3
    actor.answer = None  # the last question was at 8 s: 12 and 16 are within 10 s of it
    assert looks(liveness, clock, every_s=4.0, count=3)[:2] == [None, None]
    assert liveness.look() == "a did not answer within hint.watchdog.answer_s=10 s"


def test_a_busy_one_may_take_any_time_and_its_death_is_told_at_once(fake_ray):
    clock, actor = Clock(), Actor(None)
    liveness = watched(clock, may_be_busy=True, rank=actor)
    assert looks(liveness, clock, every_s=1000.0, count=5) == [None] * 5
    actor.answer = ActorDiedError()
    assert liveness.look().startswith("rank died: ")


def test_one_that_ray_killed_for_want_of_memory_is_told_at_once_with_that_reason(fake_ray):
    actor = Actor(OutOfMemoryError("killed: the node was low on memory"))
    liveness = watched(Clock(), a=actor)
    assert liveness.look() is None  # asked
    assert liveness.look() == "a died: killed: the node was low on memory"


def test_the_error_with_which_one_answers_is_told_at_once(fake_ray):
    error = RayTaskError("ping", "a traceback", HintError("the queue took no word"))
    liveness = watched(Clock(), a=Actor(error.as_instanceof_cause()))
    assert liveness.look() is None  # asked
    assert liveness.look() == "a cannot go on: the queue took no word"


def test_an_actor_that_cannot_be_reached_for_a_moment_is_asked_again_within_its_limit(fake_ray):
    clock = Clock()
    actor = Actor(ActorUnavailableError("no route", b"0" * 16))
    liveness = watched(clock, a=actor)
    assert looks(liveness, clock, every_s=4.0, count=3) == [None] * 3
    assert looks(liveness, clock, every_s=4.0, count=1) == [
        "a did not answer within hint.watchdog.answer_s=10 s"
    ]


def test_the_thread_tells_of_a_fault_while_the_block_runs(fake_ray):
    told, seen = [], threading.Event()
    liveness = Liveness(limit_s=LIMIT_S, on_fault=lambda fault: (told.append(fault), seen.set()))
    liveness.add("a", Actor(ActorDiedError()).ask)
    with liveness.watching():
        assert seen.wait(30)
    assert len(told) == 1
    assert told[0].startswith("a died: ")


def test_a_folder_that_another_process_claimed_is_refused_with_its_holder(tmp_path):
    lock = tmp_path / ".lock"
    code = (
        "import sys; from pathlib import Path\n"
        "from recipe.run.folder_lock import claimed\n"
        "with claimed(Path(sys.argv[1])):\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match=f"in use by another run .process {holder.pid} on "):
            with claimed(lock):
                pass
        holder.kill()
    with claimed(lock):  # a killed process holds nothing
        pass


def test_one_that_waits_gets_the_folder_when_its_holder_ends(tmp_path):
    lock, ended = tmp_path / ".lock", threading.Event()
    holder = claimed(lock)
    holder.__enter__()
    threading.Timer(0.5, lambda: (holder.__exit__(None, None, None), ended.set())).start()
    with claimed(lock, wait_s=60):
        assert ended.wait(60)


def test_an_error_from_an_actor_is_told_by_its_cause_in_one_line(tmp_path):
    inner = RayTaskError("f", "a traceback\nof many lines", OSError(28, "No space left"))
    group = ExceptionGroup("tasks", [inner.as_instanceof_cause()])
    assert sentence_of(group, tmp_path) == "OSError: No space left"


def test_a_process_that_is_gone_is_named_without_rays_account_of_what_may_have_been(tmp_path):
    # As Ray 2.60 says it of a process that got SIGKILL.
    told = RuntimeError(
        "The actor died unexpectedly before finishing this task.\n\tclass_name: "
        "create_colocated_worker_cls.<locals>.WorkerDict\n\tactor_id: 7296\n\tpid: 10295\n\tname: "
        "VnNsWorkerDict_0:0\n\tnamespace: 23e1\n\tip: 10.0.0.2\nThe actor is dead because its "
        "worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker "
        "unexpectedly exits with an error code 2. Some common causes include: ..."
    )
    assert sentence_of(told, tmp_path) == (
        "RuntimeError: WorkerDict (pid 10295) is gone: it crashed or was killed; check dmesg for "
        "the OOM killer"
    )
    other = RuntimeError("The actor died because of an error raised in its creation task: no port")
    assert sentence_of(other, tmp_path) == f"RuntimeError: {other}"


def test_the_reason_is_told_where_the_runs_folder_is_gone_too(tmp_path):
    told = sentence_of(RuntimeError("the true reason"), tmp_path / "removed")
    assert told == "RuntimeError: the true reason"


def test_an_error_on_a_full_disk_says_so(tmp_path, monkeypatch):
    usage = SimpleNamespace(free=3_200_000)
    monkeypatch.setattr("recipe.run.watchdog.shutil.disk_usage", lambda path: usage)
    told = sentence_of(RuntimeError("file write\nfailed"), tmp_path)
    assert told == f"RuntimeError: file write failed (the disk of {tmp_path} has 3.2 MB left)"


SLEEPER = (
    "import ctypes, sys, time; ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0); "
    "time.sleep(600)"
)


@contextlib.contextmanager
def child_called(name):
    """A child of this process with the name of one of Ray's."""
    with subprocess.Popen([sys.executable, "-c", SLEEPER, name]) as process:
        child = psutil.Process(process.pid)
        while child.name() != name:
            time.sleep(0.01)
        yield process
        process.kill()


@pytest.fixture
def raylet():
    with child_called("raylet") as process:
        yield process


def test_ray_is_well_while_its_processes_run(raylet):
    RayServices().check()


def test_a_process_of_rays_that_died_is_named(raylet):
    services = RayServices()
    raylet.kill()
    raylet.wait()
    with pytest.raises(StallError, match="Ray's process raylet died; check dmesg"):
        services.check()


def test_a_process_of_rays_that_stays_stopped_is_named(raylet, monkeypatch):
    services = RayServices()
    raylet.send_signal(signal.SIGSTOP)
    while psutil.Process(raylet.pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.01)
    services.check()  # it may go on in a moment
    monkeypatch.setattr("recipe.run.ray_services._STOPPED_S", -1.0)
    with pytest.raises(StallError, match="Ray's process raylet was stopped .* find out what"):
        services.check()


def test_processes_are_waited_for_where_the_kernel_has_no_handle_for_one_that_ends(monkeypatch):
    def no_handle(pid, flags=0):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("os.pidfd_open", no_handle)
    short, long = (subprocess.Popen(["sleep", seconds]) for seconds in ("0.3", "60"))
    wait_until_gone([psutil.Process(each.pid) for each in (short, long)], 1.0)
    assert short.poll() == 0 and long.poll() is None
    long.kill()
    assert long.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    "deed, limit_s, told",
    [
        ("None", 0.5, "Ray did not start within hint.watchdog.queue_s=0.5 s"),
        ("child.kill()", 600, "Ray's process gcs_server died while Ray started"),
    ],
)
def test_a_start_of_ray_that_does_not_come_ends_the_command_and_its_processes(deed, limit_s, told):
    code = (
        "import subprocess, sys, time, psutil\n"
        "from recipe.run.ray_services import starting\n"
        f"child = subprocess.Popen([sys.executable, '-c', {SLEEPER!r}, 'gcs_server'])\n"
        "while psutil.Process(child.pid).name() != 'gcs_server': time.sleep(0.01)\n"
        "print(child.pid, flush=True)\n"
        f"with starting({limit_s}): {deed}; time.sleep(600)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: {told} (")
    with contextlib.suppress(psutil.NoSuchProcess):
        child = psutil.Process(int(done.stdout))
        while child.status() != psutil.STATUS_ZOMBIE:  # its parent is gone: nobody waits for it
            time.sleep(0.01)


def test_what_ray_raises_while_it_starts_is_told_in_one_line():
    with pytest.raises(StallError, match="^Ray did not start: no raylet$"), starting(600):
        raise Exception("no\nraylet")  # noqa: TRY002 - as Ray's


def test_sigterm_while_ray_starts_is_told_as_such():
    with pytest.raises(Terminated), starting(600):
        sys.exit(signal.SIGTERM)  # as Ray's handler


def test_a_watch_that_fails_is_a_fault_itself():
    told = []
    liveness = Liveness(limit_s=1.0, on_fault=told.append)

    def ask():
        raise RuntimeError("not of Ray")

    liveness.add("an actor", ask)
    with liveness.watching():
        wait_for(lambda: told)
    assert told == ["the watch over the run's actors failed: not of Ray"]


def test_a_disk_that_hangs_keeps_no_phase_alive(tmp_path):
    code = (
        "import os, sys, threading, time\n"
        "from pathlib import Path\n"
        "from recipe.run import watchdog\n"
        "hang = lambda *_, **__: threading.Event().wait()\n"
        "watchdog._END_S = 0.5\n"
        "os.utime = hang\n"
        "watch = watchdog.Watchdog(Path(sys.argv[1]))\n"
        "Path.mkdir = hang\n"
        "with watch.phase('the disk', 0.1, 'x'):\n"
        "    time.sleep(60)\n"
    )
    end = subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=50)
    assert end.returncode == EXIT_CODE


def test_a_driver_that_was_told_to_end_says_so(tmp_path):
    assert sentence_of(SystemExit(1), tmp_path) == "the driver was told to end, by SIGTERM"


def test_a_heartbeat_is_silent_until_the_watchdog_of_the_driver_beats(tmp_path):
    silence = silence_of(tmp_path)
    watchdog = Watchdog(tmp_path)
    try:
        before = silence._changed_at
        for _ in range(600):
            silence.length_s()
            if silence._changed_at > before:
                break
            threading.Event().wait(0.1)
        assert silence._changed_at > before
    finally:
        watchdog.stop()

"""What the command does when it is stopped, and when Ray or the driver dies: with a driver that waits.

The whole training under faults is the campaign's (docs/reliability.md).
"""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from runs import AS_ON_A_GPU, environment, processes_of, wait_for

pytestmark = pytest.mark.slow
ANSWER_S = 8
CODE = """
import time
from recipe.hint import main_hint
from recipe.hint.runtime import launcher
from recipe.hint.runtime.preflight import run
from recipe.hint.runtime.task_runner import HintTaskRunner

class Waits(HintTaskRunner):
    def _run(self, config, folder, watchdog):
        folder.say("ready")
        time.sleep(600)

run.preflight = lambda config, argv: []
launcher.HintTaskRunner = Waits
launcher._STOPPED_S = 5.0
main_hint.main()
"""


def waiting_run(folder):
    words = [f"hint.run_dir={folder}", f"hint.watchdog.answer_s={ANSWER_S}"]
    return subprocess.Popen(
        [sys.executable, "-c", CODE, "hardware=laptop", "trainer.method=sage", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder, AS_ON_A_GPU),
        start_new_session=True,
    )


@pytest.fixture
def run(tmp_path):
    """A command whose driver waits, and all its processes by what they call themselves."""
    process = waiting_run(tmp_path)
    console = tmp_path / "logs/console.log"
    try:
        wait_for(lambda: console.exists() and "ready" in console.read_text(), "ready", process)
        yield process
    finally:
        with_children = (
            [*psutil.Process(process.pid).children(recursive=True)] if is_up(process) else []
        )
        if is_up(process):
            os.killpg(process.pid, signal.SIGKILL)
        for child in [*with_children, *processes_of(tmp_path)]:
            if child.is_running():
                child.kill()
        process.wait()


def is_up(process):
    return process.poll() is None


def children_of(process):
    return psutil.Process(process.pid).children(recursive=True)


def named(processes, name):
    [found] = [each for each in processes if name in " ".join(each.cmdline()[:1])]
    return found


def assert_gone(processes, within_s=60):
    deadline = time.monotonic() + within_s
    while alive := [each for each in processes if each.is_running() and each.status() != "zombie"]:
        assert time.monotonic() < deadline, [each.cmdline()[:1] for each in alive]
        time.sleep(0.2)


@pytest.mark.parametrize(
    "target, number, told",
    [
        (
            "HintTaskRunner",
            signal.SIGSTOP,
            f"the driver did not answer within .*answer_s={ANSWER_S}",
        ),
        ("HintTaskRunner", signal.SIGKILL, "the driver died"),
        ("raylet", signal.SIGKILL, "Ray's process raylet died"),
        ("raylet", signal.SIGSTOP, "Ray's process raylet was stopped"),
        ("gcs_server", signal.SIGKILL, "Ray's process gcs_server died"),
        ("gcs_server", signal.SIGSTOP, "Ray's process gcs_server was stopped"),
    ],
)
def test_a_process_that_dies_or_stops_ends_the_command_with_its_name(run, target, number, told):
    children = children_of(run)
    named(children, target).send_signal(number)
    _, err = run.communicate(timeout=300)
    assert run.returncode == 2, err
    assert told_in(told, err)
    assert_gone(children)


def told_in(pattern, err):
    import re

    return re.search(rf"^error: .*{pattern}", err, re.MULTILINE)


@pytest.mark.parametrize(
    "number, code, told",
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGKILL, -9, None),
    ],
)
def test_a_command_that_is_ended_takes_its_processes_along(run, number, code, told):
    children = children_of(run)
    run.send_signal(number)
    _, err = run.communicate(timeout=300)
    assert run.returncode == code, err
    assert told is None or f"error: {told}\n" in err
    assert_gone(children)


def test_a_second_run_in_the_folder_is_refused_and_the_first_goes_on(run, tmp_path):
    second = waiting_run(tmp_path)
    _, err = second.communicate(timeout=300)
    assert second.returncode == 2
    assert f"is in use by another run (process {run.pid} on " in err
    assert is_up(run)
    assert "ready" in (tmp_path / "logs/console.log").read_text()

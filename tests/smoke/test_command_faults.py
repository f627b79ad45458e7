"""A command that is ended, and one whose Ray or driver dies or stops; the driver only waits.

The whole training under faults is the campaign's (docs/lab/reliability.md).
"""

import contextlib
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest
from runs import AS_ON_A_GPU, environment, processes_of, wait_for

ANSWER_S = 8
CODE = """
import time
from recipe.hint import main_hint
from recipe.run import launcher, task_runner
from recipe.hint.adapter.preflight import run
from recipe.run.task_runner import HintTaskRunner

class Waits(HintTaskRunner):
    def _run(self, config, folder, watchdog):
        folder.say("ready")
        time.sleep(600)

run.preflight = lambda config, argv: []
task_runner.HintTaskRunner = Waits
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
        # Ignored where the tests were started in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def children_of(process):
    return psutil.Process(process.pid).children(recursive=True)


@pytest.fixture
def run(tmp_path):
    """A command whose driver waits; nothing of it is left when the test ends."""
    process = waiting_run(tmp_path)
    console = tmp_path / "logs/console.log"
    children = []
    try:
        wait_for(lambda: console.exists() and "ready" in console.read_text(), "ready", process)
        children = children_of(process)
        yield process
    finally:
        process.kill()
        process.wait()
        for child in [*children, *processes_of(tmp_path)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


def assert_gone(processes):
    # Ray's agents take a minute to find out that nobody is there whom they could tell.
    _, alive = psutil.wait_procs(processes, timeout=150)
    assert [each.name() for each in alive] == []


@pytest.mark.long
@pytest.mark.parametrize(
    "target, number, told",
    [
        ("ray::Waits", signal.SIGSTOP, f"the driver did not answer within .*answer_s={ANSWER_S} s"),
        ("ray::Waits", signal.SIGKILL, "the driver died: "),
        ("ray::Waits", signal.SIGTERM, "the driver was told to end, by SIGTERM"),
        ("raylet", signal.SIGKILL, "Ray's process raylet died"),
        ("gcs_server", signal.SIGSTOP, "Ray's process gcs_server was stopped"),
    ],
)
def test_a_process_that_dies_or_stops_ends_the_command_with_its_name(run, target, number, told):
    children = children_of(run)
    [victim] = [each for each in children if target in each.cmdline()[0].rpartition("/")[2]]
    victim.send_signal(number)
    _, err = run.communicate(timeout=300)
    assert run.returncode == 2, err
    assert re.search(rf"^error: .*{told}", err, re.MULTILINE), err
    assert_gone(children)


@pytest.mark.parametrize(
    "number, code, told",
    [
        pytest.param(signal.SIGINT, 130, "error: interrupted\n", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 143, "error: terminated\n", marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, -9, "", marks=pytest.mark.long),
    ],
)
def test_a_command_that_is_ended_takes_its_processes_along(run, number, code, told):
    children = children_of(run)
    run.send_signal(number)
    _, err = run.communicate(timeout=300)
    assert run.returncode == code, err
    assert told in err
    assert_gone(children)


@pytest.mark.long
def test_a_second_run_in_the_folder_is_refused_and_the_first_goes_on(run, tmp_path):
    second = waiting_run(tmp_path)
    _, err = second.communicate(timeout=300)
    assert second.returncode == 2
    assert "is in use by another run" in err
    time.sleep(1)
    assert run.poll() is None
    assert "ready" in (tmp_path / "logs/console.log").read_text()

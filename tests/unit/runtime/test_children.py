"""What a command started ends with it, and a signal ends the wait for it wherever it comes."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from recipe.run.children import (
    deferred_signals,
    end_child,
    pause,
    raise_deferred,
)
from recipe.run.errors import ConfigError, HintError, Terminated
from recipe.run.whole_file import claimed


@pytest.fixture(autouse=True)
def _handlers():
    """Ctrl-C as at a terminal, whatever started the tests."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_is_raised_where_it_is_asked_for(number, error):
    steps = []
    with pytest.raises(error) as raised, deferred_signals():
        os.kill(os.getpid(), number)
        steps.append("goes on")
        try:
            pause(0.0)
        finally:  # the block ends what it started: a second one does not wait
            with pytest.raises(error):
                os.kill(os.getpid(), number)
                steps.append("never")
    assert (steps, raised.type) == (["goes on"], error)
    raise_deferred()  # nothing is left of it


def test_a_second_signal_ends_a_block_that_does_not_ask():
    with pytest.raises(Terminated), deferred_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("it was not raised")


def test_a_signal_is_not_lost_in_an_error_that_comes_with_it():
    # A scheduler ends all processes at once: the driver's death must not hide why.
    with pytest.raises(Terminated), deferred_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        raise HintError("the driver died")


def test_a_second_signal_kills_what_the_first_one_could_not_end():
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)"
    with pytest.raises(Terminated), deferred_signals():
        job = subprocess.Popen(
            [sys.executable, "-c", f"{deaf}; time.sleep(600)"],
            stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert job.stdout.readline() == b"\n"
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            pause(0.0)
        finally:
            with pytest.raises(KeyboardInterrupt):
                end_child(job)
    assert job.wait(10) == -signal.SIGKILL


HOLDER = """
import subprocess, sys, time
from pathlib import Path
from recipe.run.whole_file import claimed
with claimed(Path(sys.argv[1])) as number:
    child = subprocess.Popen(["sleep", "600"], pass_fds=(number,), stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    time.sleep(600)
"""


def test_a_folder_is_held_until_the_last_process_of_its_holder_ends(tmp_path):
    lock = tmp_path / ".lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True
    ) as command:
        child = int(command.stdout.readline())
        command.kill()
    with pytest.raises(ConfigError, match="is in use by another run"), claimed(lock):
        pass
    threading.Timer(0.5, os.kill, (child, signal.SIGKILL)).start()
    with claimed(lock, wait_s=60):
        pass

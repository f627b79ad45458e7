"""A signal to a command that waits for processes ends them and it, wherever it comes."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from recipe.run import children
from recipe.run.children import deferred_signals, end_children, pause, raise_deferred
from recipe.run.errors import HintError, Terminated

# Wait for a job, and send SIGTERM before the k-th bytecode of that, for each k that is given.
_PROGRAM = """
import os, signal, sys
from recipe.run.errors import HintError, Terminated
from recipe.study import multirun
from recipe.run.silence import Silence
multirun._POLL_S = 0.01
FILES = ("subprocess.py", "multirun.py", "silence.py", "contextlib.py", "children.py")

def tracer(last):
    num_seen = 0
    def trace(frame, event, arg):
        nonlocal num_seen
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_code.co_filename.endswith(FILES):
            num_seen += num_seen > 0 or frame.f_code.co_name == "wait"
            if num_seen == last:
                os.kill(os.getpid(), signal.SIGTERM)
        return trace
    return trace

for k in map(int, sys.argv[1:]):
    sys.settrace(tracer(k))
    try:
        multirun._run_process(["sleep", "600"], Silence([]))
    except Terminated:
        sys.settrace(None)
        print(k, flush=True)
try:
    os.waitpid(-1, 0)
except ChildProcessError:
    print("no job is left")
"""


def test_a_signal_before_any_bytecode_of_the_wait_ends_the_job_and_the_command():
    # 1 to 40 without a gap: the first poll takes subprocess's lock and gives it back there.
    points = [str(k) for k in (*range(1, 41), *range(50, 900, 50))]
    command = [sys.executable, "-c", _PROGRAM, *points]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=100, check=True)
    assert ended.stdout.split("\n") == [*points, "no job is left", ""]


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


def test_a_second_signal_ends_a_block_that_does_not_ask(monkeypatch):
    monkeypatch.setattr(children, "_UNHEARD_S", 0.05)
    with pytest.raises(Terminated), deferred_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # the same order, told twice
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("it was not raised")


def test_a_signal_in_the_last_step_of_a_block_is_raised_at_its_end():
    with pytest.raises(KeyboardInterrupt), deferred_signals():
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_signal_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as for what a shell starts with "&"
    with deferred_signals():
        os.kill(os.getpid(), signal.SIGINT)
        pause(0.0)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_signal_is_not_lost_in_an_error_that_comes_with_it():
    # A scheduler ends all processes at once: the driver's death must not hide why.
    with pytest.raises(Terminated), deferred_signals():
        os.kill(os.getpid(), signal.SIGTERM)
        raise HintError("the driver died")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_kills_what_the_first_one_could_not_end(number):
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)"
    with pytest.raises(Terminated), deferred_signals():
        jobs = [
            subprocess.Popen(
                [sys.executable, "-c", f"{deaf}; time.sleep(600)"],
                stdout=subprocess.PIPE, start_new_session=True,
            )
            for _ in range(2)
        ]  # fmt: skip
        assert [job.stdout.readline() for job in jobs] == [b"\n", b"\n"]
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Timer(0.3, os.kill, (os.getpid(), number)).start()
        try:
            pause(0.0)
        finally:
            with pytest.raises(KeyboardInterrupt):
                end_children(jobs)
    assert [job.wait(10) for job in jobs] == [-signal.SIGKILL] * 2

"""Processes of tests: how one is started so that it hears Ctrl-C, and what is left of it."""

import signal
import time
from functools import partial
from pathlib import Path

import psutil

# For `preexec_fn`: SIGINT is ignored where the tests were started in the background.
HEARS_SIGINT = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)


def wait_for(is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError("not within 60 s")
        time.sleep(0.05)


def is_alive(pid):
    """False also for one that has ended and waits for its reaper."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descendants():
    found = psutil.Process().children(recursive=True)
    return {process for process in found if process.status() != psutil.STATUS_ZOMBIE}


def peak_mib(process):
    """Largest resident size so far; 0 when the process is gone."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int((status.partition("VmHWM:")[2].split() or ["0"])[0]) >> 10

"""Processes of tests: how one is started so that it hears Ctrl-C, and whether it has ended."""

import os
import signal
import time
from functools import partial
from pathlib import Path

# For `preexec_fn`: SIGINT is ignored where the tests were started in the background.
HEARS_SIGINT = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)


def wait_for(is_so):
    deadline = time.monotonic() + 60
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError("not within 60 s")
        time.sleep(0.05)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]

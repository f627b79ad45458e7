"""Start processes that do not outlive the command, however it ends."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import IO, NoReturn

from recipe.hint.errors import Terminated

# How long an interrupted run may take to end Ray before it is killed.
GRACE_S = 60.0
_PR_SET_PDEATHSIG = 1


def start_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    log: IO | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen:
    """Start a process that the kernel ends when this one ends.

    Args:
        command: Program and arguments.
        env: The whole environment.
        log: Takes what it prints; ``None``: this process's console.
        pass_fds: Open files that it keeps, such as a lock that it is to hold until its end.
    """
    return subprocess.Popen(
        command,
        stdout=log,
        stderr=subprocess.STDOUT if log else None,
        env=env,
        pass_fds=pass_fds,
        # Ctrl-C reaches only this process, which passes it on.
        start_new_session=True,
        preexec_fn=functools.partial(_end_with, os.getpid()),
    )


def end_children(processes: Sequence[subprocess.Popen]) -> None:
    """Ask processes to end, wait, and kill the others together with what they started."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + GRACE_S
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def ends_on_sigterm() -> Iterator[None]:
    """Raise :class:`Terminated` in the block when SIGTERM comes."""

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that happens."""
    with contextlib.suppress(OSError, AttributeError):  # not on this system
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before it was asked for
        os.kill(os.getpid(), signal.SIGTERM)

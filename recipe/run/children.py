"""Start processes that do not outlive the command, and wait for them, however it ends."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

from recipe.run.errors import Terminated

# How long an interrupted run may take to end Ray before it is killed.
GRACE_S = 60.0
KILLED_S = 10.0  # how long a killed one may take: it may wait for a disk
_PR_SET_PDEATHSIG = 1
_ENDING = (signal.SIGTERM, signal.SIGINT)
_UNHEARD_S = 5.0
_noted: dict[int, float] = {}  # signal -> when it came; of the process, as signals are


def start_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    log: IO | None = None,
    pass_fds: Sequence[int] = (),
    cwd: Path | None = None,
) -> subprocess.Popen:
    """Start a process that the kernel ends when this one ends.

    Args:
        command: Program and arguments.
        env: The whole environment.
        log: Takes what it prints; ``None``: this process's console.
        pass_fds: Open files that it keeps, such as a lock that it is to hold until its end.
        cwd: The folder it works in; ``None``: this one's.
    """
    return subprocess.Popen(
        command,
        stdout=log,
        stderr=subprocess.STDOUT if log else None,
        env=env,
        pass_fds=pass_fds,
        cwd=cwd,
        # Ctrl-C reaches only this process, which passes it on.
        start_new_session=True,
        preexec_fn=ends_with_this(),
    )


def ends_with_this() -> Callable[[], None]:
    """Return what a new process calls first, for the kernel to end it when this one ends."""
    return functools.partial(_end_with, os.getpid())


def end_children(processes: Sequence[subprocess.Popen]) -> None:
    """Ask processes to end, wait, and kill the others together with what they started."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + GRACE_S
    try:
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:  # after a second signal too
        left = [each for each in processes if each.poll() is None]
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    for process in left:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILLED_S)


@contextlib.contextmanager
def deferred_signals() -> Iterator[None]:
    """Hold SIGTERM and Ctrl-C back in the block; :func:`raise_deferred` raises what came.

    Raised anywhere else, they may leave the lock of a ``Popen`` held, which then waits forever,
    or get lost in a callback. The block has to call that function again and again; what came
    since the last call is raised at its end. A second signal is raised at once where the block
    hangs, or already ends what it started. Blocks do not nest.
    """
    # One that is ignored, as Ctrl-C by what a shell starts in the background, stays so.
    heard = [each for each in _ENDING if signal.getsignal(each) != signal.SIG_IGN]
    before = {each: signal.signal(each, _note) for each in heard}
    is_raised = False
    try:
        yield
    except KeyboardInterrupt:
        is_raised = True
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        came = [*_noted]
        _noted.clear()
        if came and not is_raised:  # also in place of an error that came with it
            _raise(came[0])


def raise_deferred() -> None:
    """Raise what came since :func:`deferred_signals` began.

    Raises:
        Terminated: After SIGTERM.
        KeyboardInterrupt: After Ctrl-C.
    """
    if not _noted:
        return
    for each in _ENDING:
        if signal.getsignal(each) is _note:
            signal.signal(each, _raise)
    _raise(next(iter(_noted)))


def pause(duration_s: float) -> None:
    """Sleep, then raise what came, as :func:`raise_deferred` does."""
    time.sleep(duration_s)
    raise_deferred()


def raise_on_sigterm() -> None:
    """Let SIGTERM be :class:`Terminated` from here on, outside of :func:`deferred_signals`."""
    signal.signal(signal.SIGTERM, _raise)


def _note(number: int, _frame: FrameType | None) -> None:
    now_s = time.monotonic()
    if any(now_s - came_s > _UNHEARD_S for came_s in _noted.values()):
        _raise(number)
    _noted.setdefault(number, now_s)


def _raise(number: int, _frame: FrameType | None = None) -> NoReturn:
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def _end_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that happens."""
    with contextlib.suppress(OSError, AttributeError):  # not on this system
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before it was asked for
        os.kill(os.getpid(), signal.SIGTERM)

"""Processes that this one started, none of which outlives it, and signals that wait."""

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
from typing import IO, Any, NoReturn

from recipe.run.errors import Terminated

GRACE_S = 60.0  # how long an interrupted run may take to end Ray before it is killed
_POLL_S = 0.2
_KILLED_S = 10.0  # how long a killed one may take: it may wait for a disk
_came: list[int] = []  # signals; of the process, as they are


def start_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    log: IO | None = None,
    pass_fds: Sequence[int] = (),
    cwd: Path | None = None,
) -> subprocess.Popen:
    """Start a process that the kernel ends when this one ends.

    ``env`` is added to the environment; ``log`` takes what it prints, else the console;
    ``pass_fds`` are open files that it keeps, such as a lock that it is to hold until its end.
    """
    return subprocess.Popen(
        command,
        stdout=log,
        stderr=subprocess.STDOUT if log else None,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
        pass_fds=pass_fds,
        cwd=cwd,
        start_new_session=True,  # Ctrl-C reaches only this process, which passes it on
        preexec_fn=functools.partial(_end_with, os.getpid()),
    )


def run_child(
    command: Sequence[str], look: Callable[[], object] = lambda: None, **options: Any
) -> int:
    """Run a process as :func:`start_child` does, to its end; return its exit code.

    ``look`` is called while it runs. If it raises, or a signal came, the process is ended.
    """
    process = start_child(command, **options)
    try:
        while process.poll() is None:
            look()
            pause(_POLL_S)
    finally:
        end_child(process)
    return process.returncode


def _end_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it ended before it was asked for
        os.kill(os.getpid(), signal.SIGTERM)


def end_child(process: subprocess.Popen) -> None:
    """Ask a process to end, wait, and kill it together with what it started."""
    process.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    finally:  # after a second signal too
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(_KILLED_S)


@contextlib.contextmanager
def deferred_signals() -> Iterator[None]:
    """Hold SIGTERM and Ctrl-C back in the block; :func:`raise_deferred` raises what came.

    Raised anywhere else, they may leave the lock of a ``Popen`` held, which then waits forever,
    or get lost in a callback. The block has to call that function again and again; what came
    since the last call is raised at its end. A second signal is raised at once: the block hangs,
    or already ends what it started. Blocks do not nest.
    """
    both = (signal.SIGTERM, signal.SIGINT)
    # One that is ignored, as Ctrl-C by what a shell starts in the background, stays so.
    heard = [each for each in both if signal.getsignal(each) != signal.SIG_IGN]
    before = {each: signal.signal(each, _note) for each in heard}
    try:
        yield
    except KeyboardInterrupt:
        _came.clear()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if _came:  # also in place of an error that came with it
            _raise(_came.pop())


def raise_deferred() -> None:
    """Raise what came since :func:`deferred_signals` began; the next one is raised at once."""
    if _came:
        _raise(_came[0])


def pause(duration_s: float) -> None:
    """Sleep, then raise what came, as :func:`raise_deferred` does."""
    time.sleep(duration_s)
    raise_deferred()


def raise_on_sigterm() -> None:
    """Let SIGTERM be :class:`Terminated` from here on, outside of :func:`deferred_signals`."""
    signal.signal(signal.SIGTERM, _raise)


def _note(number: int, _frame: FrameType | None) -> None:
    if _came:
        _raise(number)
    _came.append(number)


def _raise(number: int, _frame: FrameType | None = None) -> NoReturn:
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

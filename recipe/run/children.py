"""Processes that this one started: none outlives it, and signals wait until it can be interrupted.

Ray's own services, if this process started them, are watched and ended here too.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

import psutil

from recipe.run.errors import StallError, Terminated, one_line

# How long an interrupted run may take to end Ray before it is killed.
GRACE_S = 60.0
KILLED_S = 10.0  # how long a killed one may take: it may wait for a disk
_STOPPED_S = 30.0  # Ray gives up by itself after a minute
_LOOK_EVERY_S = 5.0  # for new processes: a look reads all of the machine's
_SHUTDOWN_S = 30.0
_UNHEARD_S = 5.0
_PR_SET_PDEATHSIG = 1
_ENDING = (signal.SIGTERM, signal.SIGINT)
_SERVICES = ("gcs_server", "raylet")
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied)
_came: list[tuple[int, float]] = []  # a signal and when; of the process, as signals are


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
        preexec_fn=functools.partial(_end_with, os.getpid()),
    )


def _end_with(parent: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # not on this system
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before it was asked for
        os.kill(os.getpid(), signal.SIGTERM)


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
        came = [*_came]
        _came.clear()
        if came and not is_raised:  # also in place of an error that came with it
            _raise(came[0][0])


def raise_deferred() -> None:
    """Raise what came since :func:`deferred_signals` began; the next one is raised at once."""
    if _came:
        number, _ = _came[0]
        _came[0] = number, float("-inf")
        _raise(number)


def pause(duration_s: float) -> None:
    """Sleep, then raise what came, as :func:`raise_deferred` does."""
    time.sleep(duration_s)
    raise_deferred()


def raise_on_sigterm() -> None:
    """Let SIGTERM be :class:`Terminated` from here on, outside of :func:`deferred_signals`."""
    signal.signal(signal.SIGTERM, _raise)


def _note(number: int, _frame: FrameType | None) -> None:
    if _came and time.monotonic() - _came[0][1] > _UNHEARD_S:
        _raise(number)
    _came.append((number, time.monotonic()))


def _raise(number: int, _frame: FrameType | None = None) -> NoReturn:
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


class RayServices:
    """The node's two services, and everything that they started.

    If one of them is gone, Ray ends this process after a minute, without an error of ours; one that
    is stopped keeps Ray's own shutdown waiting forever. A cluster that was joined has none here.
    """

    def __init__(self) -> None:
        children = psutil.Process().children(recursive=True)
        self._services = {name: each for each in children if (name := _name(each)) in _SERVICES}
        self.are_ours = bool(self._services)
        self._started: set[psutil.Process] = set()
        self._running_at = dict.fromkeys(self._services, time.monotonic())
        self._looked_at = 0.0

    def check(self) -> None:
        """Look at each; ``StallError`` if one died, or has been stopped for half a minute."""
        for name, service in self._services.items():
            status = _status(service)
            if status in (psutil.STATUS_DEAD, psutil.STATUS_ZOMBIE):
                raise StallError(f"Ray's process {name} died; check dmesg for the OOM killer")
            if status != psutil.STATUS_STOPPED:
                self._running_at[name] = time.monotonic()
            elif time.monotonic() - self._running_at[name] > _STOPPED_S:
                raise StallError(f"Ray's process {name} was stopped (SIGSTOP) and did not go on")
        if time.monotonic() - self._looked_at > _LOOK_EVERY_S:
            self._look()

    def shut_down(self, end: Callable[[], None]) -> None:
        """End Ray by ``end``; what does not end by itself is killed."""
        impatience = threading.Timer(_SHUTDOWN_S, self._kill_all)
        impatience.daemon = True
        try:
            self._look()
            for service in self._services.values():
                if _status(service) == psutil.STATUS_STOPPED:
                    _kill(service)
            impatience.start()
            end()
            # A stopped process does not notice that Ray has ended.
            # Not by psutil's wait: the kernel may answer ENOENT for one that ends at this moment.
            deadline = time.monotonic() + KILLED_S
            while any(is_running(each.pid) for each in self._started):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.05)
        finally:  # even if a second signal ended the wait
            impatience.cancel()
            self._kill_all()

    def _kill_all(self) -> None:
        for each in (*self._services.values(), *self._started):
            _kill(each)

    def _look(self) -> None:
        self._looked_at = time.monotonic()
        for service in self._services.values():
            with contextlib.suppress(*_GONE):
                self._started |= {*service.children(recursive=True)}


def is_running(pid: int) -> bool:
    """Return whether a process of this machine has not ended."""
    try:
        return _status(psutil.Process(pid)) not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False


@contextlib.contextmanager
def starting_ray(limit_s: float) -> Iterator[None]:
    """End this process, with the reason, where Ray does not start while the block runs.

    Ray waits for its own services without a limit, and nothing can interrupt it.

    Args:
        limit_s: Longest time in seconds, ``hint.watchdog.queue_s``.
    """

    def give_up() -> None:
        sys.stderr.write(
            f"error: Ray did not start within hint.watchdog.queue_s={limit_s:g} s (its logs: "
            f"/tmp/ray/session_latest/logs, unless ray_kwargs gives another place)\n"
        )
        sys.stderr.flush()
        for child in psutil.Process().children(recursive=True):
            _kill(child)
        os._exit(2)

    limit = threading.Timer(limit_s, give_up)
    limit.daemon = True
    limit.start()
    try:
        yield
    except SystemExit as error:
        if error.code == signal.SIGTERM:
            raise Terminated from None
        raise
    except Exception as error:  # noqa: BLE001 - Ray raises bare ones
        raise StallError(f"Ray did not start: {one_line(error)}") from error
    finally:
        limit.cancel()


def _status(process: psutil.Process) -> str:
    try:
        return process.status() if process.is_running() else psutil.STATUS_DEAD
    except psutil.AccessDenied:  # of another user
        return psutil.STATUS_RUNNING
    except psutil.NoSuchProcess:
        return psutil.STATUS_DEAD


def _name(process: psutil.Process) -> str:
    """Return a process's name; nothing where it has just ended."""
    try:
        return process.name()
    except _GONE:
        return ""


def _kill(process: psutil.Process) -> None:
    with contextlib.suppress(*_GONE):
        process.kill()

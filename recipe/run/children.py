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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, NoReturn

import psutil

from recipe.run.errors import StallError, Terminated, one_line

GRACE_S = 60.0  # how long an interrupted run may take to end Ray before it is killed
_KILLED_S = 10.0  # how long a killed one may take: it may wait for a disk
_STOPPED_S = 30.0  # Ray gives up by itself after a minute
_LOOK_EVERY_S = 5.0  # for new processes: a look reads all of the machine's
_SHUTDOWN_S = 30.0
_UNHEARD_S = 5.0
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied)
_ENDED = (psutil.STATUS_DEAD, psutil.STATUS_ZOMBIE)
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

    ``log`` takes what it prints, else the console; ``pass_fds`` are open files that it keeps, such
    as a lock that it is to hold until its end.
    """
    return subprocess.Popen(
        command,
        stdout=log,
        stderr=subprocess.STDOUT if log else None,
        env=env,
        pass_fds=pass_fds,
        cwd=cwd,
        start_new_session=True,  # Ctrl-C reaches only this process, which passes it on
        preexec_fn=functools.partial(_end_with, os.getpid()),
    )


def _end_with(parent: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # not on this system
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
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
        for process in processes:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait(_KILLED_S)


@contextlib.contextmanager
def deferred_signals() -> Iterator[None]:
    """Hold SIGTERM and Ctrl-C back in the block; :func:`raise_deferred` raises what came.

    Raised anywhere else, they may leave the lock of a ``Popen`` held, which then waits forever,
    or get lost in a callback. The block has to call that function again and again; what came
    since the last call is raised at its end. A second signal is raised at once where the block
    hangs, or already ends what it started. Blocks do not nest.
    """
    both = (signal.SIGTERM, signal.SIGINT)
    # One that is ignored, as Ctrl-C by what a shell starts in the background, stays so.
    heard = [each for each in both if signal.getsignal(each) != signal.SIG_IGN]
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
        self._services: dict[str, psutil.Process] = {}
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(*_GONE):
                if (name := child.name()) in ("gcs_server", "raylet"):
                    self._services[name] = child
        self.are_ours = bool(self._services)
        self._started: set[psutil.Process] = set()
        self._running_at = dict.fromkeys(self._services, time.monotonic())
        self._looked_at = 0.0

    def check(self) -> None:
        """Look at each; ``StallError`` if one died, or has been stopped for half a minute."""
        for name, service in self._services.items():
            status = _status(service)
            if status in _ENDED:
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
            services = self._services.values()
            _kill(each for each in services if _status(each) == psutil.STATUS_STOPPED)
            impatience.start()
            end()
            # A stopped process does not notice that Ray has ended.
            # Not by psutil's wait: the kernel may answer ENOENT for one that ends at this moment.
            deadline = time.monotonic() + _KILLED_S
            while time.monotonic() < deadline and any(
                _status(each) not in _ENDED for each in self._started
            ):
                time.sleep(0.05)
        finally:  # even if a second signal ended the wait
            impatience.cancel()
            self._kill_all()

    def _kill_all(self) -> None:
        _kill([*self._services.values(), *self._started])

    def _look(self) -> None:
        self._looked_at = time.monotonic()
        for service in self._services.values():
            with contextlib.suppress(*_GONE):
                self._started |= {*service.children(recursive=True)}


@contextlib.contextmanager
def starting_ray(limit_s: float) -> Iterator[None]:
    """End this process where Ray, which nothing can interrupt, does not start in ``queue_s``."""

    def give_up() -> None:
        told = f"error: Ray did not start within hint.watchdog.queue_s={limit_s:g} s"
        print(f"{told} (logs: /tmp/ray/session_latest/logs)", file=sys.stderr, flush=True)  # noqa: T201
        _kill(psutil.Process().children(recursive=True))
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


def _kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(*_GONE):
            process.kill()

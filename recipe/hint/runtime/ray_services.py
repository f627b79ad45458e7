"""Ray's own processes, where this one started them: looked at while it runs, and ended with it."""

from __future__ import annotations

import contextlib
import threading
import time

import psutil
import ray

from recipe.hint.errors import StallError

_STOPPED_S = 30.0  # Ray gives up by itself after a minute
_LOOK_EVERY_S = 5.0  # for new processes: a look reads all of the machine's
_SHUTDOWN_S, _EXIT_S = 30.0, 10.0
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied)


class RayServices:
    """The node's two services, and everything that they started.

    Where one of them is gone Ray ends this process after a minute, without a word of ours; one that
    is stopped keeps Ray's own shutdown waiting for ever. A cluster that was joined has none here.
    """

    def __init__(self) -> None:
        children = psutil.Process().children(recursive=True)
        self._services = {
            name: each for each in children if (name := each.name()) in ("gcs_server", "raylet")
        }
        self._started: dict[int, psutil.Process] = {}
        self._running_at = dict.fromkeys(self._services, time.monotonic())
        self._looked_at = 0.0

    def check(self) -> None:
        """Look at each.

        Raises:
            StallError: If one died, or has been stopped for half a minute.
        """
        for name, service in self._services.items():
            status = _status(service)
            if status in (psutil.STATUS_DEAD, psutil.STATUS_ZOMBIE):
                raise StallError(f"Ray's process {name} died")
            if status != psutil.STATUS_STOPPED:
                self._running_at[name] = time.monotonic()
            elif time.monotonic() - self._running_at[name] > _STOPPED_S:
                raise StallError(f"Ray's process {name} was stopped {_STOPPED_S:g} s ago")
        if time.monotonic() - self._looked_at > _LOOK_EVERY_S:
            self._look()

    def shut_down(self) -> None:
        """End Ray; what does not end by itself is killed."""
        self._look()
        for service in self._services.values():
            if _status(service) == psutil.STATUS_STOPPED:
                _kill(service)
        impatience = threading.Timer(_SHUTDOWN_S, self._kill_all)
        impatience.daemon = True
        impatience.start()
        ray.shutdown()
        impatience.cancel()
        # A process that was stopped does not see that Ray has ended.
        psutil.wait_procs(self._started.values(), timeout=_EXIT_S)
        self._kill_all()

    def _look(self) -> None:
        self._looked_at = time.monotonic()
        for service in self._services.values():
            with contextlib.suppress(*_GONE):
                found = service.children(recursive=True)
                self._started |= {each.pid: each for each in found}

    def _kill_all(self) -> None:
        for each in [*self._services.values(), *self._started.values()]:
            _kill(each)


def _status(process: psutil.Process) -> str:
    try:
        return process.status()
    except _GONE:
        return psutil.STATUS_DEAD


def _kill(process: psutil.Process) -> None:
    with contextlib.suppress(*_GONE):
        process.kill()

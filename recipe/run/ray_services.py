"""Watch Ray's own processes, if this one started them, and end them with it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import psutil
import ray
from ray.actor import ActorHandle

from recipe.run.errors import StallError, Terminated, one_line

_STOPPED_S = 30.0  # Ray gives up by itself after a minute
_LOOK_EVERY_S = 5.0  # for new processes: a look reads all of the machine's
_SHUTDOWN_S, _EXIT_S = 30.0, 10.0
_NAMES = ("gcs_server", "raylet")
_DO = "check dmesg for the OOM killer, then run the command again"
_GONE = (psutil.NoSuchProcess, psutil.AccessDenied)


def queue_controller() -> ActorHandle:
    """Return TransferQueue's controller, of which a cluster has one.

    Raises:
        ValueError: If there is none.
    """
    return ray.get_actor("TransferQueueController", namespace="transfer_queue")


def queue_actors(config: Any) -> dict[str, Any]:
    """Return TransferQueue's actors by the name that an error message gives them.

    Args:
        config: The run's section ``transfer_queue``.
    """
    actors = {"TransferQueue's controller": queue_controller()}
    if config.backend.storage_backend == "SimpleStorage":
        for number in range(config.backend.SimpleStorage.num_data_storage_units):
            name = f"TransferQueueStorageUnit#{number}"
            actors[f"TransferQueue's storage unit {number}"] = ray.get_actor(name)
    return actors


class RayServices:
    """The node's two services, and everything that they started.

    If one of them is gone, Ray ends this process after a minute, without an error of ours; one that
    is stopped keeps Ray's own shutdown waiting forever. A cluster that was joined has none here.
    """

    def __init__(self) -> None:
        children = psutil.Process().children(recursive=True)
        self._services = {name: each for each in children if (name := _name(each)) in _NAMES}
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
                raise StallError(f"Ray's process {name} died; {_DO}")
            if status != psutil.STATUS_STOPPED:
                self._running_at[name] = time.monotonic()
            elif time.monotonic() - self._running_at[name] > _STOPPED_S:
                raise StallError(
                    f"Ray's process {name} was stopped {_STOPPED_S:g} s ago; find out what "
                    f"stopped it (SIGSTOP), then run the command again"
                )
        if time.monotonic() - self._looked_at > _LOOK_EVERY_S:
            self._look()

    def shut_down(self) -> None:
        """End Ray; what does not end by itself is killed."""
        self._look()
        for service in self._services.values():
            if _status(service) == psutil.STATUS_STOPPED:
                _kill(service)
        impatience = threading.Timer(_SHUTDOWN_S, self.kill_all)
        impatience.daemon = True
        impatience.start()
        ray.shutdown()
        impatience.cancel()
        # A stopped process does not notice that Ray has ended.
        wait_until_gone(self._started.values(), _EXIT_S)
        self.kill_all()

    def kill_all(self) -> None:
        """Kill all of Ray's processes that were seen."""
        for each in [*self._services.values(), *self._started.values()]:
            _kill(each)

    def _look(self) -> None:
        self._looked_at = time.monotonic()
        for service in self._services.values():
            with contextlib.suppress(*_GONE):
                found = service.children(recursive=True)
                self._started |= {each.pid: each for each in found}


def wait_until_gone(processes: Iterable[psutil.Process], limit_s: float) -> None:
    """Wait for the end of processes, at most ``limit_s``.

    Not by psutil's wait: the kernel may answer ENOENT for a process that ends at this moment, and
    psutil raises it.
    """
    deadline = time.monotonic() + limit_s
    gone = (psutil.STATUS_DEAD, psutil.STATUS_ZOMBIE)
    for each in processes:
        while _status(each) not in gone and time.monotonic() < deadline:
            time.sleep(0.05)


@contextlib.contextmanager
def starting(limit_s: float) -> Iterator[None]:
    """End this process, with the reason, where Ray does not start while the block runs.

    Ray waits for its own services without a limit, or silently ends this process, and nothing
    can interrupt it.

    Args:
        limit_s: Longest time in seconds, ``hint.watchdog.queue_s``.

    Raises:
        StallError: If Ray gives up first.
        Terminated: On SIGTERM, which Ray makes an exit while it starts.
    """
    is_done = threading.Event()
    deadline = time.monotonic() + limit_s

    def watch() -> None:
        while not is_done.wait(0.2):
            ended = [
                name
                for each in psutil.Process().children()
                if _status(each) == psutil.STATUS_ZOMBIE and (name := _name(each)) in _NAMES
            ]
            if ended:
                _give_up(f"Ray's process {ended[0]} died while Ray started")
            if time.monotonic() > deadline:
                _give_up(f"Ray did not start within hint.watchdog.queue_s={limit_s:g} s")

    threading.Thread(target=watch, name="ray-start", daemon=True).start()
    try:
        yield
    except SystemExit as error:
        if error.code == signal.SIGTERM:
            raise Terminated from None
        raise
    except Exception as error:  # noqa: BLE001 - Ray raises bare ones
        raise StallError(f"Ray did not start: {one_line(error)}") from error
    finally:
        is_done.set()


def _give_up(reason: str) -> None:
    where = "Ray's own logs: /tmp/ray/session_latest/logs, unless ray_kwargs gives another place"
    sys.stderr.write(f"error: {reason} ({where})\n")
    sys.stderr.flush()
    for child in psutil.Process().children(recursive=True):
        _kill(child)
    os._exit(2)


def _status(process: psutil.Process) -> str:
    try:
        return process.status() if process.is_running() else psutil.STATUS_DEAD
    except _GONE:
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

"""Waiting, once: every wait of a run has a limit, and an error names who did not answer.

The driver has a :class:`Watchdog` for the phase that its main thread is in, and a :class:`Liveness`
that asks the actors it depends on. The command looks at the driver's ``logs/heartbeat``, and reads
the first reason that any process left in ``logs/fatal.json``.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import ActorDiedError, OutOfMemoryError, RayError, RayTaskError

from recipe.run.errors import one_line
from recipe.run.whole_file import write_whole

EXIT_CODE = 70  # os.EX_SOFTWARE: not a signal, not a user error
NO_ANSWER = "did not answer within"  # of a phase that waits for somebody who was asked
_END_S = 10.0  # for what is written at the end; a disk that hangs must not keep the process
_LOOK_EVERY_S, _ASK_EVERY_S = 0.5, 2.0
_FULL_MB = 50
_LONGEST = 1000  # Ray's account of its memory has 5,000
logger = logging.getLogger(__name__)


class Watchdog:
    """A thread that watches the phase the main thread is in.

    The main thread may sit in a native call or in ``ray.get`` that nothing can interrupt, so a
    phase that passes its limit ends the process: the reason goes to ``fatal.json``, the stacks of
    all threads to ``stacks.txt``, and the launcher reports them. The launcher watches the thread in
    turn, by the heartbeat that it leaves.
    """

    def __init__(self, log_dir: Path, limits: Mapping[str, float]) -> None:
        self._log_dir, self._limits = log_dir, limits  # limits: the node hint.watchdog
        self._phases: list[tuple[str, float]] = []  # label and deadline; the innermost is last
        self._stop = threading.Event()
        # Separate threads: a disk that hangs must stop only the beat.
        for work in (self._watch, self._beat):
            threading.Thread(target=work, name="watchdog", daemon=True).start()

    @contextlib.contextmanager
    def phase(self, what: str, setting: str, *, fault: str = "took longer than") -> Iterator[None]:
        """Limit a block of code to the time that a setting of ``hint.watchdog`` gives.

        ``what`` is done, or was asked, as the error will name it, which has ``fault`` before the
        limit: ``NO_ANSWER`` where somebody was asked.
        """
        limit_s = self._limits[setting]
        label = f"{what} {fault} hint.watchdog.{setting}={limit_s:g} s"
        phase = label, time.monotonic() + limit_s
        self._phases.append(phase)
        try:
            yield
        finally:
            self._phases.remove(phase)

    def stop(self) -> None:
        """End the threads."""
        self._stop.set()

    def end(self, reason: str) -> None:
        """End this process at once, and leave the reason; any thread may call it."""
        last_resort = threading.Timer(_END_S, os._exit, (EXIT_CODE,))
        last_resort.daemon = True
        last_resort.start()
        with contextlib.suppress(OSError):  # of the command itself, when Ray does not start
            os.write(2, f"error: {reason}\n".encode())
        # Each may fail on a full disk, and the process must still end.
        with contextlib.suppress(OSError), open(self._log_dir / "stacks.txt", "w") as file:
            faulthandler.dump_traceback(file, all_threads=True)
        with contextlib.suppress(OSError):
            write_fatal(self._log_dir, f"{reason}; stacks of all threads are in logs/stacks.txt")
        os._exit(EXIT_CODE)

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            now = time.monotonic()
            if late := [label for label, deadline in [*self._phases] if now > deadline]:
                self.end(late[-1])

    def _beat(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            with contextlib.suppress(OSError):
                os.utime(self._log_dir / "heartbeat")


class Liveness:
    """A thread that asks each actor that the driver depends on, again and again.

    verl and TransferQueue wait for each other without a limit, over sockets that do not tell of a
    process that was stopped. An actor that answers Ray has a process that runs.

    Args:
        limit_s: Longest time to an answer in seconds, ``hint.watchdog.answer_s``.
        on_fault: Takes the sentence that says who died or does not answer.
    """

    def __init__(self, *, limit_s: float, on_fault: Callable[[str], None]) -> None:
        self._limit_s, self._on_fault = limit_s, on_fault
        self._questions: dict[str, Callable[[], Any]] = {}
        self._busy: dict[str, Any] = {}  # answers that may take any time

    def add(self, name: str, ask: Callable[[], Any], *, may_be_busy: bool = False) -> None:
        """Watch an actor that ``ask`` sends a question to.

        Of one that may be busy, answering only when its work is done, only the death is told.
        """
        self._questions[name] = ask
        if may_be_busy:
            self._busy[name] = ask()

    def add_servers(self, managers: Iterable[Any]) -> None:
        """Watch the vLLM servers of verl's managers and the load balancers in front of them."""
        servers: list[Any] = []
        for number, manager in enumerate(managers):
            servers += [each for replica in manager.get_replicas() for each in replica.servers]
            name = f"load balancer {number} of the vLLM servers"
            self.add(name, ready(manager.global_load_balancer))
        for number, server in enumerate(servers):
            self.add(f"vLLM server {number}", ready(server))

    def add_queue(self, config: Any) -> None:
        """Watch TransferQueue's actors; ``config`` is the run's section ``transfer_queue``."""
        self.add("TransferQueue's controller", ready(queue_controller()))
        if config.backend.storage_backend == "SimpleStorage":
            for number in range(config.backend.SimpleStorage.num_data_storage_units):
                unit = ray.get_actor(f"TransferQueueStorageUnit#{number}")
                self.add(f"TransferQueue's storage unit {number}", ready(unit))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Ask again and again while the block runs."""
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(_ASK_EVERY_S):
                try:
                    fault = self.look()
                except Exception as error:  # noqa: BLE001 - nobody would watch from here on
                    fault = f"the watch over the run's actors failed: {one_line(error)}"
                if fault and not stop.is_set():
                    self._on_fault(fault)
                    return

        threading.Thread(target=watch, name="liveness", daemon=True).start()
        try:
            yield
        finally:
            stop.set()

    def look(self) -> str | None:
        """Ask everybody and wait for the answers; return what is wrong, if anything is."""
        asked = {name: ask() for name, ask in self._questions.items() if name not in self._busy}
        ray.wait([*asked.values()], num_returns=len(asked), timeout=self._limit_s)
        late = []
        for name, answer in (asked | self._busy).items():
            if not ray.wait([answer], timeout=0)[0]:
                late += [name] * (name in asked)
                continue
            try:
                ray.get(answer)
            # Ray's memory monitor kills actors where the machine runs out of memory.
            except (ActorDiedError, OutOfMemoryError) as error:
                return f"{name} died: {one_line(error, _LONGEST)}"
            except RayTaskError as error:  # its own answer
                return f"{name} cannot go on: {one_line(error.cause, _LONGEST)}"
            except RayError as error:
                logger.warning("%s cannot be reached this time: %s", name, one_line(error))
            if name in self._busy:
                self._busy[name] = self._questions[name]()
        limit = f"{NO_ANSWER} hint.watchdog.answer_s={self._limit_s:g} s"
        return f"{', '.join(late)} {limit}" if late else None


def queue_controller() -> Any:
    """Return the controller of TransferQueue, one in a cluster; ``ValueError`` without one."""
    return ray.get_actor("TransferQueueController", namespace="transfer_queue")


def ready(actor: Any) -> Callable[[], Any]:
    """Return a question that every actor of Ray answers."""
    return lambda: actor.__ray_ready__.remote()


def sentence_of(error: BaseException, folder: Path) -> str:
    """Return in one line what went wrong in a run that writes to ``folder``.

    A full disk causes many kinds of error, few of which mention a disk.
    """
    while isinstance(error, RayTaskError | BaseExceptionGroup):
        error = error.cause if isinstance(error, RayTaskError) else error.exceptions[0]
    if isinstance(error, SystemExit):
        return "the driver was told to end, by SIGTERM"
    full = ""
    with contextlib.suppress(OSError):  # the folder may be what is gone
        free_mb = shutil.disk_usage(folder).free / 1e6
        full = f" (the disk of {folder} has {free_mb:.1f} MB left)" if free_mb < _FULL_MB else ""
    return f"{type(error).__name__}: {one_line(error, _LONGEST)}{full}"


def write_fatal(log_dir: Path, message: str, stack: str = "") -> None:
    """Leave the reason where the launcher looks for it; the first reason stays."""
    path = log_dir / "fatal.json"
    if not path.exists():
        found = {"message": message, "stack": stack.splitlines()}
        write_whole(path, json.dumps(found, indent=1) + "\n")


def read_fatal(log_dir: Path) -> str | None:
    """Return the reason that a process of this run left, if any."""
    path = log_dir / "fatal.json"
    return json.loads(path.read_text())["message"] if path.exists() else None

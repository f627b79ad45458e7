"""Limit every phase of a run: exceeding a limit ends the run and names the phase."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from ray.exceptions import RayTaskError

from recipe.run.errors import one_line
from recipe.run.silence import HEARTBEAT, Silence
from recipe.run.whole_file import write_whole

EXIT_CODE = 70  # os.EX_SOFTWARE: not a signal, not a user error
_END_S = 10.0  # for what is written at the end; a disk that hangs must not keep the process
_FULL_MB = 50
NO_ANSWER = "did not answer within"  # of a phase that waits for somebody who was asked
_LONGEST = 1000  # characters of an error; Ray's on memory has 5,000
# Ray's message about an actor whose process is gone; it does not know why.
_ACTOR_DIED = re.compile(
    r"The actor died unexpectedly before finishing this task\. class_name: (?:\S*\.)?(\w+) "
    r".*?pid: (\d+) .*Worker exit type: SYSTEM_ERROR .*"
)


class Limited:
    """An iterable with a length, such as a data loader; each item is waited for under a limit."""

    def __init__(
        self,
        items: Any,
        limit: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        self._items, self._limit = items, limit

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        with self._limit():
            rest = iter(self._items)
        end = object()
        while True:
            with self._limit():
                item = next(rest, end)
            if item is end:
                return
            yield item


@dataclass(slots=True, eq=False)
class _Phase:
    """A block of code that the main thread is in, and when it is late."""

    label: str
    deadline: float
    more: Callable[[], str]


class Watchdog:
    """A thread that watches the phase the main thread is in.

    The main thread may sit in a native call or in ``ray.get`` that nothing can interrupt, so a
    phase that passes its limit ends the process: the reason goes to ``fatal.json``, the stacks of
    all threads to ``stacks.txt``, and the launcher reports them. The launcher watches the thread in
    turn, by the heartbeat that it leaves.
    """

    def __init__(self, log_dir: Path) -> None:
        self._log_dir = log_dir
        self._lock = threading.Lock()
        self._stack: list[_Phase] = []
        self._stop = threading.Event()
        # Separate threads: a disk that hangs must stop only the beat.
        for work in (self._watch, self._beat):
            threading.Thread(target=work, name="watchdog", daemon=True).start()

    @contextlib.contextmanager
    def phase(
        self,
        what: str,
        limit_s: float,
        setting: str,
        *,
        fault: str = "took longer than",
        more: Callable[[], str] = str,
    ) -> Iterator[Callable[[], None]]:
        """Limit a block of code.

        Args:
            what: What is done, or who was asked, as the error will name it.
            limit_s: Longest time in seconds.
            setting: Name of the setting that holds the limit.
            fault: Verb before the limit; ``NO_ANSWER`` where somebody was asked.
            more: Called when it is late, on the watching thread: what to add.

        Yields:
            A function that gives the block its whole time again.
        """
        label = f"{what} {fault} {setting}={limit_s:g} s"
        phase = _Phase(label, time.monotonic() + limit_s, more)

        def renew() -> None:
            phase.deadline = time.monotonic() + limit_s

        with self._lock:
            self._stack.append(phase)
        try:
            yield renew
        finally:
            with self._lock:
                self._stack.remove(phase)

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()

    def end(self, reason: str) -> None:
        """End this process at once, and leave the reason; any thread may call it."""
        last_resort = threading.Timer(_END_S, os._exit, (EXIT_CODE,))
        last_resort.daemon = True
        with contextlib.suppress(RuntimeError):  # no thread can be started
            last_resort.start()
        # Each may fail on a full disk, and the process must still end.
        with contextlib.suppress(OSError):
            self._log_dir.mkdir(parents=True, exist_ok=True)
            with open(self._log_dir / "stacks.txt", "w") as file:
                faulthandler.dump_traceback(file, all_threads=True)
        with contextlib.suppress(OSError):
            write_fatal(self._log_dir, f"{reason}; stacks of all threads are in logs/stacks.txt")
        os._exit(EXIT_CODE)

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            with self._lock:
                late = [each for each in self._stack if time.monotonic() > each.deadline]
            if late:
                self.end(late[-1].label + late[-1].more())

    def _beat(self) -> None:
        while not self._stop.wait(0.5):
            with contextlib.suppress(OSError):
                os.utime(self._log_dir / HEARTBEAT)


def silence_of(log_dir: Path) -> Silence:
    """Return the launcher's view of a driver's watchdog."""
    path = log_dir / HEARTBEAT
    path.touch()
    return Silence([path])


def sentence_of(error: BaseException, folder: Path) -> str:
    """Return in one line what went wrong in a run that writes to ``folder``.

    A full disk causes many kinds of error, few of which mention a disk.
    """
    while True:
        if isinstance(error, RayTaskError):
            error = error.cause
        elif isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        else:
            break
    if isinstance(error, SystemExit):
        return "the driver was told to end, by SIGTERM"
    full = ""
    with contextlib.suppress(OSError):  # the folder may be what is gone
        free_mb = shutil.disk_usage(folder).free / 1e6
        full = f" (the disk of {folder} has {free_mb:.1f} MB left)" if free_mb < _FULL_MB else ""
    return f"{type(error).__name__}: {text_of(error)}{full}"


def text_of(error: BaseException) -> str:
    """Return an error's text in one line; for a process that is gone, name it."""
    text = _ACTOR_DIED.sub(
        r"\1 (pid \2) is gone: it crashed or was killed; check dmesg for the OOM killer",
        one_line(error),
    )
    return shorten(text, _LONGEST, placeholder=" ...")


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

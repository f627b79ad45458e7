"""No silent hang: every phase of a run has a limit, and passing it ends the run with its name."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from recipe.hint.whole_file import write_whole

EXIT_CODE = 70  # os.EX_SOFTWARE: not a signal, not a user error


class Watchdog:
    """A thread that watches the phase the main thread is in.

    The main thread may sit in a native call or in ``ray.get`` that nothing can interrupt, so a
    phase that passes its limit ends the process: the reason goes to ``fatal.json``, the stacks of
    all threads to ``stacks.txt``, and the launcher reports them.
    """

    def __init__(self, log_dir: Path) -> None:
        self._log_dir = log_dir
        self._lock = threading.Lock()
        self._stack: list[tuple[str, float]] = []  # label, deadline
        self._stop = threading.Event()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    @contextlib.contextmanager
    def phase(self, what: str, limit_s: float, setting: str) -> Iterator[None]:
        """Limit a block of code.

        Args:
            what: Who is waited for, as the error will name it.
            limit_s: Longest time in seconds.
            setting: Name of the setting that holds the limit.
        """
        label = f"{what} did not answer within {setting}={limit_s:g} s"
        with self._lock:
            self._stack.append((label, time.monotonic() + limit_s))
        try:
            yield
        finally:
            with self._lock:
                self._stack.pop()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            with self._lock:
                late = [label for label, deadline in self._stack if time.monotonic() > deadline]
            if late:
                self._end(late[-1])

    def _end(self, label: str) -> None:
        self._log_dir.mkdir(parents=True, exist_ok=True)
        with open(self._log_dir / "stacks.txt", "w") as file:
            faulthandler.dump_traceback(file, all_threads=True)
        write_fatal(self._log_dir, f"{label}; stacks of all threads are in logs/stacks.txt")
        os._exit(EXIT_CODE)


def write_fatal(log_dir: Path, message: str) -> None:
    """Leave the reason where the launcher looks for it; the first reason stays."""
    path = log_dir / "fatal.json"
    if not path.exists():
        write_whole(path, json.dumps({"message": message}))


def read_fatal(log_dir: Path) -> str | None:
    """Return the reason that a process of this run left, if any."""
    path = log_dir / "fatal.json"
    return json.loads(path.read_text())["message"] if path.exists() else None

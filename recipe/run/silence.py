"""How long a process has given no sign of life, seen from outside, by the files that it changes."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

HEARTBEAT = "heartbeat"  # of a run's watchdog, in its folder of logs
# For jobs that others start: longer than a check of settings, an export or a slow import takes.
JOB_LIMIT_S = 3600.0


class Silence:
    """The time since any of some files changed, by this process's own clock."""

    def __init__(self, paths: Iterable[Path], now: Callable[[], float] = time.monotonic) -> None:
        """Begin now.

        Args:
            paths: The files; they need not be there yet.
            now: A clock in seconds.
        """
        self._last: dict[Path, int] = dict.fromkeys(paths, 0)
        self._now, self._changed_at = now, now()
        self.length_s()

    def length_s(self) -> float:
        """Return the seconds since the last change; an unreadable file counts as unchanged."""
        now = self._now()
        for path, last in self._last.items():
            with contextlib.suppress(OSError):
                self._last[path] = path.stat().st_mtime_ns
            if self._last[path] != last:
                self._changed_at = now
        return now - self._changed_at


class Heartbeat:
    """The sign of life of a job that is not a run; a hung disk stops only the heartbeat."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "logs" / HEARTBEAT
        self._thread = threading.Thread()

    def beat(self) -> None:
        """Change the file, without waiting for the disk."""
        if not self._thread.is_alive():
            self._thread = threading.Thread(target=self._touch, daemon=True)
            self._thread.start()

    def _touch(self) -> None:
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(exist_ok=True)
            self._path.touch()


def job_files(folder: Path, *more: Path) -> list[Path]:
    """Return the files by which a job in a run's folder shows that it works."""
    return [folder / "logs" / HEARTBEAT, *more]

"""How long a process has given no sign of life, seen from outside, by the files that it changes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

HEARTBEAT = "heartbeat"  # of a run's watchdog, in its folder of logs
# For jobs that others start: longer than a check of settings, an export or a slow import takes.
JOB_LIMIT_S = 3600.0


class Silence:
    """The seconds since any of some files changed, by this process's own clock."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._last: dict[Path, int] = dict.fromkeys(paths, -1)
        self._changed_at = 0.0
        self.seconds()

    def seconds(self) -> float:
        """Return them; a file that cannot be read, as of a disk that is away, has not changed."""
        now = time.monotonic()
        for path, last in self._last.items():
            try:
                self._last[path] = path.stat().st_mtime_ns
            except OSError:
                continue
            if self._last[path] != last:
                self._changed_at = now
        self._changed_at = self._changed_at or now
        return now - self._changed_at


def job_files(folder: Path, *more: Path) -> list[Path]:
    """Return the files by which a job in a run's folder shows that it works."""
    return [folder / "logs" / HEARTBEAT, *more]

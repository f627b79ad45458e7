"""Where a driver's seconds go: clocks around methods."""

from __future__ import annotations

import functools
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stopwatch:
    """Wall-clock seconds by part; time in a part that is called from another counts once."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._open: list[str] = []
        self._since = time.perf_counter()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time inside to ``name``."""
        self._book()
        self._open.append(name)
        try:
            yield
        finally:
            self._book()
            self._open.pop()

    def take(self) -> dict[str, float]:
        """Return what was counted since the last call."""
        self._book()
        seconds, self.seconds = dict(self.seconds), defaultdict(float)
        return seconds

    def _book(self) -> None:
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now


PARTS = Stopwatch()


def timed(prefix: str, *names: str) -> Any:
    """Return a class decorator: calls of these methods, inherited ones too, count to a part."""

    def decorate(cls: type) -> type:
        for name in names:
            setattr(cls, name, _timed(cls, name, f"{prefix} {name.strip('_')}"))
        return cls

    return decorate


def _timed(cls: type, name: str, part: str) -> Any:
    inner = getattr(cls, name)

    @functools.wraps(inner)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        with PARTS.part(part):
            return inner(self, *args, **kwargs)

    return method

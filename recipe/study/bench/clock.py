"""A virtual clock: simulated hours pass in the time that their events take to compute."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from recipe.run.errors import StallError

_T = TypeVar("_T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time moves only when nothing is left to do at the present moment.

    ``asyncio.sleep(3600)`` takes 3,600 simulated seconds and no real one. Coroutines that wait for
    nothing but each other and this clock run on it unchanged, and always in the same order.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        super().__init__(_Jump(self))

    def time(self) -> float:
        """Return the simulated seconds since the loop was made."""
        return self.now_s


class _Jump(selectors.SelectSelector):
    """In place of waiting for sockets: moves the clock to the next timer."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise StallError(
                f"the simulation stands still at {self._loop.now_s:.1f} s: every coroutine waits "
                "for another one and no timer is set"
            )
        self._loop.now_s += timeout
        return []


def run_virtual(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine to its end on a clock of its own.

    Raises:
        StallError: If nothing can happen any more before it ends.
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)

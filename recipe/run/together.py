"""Wait for several coroutines at once, or for a place among them."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any, TypeVar

_T = TypeVar("_T")


async def gather_or_cancel(coroutines: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Await all; when one raises, the others end too."""
    tasks = [asyncio.ensure_future(each) for each in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


class Slots:
    """A semaphore that lets in whoever is furthest along; among equals, whoever came first."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    @contextlib.asynccontextmanager
    async def held(self, progress: int) -> AsyncIterator[None]:
        """Hold a slot during the block; the larger ``progress``, the sooner."""
        if self._free:
            self._free -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (-progress, next(self._numbers), turn))
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # it was let in at the same moment
                    self._let_in()
                raise
        try:
            yield
        finally:
            self._let_in()

    def _let_in(self) -> None:
        while self._waiting:
            *_, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

"""End an evaluation or a question in which nothing comes any more, and say who does not answer."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from recipe.run.watchdog import Watchdog

_WHOM = {
    **dict.fromkeys(("sample_each", "write", "log_probs"), "vLLM"),
    **dict.fromkeys(("grade", "leaks"), "the verifier"),
}


class WatchedEngine:
    """An engine of which each answer renews the limit ``progress_s``."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._asked = Counter[str]()
        self._renew: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._engine, name)
        return self._noted(value, _WHOM[name]) if name in _WHOM else value

    @contextlib.contextmanager
    def limited(self, watchdog: Watchdog, limit_s: float) -> Iterator[None]:
        """End the run where the block goes on without an answer for ``progress_s``."""
        with watchdog.phase(
            "no response or verdict",
            limit_s,
            "hint.watchdog.progress_s",
            fault="came within",
            more=self._waited_for,
        ) as self._renew:
            yield

    def _noted(
        self, call: Callable[..., Awaitable[Any]], whom: str
    ) -> Callable[..., Awaitable[Any]]:
        async def ask(*args: Any, **named: Any) -> Any:
            self._asked[whom] += 1
            try:
                return await call(*args, **named)
            finally:
                self._asked[whom] -= 1
                self._renew()

        return ask

    def _waited_for(self) -> str:
        """Return who has not answered; a teacher is asked past this engine."""
        asked = [f"{whom} ({count} requests)" for whom, count in [*self._asked.items()] if count]
        return f"; no answer of {' and '.join(asked) or 'the teacher'}"

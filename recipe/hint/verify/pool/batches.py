"""The verdicts of one call to the pool, as they come in from several threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future

from recipe.hint.errors import VerifierError
from recipe.hint.schema import Item, Verdict


class Batch:
    """One call's verdicts; ``future`` resolves when the last one is in, or one fails."""

    def __init__(self, items: Sequence[Item], ids: Sequence[str] | None) -> None:
        if ids is not None and len(ids) != len(items):
            raise ValueError(f"got {len(ids)} ids for {len(items)} items; give one per item")
        self.items = items
        self._ids = ids
        self.future: Future[list[Verdict]] = Future()
        # Running futures cannot be cancelled, so a cancelled caller never races a worker.
        self.future.set_running_or_notify_cancel()
        self._verdicts: dict[int, Verdict] = {}
        self._size = len(items)
        self._lock = threading.Lock()
        if not items:
            self.future.set_result([])

    def name(self, index: int) -> str:
        """The id of one item, empty when the caller gave none."""
        return self._ids[index] if self._ids is not None else ""

    def settle(self, index: int, verdict: Verdict) -> None:
        """Take one verdict; the last one resolves the future."""
        with self._lock:
            self._verdicts[index] = verdict
            if len(self._verdicts) == self._size:
                self.future.set_result([self._verdicts[i] for i in range(self._size)])

    def fail(self, error: VerifierError) -> None:
        """Give the error to the caller, unless the future is resolved."""
        with self._lock:
            if not self.future.done():
                self.future.set_exception(error)

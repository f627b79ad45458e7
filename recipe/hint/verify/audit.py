"""Verdicts on which the second judge disagrees, written down for a person to look at."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from recipe.hint.errors import ConfigError, VerifierError
from recipe.hint.schema import Item, Opinion, Verdict

SECOND = "recipe.hint.verify.second:grade"
_EXCERPT_CHARS = 500
# Past this the box is no answer, and a second look costs more than it tells.
_MAX_EXTRACTED_CHARS = 400


class Pool(Protocol):
    """The part of a ``VerifierPool`` that asks the second judge."""

    def submit(self, items: Sequence[Item]) -> Future[list[Verdict]]:
        """Grade; the future may raise VerifierError."""
        ...

    def close(self) -> None:
        """End its processes."""
        ...


def question(item: Item, verdict: Verdict) -> Item | None:
    """Return what to ask the second judge, ``None`` where there is nothing that it could tell.

    Only decided verdicts about mathematics are asked about, and none of a user's own function.
    """
    is_asked = item.kind == "maths" and verdict.basis != "function" and verdict.extracted
    if not is_asked or verdict.is_ungraded or len(verdict.extracted) > _MAX_EXTRACTED_CHARS:
        return None
    if r"\boxed" not in item.response:  # judged without a box, as the options allow
        return item._replace(response=rf"\boxed{{{verdict.extracted}}}")
    return item


def opinion(verdict: Verdict, second: Verdict) -> Opinion:
    """Return what the second judge's verdict says about the first's."""
    if second.is_ungraded:
        return "none"
    return "agrees" if (second.score > 0) == (verdict.score > 0) else "disagrees"


class AuditLog:
    """Asks the second judge about every decided maths verdict; changes none.

    Appends one JSON object per disagreement: ``id``, ``kind``, ``answer``, ``extracted``, the
    end of the response, and both verdicts.

    Args:
        path: The file.
        pool: Where the second judge runs; it is closed with the log.

    Attributes:
        disagreements: Lines written.

    Raises:
        ConfigError: The file cannot be written.
    """

    def __init__(self, path: str | Path, pool: Pool) -> None:
        self._path = Path(path)
        self._pool = pool
        self._lock = threading.Lock()
        self.disagreements = 0
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.open("a").close()
        except OSError as problem:
            raise ConfigError(
                f"audit_path={self._path}: cannot be written: {problem.strerror}; name another file"
            ) from problem

    def check(
        self, item: Item, verdict: Verdict, *, name: str, then: Callable[[], None] = lambda: None
    ) -> None:
        """Ask, write a line when the second judge thinks otherwise, then call ``then``.

        The caller gives its verdict out in ``then``: whoever waits for verdicts waits for the
        second judge too, and no more is asked than is waited for.
        """
        asked = question(item, verdict)
        if asked is None:
            return then()

        def settle(answer: Future[list[Verdict]]) -> None:
            try:
                if not answer.cancelled() and not answer.exception():
                    self._compare(item, verdict, answer.result()[0], name=name)
            finally:
                then()

        try:
            answer = self._pool.submit([asked])
        except VerifierError:  # closed meanwhile
            return then()
        answer.add_done_callback(settle)

    def close(self) -> None:
        """End the second judge; what it has not answered is not compared."""
        self._pool.close()

    def _compare(self, item: Item, verdict: Verdict, second: Verdict, *, name: str) -> None:
        if opinion(verdict, second) != "disagrees":
            return
        row = {
            "id": name,
            "kind": item.kind,
            "answer": item.answer,
            "extracted": verdict.extracted,
            "verdict": {"score": verdict.score, "reason": verdict.reason},
            "second": {"score": second.score, "reason": second.reason},
            "response_end": item.response[-_EXCERPT_CHARS:],
        }
        with self._lock, self._path.open("a", encoding="ascii") as file:
            file.write(json.dumps(row) + "\n")
            self.disagreements += 1

"""Verdicts on which two judges disagree, written down for a person to look at."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from recipe.hint.errors import ConfigError
from recipe.hint.schema import Item, Verdict
from recipe.hint.verify.second import second_opinion

_EXCERPT_CHARS = 500
# Past this the box is no answer, and a second look costs more than it tells.
_MAX_EXTRACTED_CHARS = 400


class AuditLog:
    """Asks a second judge about every decided maths and choice verdict; changes none.

    Appends one JSON object per disagreement: ``id``, ``kind``, ``answer``, ``extracted``, the
    end of the response, and both opinions. A program has no second judge.

    Attributes:
        disagreements: Lines written.

    Raises:
        ConfigError: The file cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self.disagreements = 0
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.open("a").close()
        except OSError as problem:
            raise ConfigError(
                f"audit_path={self._path}: cannot be written: {problem.strerror}; name another file"
            ) from problem

    def check(self, item: Item, verdict: Verdict, *, name: str) -> None:
        """Write a line when the second judge thinks otherwise.

        Raises:
            OSError: The file has become unwritable.
        """
        is_long = len(verdict.extracted) > _MAX_EXTRACTED_CHARS
        if item.kind == "program" or verdict.is_undecided or is_long or not verdict.extracted:
            return
        if r"\boxed" not in item.response:  # judged without a box, as the options allow
            item = item._replace(response=rf"{item.response} \boxed{{{verdict.extracted}}}")
        second = second_opinion(item)
        if second == (verdict.score > 0):
            return
        row = {
            "id": name,
            "kind": item.kind,
            "answer": item.answer,
            "extracted": verdict.extracted,
            "verdict": {"score": verdict.score, "reason": verdict.reason},
            "second": {"score": float(second), "reason": "correct" if second else "wrong"},
            "response_end": item.response[-_EXCERPT_CHARS:],
        }
        with self._lock, self._path.open("a", encoding="ascii") as file:
            file.write(json.dumps(row) + "\n")
            self.disagreements += 1

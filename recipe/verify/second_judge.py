r"""A second judge of mathematics that shares nothing with the verifier: math-verify as it comes.

It changes no verdict; where it disagrees, a person may want to look. It hangs on some texts, so it
runs where it can be killed: ``VerifierPool(grade_path=SECOND)``.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from recipe.run.errors import ConfigError, VerifierError
from recipe.run.whole_file import append_lines
from recipe.verify.options import GradeOptions
from recipe.verify.schema import Item, Opinion, Verdict

logger = logging.getLogger(__name__)
SECOND = f"{__name__}:grade"
# From the last box on. Past this the box holds no answer form, and a second look tells nothing.
_MAX_CHARS, _MAX_EXTRACTED_CHARS = 2000, 400
_EXCERPT_CHARS = 500
_DEFAULTS = GradeOptions()
Ask = Callable[[list[Item]], Future[list[Verdict]]]  # the ``submit`` of a pool


def prepare(_: GradeOptions = _DEFAULTS) -> None:
    """Import math-verify once, before the process is forked."""
    # It warns that its own limits, which need the main thread, are off.
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    import math_verify  # noqa: F401 - not in the process that asks


def grade(item: Item, _: GradeOptions = _DEFAULTS) -> Verdict:
    r"""Return ``correct`` or ``wrong`` for the last ``\boxed`` of a response; may run for ever.

    ``error`` means no opinion: a kind other than maths, no box, or a gold answer that math-verify
    cannot read.
    """
    from math_verify import parse, verify

    start = item.response.rfind(r"\boxed")
    if item.kind != "maths" or start < 0:
        return Verdict(0.0, "error")
    unlimited: Any = None  # where its own limit would be
    is_marked = "$" in item.answer or r"\boxed" in item.answer
    gold = item.answer if is_marked else rf"\boxed{{{item.answer}}}"
    golds = parse(gold[:_MAX_CHARS], parsing_timeout=unlimited)
    if not golds:
        return Verdict(0.0, "error")
    found = parse(item.response[start : start + _MAX_CHARS], parsing_timeout=unlimited)
    is_equal = verify(golds, found, timeout_seconds=unlimited)
    return Verdict(1.0, "correct") if is_equal else Verdict(0.0, "wrong")


def question(item: Item, verdict: Verdict) -> Item | None:
    """Return what to ask about a verdict, ``None`` where the second judge could tell nothing.

    Only graded maths responses are asked about, and none that a user's own function graded.
    """
    is_asked = item.kind == "maths" and verdict.basis != "function" and verdict.extracted
    if not is_asked or verdict.is_ungraded or len(verdict.extracted) > _MAX_EXTRACTED_CHARS:
        return None
    if r"\boxed" not in item.response:  # graded without a box, as the options allow
        return item._replace(response=rf"\boxed{{{verdict.extracted}}}")
    return item


def opinion(verdict: Verdict, second: Verdict) -> Opinion:
    """Return what the second judge's verdict says about the first."""
    if second.is_ungraded:
        return "none"
    return "agrees" if (second.score > 0) == (verdict.score > 0) else "disagrees"


class AuditLog:
    """Asks about every verdict and appends one JSON object per disagreement to a file.

    Args:
        path: The file.
        ask: Where the second judge runs.

    Attributes:
        disagreements: Lines written.

    Raises:
        ConfigError: The file cannot be written.
    """

    def __init__(self, path: str | Path, ask: Ask) -> None:
        self._path, self._ask = Path(path), ask
        self._lock = threading.Lock()
        self.disagreements = self._num_lost = 0
        self._error: OSError | None = None  # the first one of a line
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            append_lines(self._path, ())
        except OSError as problem:
            raise ConfigError(
                f"audit_path={self._path}: cannot be written: {problem.strerror or problem}; "
                f"name another file"
            ) from problem

    def close(self) -> None:
        """Say, once, whether all disagreements are in the file.

        Raises:
            VerifierError: Some are not.
        """
        error, self._error = self._error, None
        if error is not None:
            raise VerifierError(
                f"{self._path}: {self._num_lost} disagreements of the second judge could not be "
                f"written: {error.strerror or error}; the verdicts are whole"
            ) from error

    def check(self, item: Item, verdict: Verdict, *, name: str, then: Callable[[], None]) -> None:
        """Ask, write a line on a disagreement, then call ``then``, where the verdict is given out.

        So whoever waits for verdicts waits for the second judge too, and questions cannot pile up.
        """
        asked = question(item, verdict)
        try:
            answer = self._ask([asked]) if asked is not None else None
        except VerifierError:  # closed meanwhile
            answer = None
        if answer is None:
            return then()

        def settle(answer: Future[list[Verdict]]) -> None:
            try:
                if not answer.cancelled() and not answer.exception():
                    self._compare(item, verdict, answer.result()[0], name)
            finally:
                then()

        answer.add_done_callback(settle)

    def _compare(self, item: Item, verdict: Verdict, second: Verdict, name: str) -> None:
        if opinion(verdict, second) != "disagrees":
            return
        row: dict[str, Any] = {
            "id": name,
            "kind": item.kind,
            "answer": item.answer,
            "extracted": verdict.extracted,
        }
        for key, each in (("verdict", verdict), ("second", second)):
            row[key] = {"score": each.score, "reason": each.reason}
        row["response_end"] = item.response[-_EXCERPT_CHARS:]
        with self._lock:
            try:
                append_lines(self._path, [json.dumps(row).encode("ascii")])
                self.disagreements += 1
            except OSError as error:  # a full disk
                self._num_lost += 1
                if self._error is None:
                    self._error = error
                    logger.warning("%s: %s: the audit is not whole", self._path, error)

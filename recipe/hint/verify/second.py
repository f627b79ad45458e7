r"""A second judge of mathematics that shares nothing with the verifier: math-verify as it comes.

It changes no verdict; where it disagrees, a person may want to look. It hangs on some texts, so it
belongs in a process that can be killed: ``VerifierPool(grade_path=audit.SECOND)``.
"""

from __future__ import annotations

import logging

from math_verify import parse, verify

from recipe.hint.schema import Item, Verdict
from recipe.hint.verify.options import GradeOptions

# From the last box on. Past this the box holds no answer form.
_MAX_CHARS = 2000
_DEFAULTS = GradeOptions()
# It warns that its own limits, which need the main thread, are off.
logging.getLogger("math_verify").setLevel(logging.CRITICAL)


def grade(item: Item, options: GradeOptions = _DEFAULTS) -> Verdict:
    r"""Return ``correct`` or ``wrong`` for the last ``\boxed`` of a response.

    ``error`` is no opinion: another kind than maths, no box, or a gold answer that math-verify
    cannot read. It may run for ever.
    """
    start = item.response.rfind(r"\boxed")
    if item.kind != "maths" or start < 0:
        return Verdict(0.0, "error")
    is_marked = "$" in item.answer or r"\boxed" in item.answer
    gold = item.answer if is_marked else rf"\boxed{{{item.answer}}}"
    golds = parse(gold[:_MAX_CHARS], parsing_timeout=None)  # pyright: ignore[reportArgumentType]
    if not golds:
        return Verdict(0.0, "error")
    text = item.response[start : start + _MAX_CHARS]
    found = parse(text, parsing_timeout=None)  # pyright: ignore[reportArgumentType]
    is_equal = verify(golds, found, timeout_seconds=None)
    return Verdict(1.0, "correct") if is_equal else Verdict(0.0, "wrong")

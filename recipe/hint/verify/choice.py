r"""Grades multiple choice: the one letter in the last ``\boxed{}`` against the gold letter.

Covered: A to Z in either case; ``(B)``, ``[B]``, ``B.``, ``B)``, ``$B$``, ``**B**``,
``\text{B}`` and its relatives, "option B". Everything else in the box is ``malformed``: two
letters, the option's text, the option's number.
"""

from __future__ import annotations

import re
import unicodedata

from recipe.hint.schema import Verdict
from recipe.hint.verify.maths.grade import last_box

_MAX_CHARS = 80  # a letter and its wrapping; longer text is something else
_STYLE = re.compile(
    r"\\(?:boxed|text|textbf|textit|textrm|textsf|textnormal|textup|texttt|emph|underline|mathrm|mathbf"
    r"|mathsf|mathit|boldsymbol|bm)\{(.*)\}"
)
_PAIRS = (("$", "$"), ("**", "**"), ("*", "*"), (r"\(", r"\)"), ("(", ")"), ("[", "]"), ("{", "}"))
# Spaces and sizes on either side.
_NOTHING = re.compile(
    r"(?:\s|~|\\[,;:!> ]"
    r"|\\(?:q?quad|[lL]arge|LARGE|[hH]uge|small|normalsize|displaystyle|left|right)(?![A-Za-z]))+"
)
_SPACE_BEHIND = re.compile(r"(?:~|\\[,;:!> ]?|\\q?quad)$")
_LABEL = re.compile(r"(?:option|choice|answer)(?: is)?\s*:?\s*(?![a-z])", re.IGNORECASE)
_LETTER = re.compile(r"([A-Za-z])[.):]?")


def choice_verdict(response: str, answer: str, *, is_truncated: bool = False) -> Verdict:
    """Grade one response; never slow, so it needs no worker.

    ``error`` means that the gold answer is no letter.
    """
    box = last_box(response)
    if box.state != "closed" or not box.text:
        if is_truncated:
            return Verdict(0.0, "truncated")
        return Verdict(0.0, "malformed" if box.state == "open" else "no_answer")
    gold, letter = read_letter(answer), read_letter(box.text)
    if not gold:
        return Verdict(0.0, "error", box.text)
    if not letter:
        return Verdict(0.0, "malformed", box.text)
    is_correct = letter == gold
    reason = "correct" if is_correct else "wrong"
    return Verdict(float(is_correct), reason, letter, basis="letter")


def read_letter(text: str) -> str:
    """Return the letter in upper case, empty when ``text`` is not one letter with wrapping."""
    if len(text) > _MAX_CHARS:
        return ""
    text, before = unicodedata.normalize("NFKC", text).strip(), None
    while text != before:
        before, text = text, _unwrap(text).strip()
    match = _LETTER.fullmatch(text)
    return match[1].upper() if match else ""


def _unwrap(text: str) -> str:
    if match := _STYLE.fullmatch(text):
        return match[1]
    for left, right in _PAIRS:
        if text.startswith(left) and text.endswith(right) and len(text) > len(left + right):
            return text[len(left) : -len(right)]
    if match := _NOTHING.match(text) or _LABEL.match(text):
        return text[match.end() :]
    if match := _SPACE_BEHIND.search(text):
        return text[: match.start()]
    return text.removesuffix(".") if text.endswith("}.") else text

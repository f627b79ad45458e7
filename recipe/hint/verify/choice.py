r"""Grades multiple choice: the one letter in the last ``\boxed{}`` against the gold letter.

Covered: A to Z in either case; ``(B)``, ``[B]``, ``B.``, ``B)``, ``$B$``, ``**B**``,
``\text{B}`` and its relatives, "option B", and ``B. Paris`` where the problem's option B is Paris.
Everything else in the box is ``malformed``: two letters, the option's text alone, its number.
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
# A line of the problem, or the whole box.
_OPTION = re.compile(r"[ \t]*(?:\\text(?:bf|rm)?\{)?\(?([A-Za-z])[.):]\)?(?:[ ~]*\})?[ \t]*(\S.*)")
_MAX_OPTION_CHARS = 2000


def choice_verdict(
    response: str, answer: str, problem: str = "", *, is_truncated: bool = False
) -> Verdict:
    """Grade one response; never slow, so it needs no worker.

    ``error`` means that the gold answer is no letter. ``problem`` holds the options, a line each.
    """
    box = last_box(response)
    if box.state != "closed" or not box.text:
        if is_truncated:
            return Verdict(0.0, "truncated")
        return Verdict(0.0, "malformed" if box.state == "open" else "no_answer")
    gold = read_letter(answer)
    letter = read_letter(box.text) or _letter_of_option(box.text, problem)
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
    match = _LETTER.fullmatch(_unwrapped(unicodedata.normalize("NFKC", text).strip()))
    return match[1].upper() if match else ""


def _letter_of_option(text: str, problem: str) -> str:
    """Return the letter before an option's text; empty where the problem has another one there."""
    if not problem or len(text) > _MAX_OPTION_CHARS:
        return ""
    found = _OPTION.fullmatch(_plain(text))
    if not found:
        return ""
    letter, said = found[1].upper(), _plain(found[2])
    options = filter(None, map(_OPTION.fullmatch, problem.splitlines()))
    is_said = any(each[1] == letter and _plain(each[2]) == said for each in options)
    return letter if is_said else ""


def _plain(text: str) -> str:
    """Return a text on one line without its wrapping, in lower case."""
    text = " ".join(unicodedata.normalize("NFKC", text).split())
    return _unwrapped(text).rstrip(".").lower()


def _unwrapped(text: str) -> str:
    before = None
    while text != before:
        before, text = text, _unwrap(text).strip()
    return text


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

r"""Judge a final answer in mathematics: the last ``\boxed{}`` against the gold answer.

An answer is read whole or not at all. The lexer (``lexer``) gives every character a token or
knows that it means nothing, the parser (``parser``) gives every token a place in a tree, and
trees are compared by shape (``compare``) and value (``values``). What cannot be read
is compared as text, so that an answer is never right because a part of it was overlooked.
An answer of the right value that only repeats the question (``questions``) is wrong.

``quick_verdict`` decides with exact fractions what needs no more and runs anywhere, in time linear
in a capped length. ``grade_maths`` adds numeric evaluation; run it in a worker that can be killed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from recipe.verify.maths.around import changes_value, has_other, without_repeats
from recipe.verify.maths.closeness import NeedsAlgebra
from recipe.verify.maths.compare import Comparison
from recipe.verify.maths.named import (
    read_answer,
    with_names,
    without_form,
)
from recipe.verify.maths.questions import asks_for_several, is_finished, leaves_work
from recipe.verify.maths.reading import Reading, read
from recipe.verify.maths.tree import NoValue
from recipe.verify.maths.words import NUMBERS
from recipe.verify.schema import Basis, Verdict

# What the calling thread reads; a longer answer is left to the worker.
_MAX_QUICK_CHARS = 300
MAX_ANSWER_CHARS = 10_000

_BOX = re.compile(r"\\boxed(?![A-Za-z])\s*")
# Prose that speaks of the command: within \boxed{}, in \boxed format.
_EMPTY_BOX = re.compile(r"\\boxed(?:\s*\{\s*\}|(?![A-Za-z]))")
_INSIDE = re.compile(
    r"\b(?:in|within|inside|into|with|using)(?: an?| the)?[\s`$\"'*(]{1,4}\Z", re.IGNORECASE
)
_FORMAT = re.compile(r"[`$\"'*]{0,2}\s(?:format|notation|environment|command|form|tag|macro)\b")
_QUOTED_END = re.compile(r"(?<=\})|[`\"'.,;:)]")
_BRACE = re.compile(r"(\\boxed(?![A-Za-z])\s*)\{|\\(?!\\boxed).|[{}]", re.DOTALL)
# A mark after a box: \boxed{5}\%, $\boxed{60}$°, \boxed{12}_7; not a comment, temperature or note.
_BASES = "|".join(NUMBERS)
_MARK = re.compile(
    r"(?:\$\$?|\\[)\],;! ]|\*\*|[ ~]){0,4}(\\%|%(?!\s*\n)"
    r"|(?:\^\s?\{?\s?\\circ\s?\}?|°)(?!\s?(?:\\(?:text|mathrm)\{\s?)?[CFK]\b))"
    r"|(_(?:\{(?:[2-9]|[12]\d|3[0-6])\}|(?:[2-9]|[12]\d|3[0-6])(?!\d)"
    rf"|\{{(?:{_BASES})\}}"
    rf"|(\{{)?\\(?:text|mathrm)\s?\{{\s?(?:base )?(?:[0-9]{{1,2}}|{_BASES})\s?\}}(?(3)\}})))"
)
_TAKES_NO_MARK = re.compile(r"(?:%|°|\\circ\s?\}?|_\{?\d+\}?)\s*$|.[-+]")
# Between two boxes that are parts of one answer: nothing, or a comma, "and", "or".
_GLUE = re.compile(
    r"\}((?:[\s~$*,;]|\\[()\[\],;: ]|\\q?quad(?![a-z])"
    r"|\\text\{(?:[\s,]{0,3}(?:and|or)|\s?,)\s?\}|and|or)*)\Z"
)
_PARTED = re.compile(r"(?<!\\)[,;]|and|or")
_NAME = re.compile(r"(?<![A-Za-z0-9\\+*/^-])([A-Za-z](?:_\{?[0-9]\}?)?)\s?=\s?\Z")  # x = \boxed{2}
_MAX_NAME = 12
_MAX_GLUE, _MAX_SIDE_BY_SIDE = 200, 12
_INTEGER = re.compile(r"([+-]?)([0-9]+)")
_TOLERANCE_MARK = "(tolerance"
_POSITIVE = re.compile(r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]{1,2})?)(%?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Box:
    """The last box of a response.

    Attributes:
        state: Whether there is one, and whether it ends.
        text: Its content, empty unless ``closed``.
        place: Where its command begins, and where its last brace ends.
    """

    state: Literal["absent", "open", "closed"]
    text: str = ""
    place: tuple[int, int] = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Equality:
    """Whether two answers say the same, what that rests on, and what was left out."""

    is_equal: bool
    basis: Basis
    ignored: str = ""


def quick_verdict(
    response: str, answer: str, is_truncated: bool = False, problem: str = ""
) -> Verdict | None:
    """Return the verdict when exact arithmetic decides, else ``None`` (ask ``grade_maths``).

    Args:
        response: Text written by the policy.
        answer: Gold answer, plain or with ``$`` or a box around it; it may state a tolerance,
            ``4.2 (tolerance 0.1)`` or ``4.2 (tolerance 5%)``.
        is_truncated: The response was cut at the length limit.
        problem: The problem's text, which says what nouns and units an answer may carry.
    """
    box = last_box(response)
    if box.state != "closed" or not box.text:
        if is_truncated:
            return Verdict(0.0, "truncated")
        return Verdict(0.0, "malformed" if box.state == "open" else "no_answer")
    gold, tolerance = _gold_text(answer)
    if not gold:
        return Verdict(0.0, "error", box.text)
    if changes_value(response, *box.place, problem) or has_other(response, *box.place, box.text):
        return Verdict(0.0, "malformed", box.text)
    try:
        equality = None if tolerance else _quick_equal(gold, box.text, problem)
    except Exception:  # noqa: BLE001 - a fault of the reader must end no run: the worker says "error"
        return None
    return None if equality is None else _verdict(equality, box.text)


def grade_maths(
    response: str, answer: str, *, is_truncated: bool = False, problem: str = ""
) -> Verdict:
    """Judge one response; may take long, so call it where it can be killed.

    A truncated response that holds a complete last box is judged like any other.
    ``error`` means that the gold answer is empty or states no valid tolerance.
    """
    verdict = quick_verdict(response, answer, is_truncated, problem)
    if verdict is not None:
        return verdict
    extracted = last_box(response).text
    try:
        return _verdict(compare(answer, extracted, problem), extracted)
    except ValueError as error:
        logging.getLogger(__name__).debug("no verdict on %.200r: %s", extracted, error)
        return Verdict(0.0, "error", extracted)


def last_box(response: str) -> Box:
    r"""Find the last ``\boxed{...}``; braces inside may nest or be escaped.

    An unbalanced last box, or ``\boxed`` without a brace, is ``open`` however many complete
    boxes come before it: those are intermediate values. An empty one that prose speaks of
    (``within \boxed{}``, ``in \boxed format``) does not count. A box inside another is part of it.
    Boxes side by side, ``\boxed{2}`` and ``\boxed{3}``, are one answer, the list of their values;
    so are ``x = \boxed{2}`` or ``x = \boxed{3}``. A box that only repeats the last one is left out
    (``around.without_repeats``). More than twelve of them are ``open``. A percent sign, degrees and
    a base right after a box are read as if they were in it.
    """
    last = _last_match(response)
    if last is None:
        return Box("absent")
    if response[last : last + 1] != "{":
        return Box("open")
    stack: list[tuple[int, int]] = []  # of open braces: where a box begins and its content, or -1
    closed: dict[int, tuple[int, int]] = {}  # the same of boxes, by their ends
    around: frozenset[tuple[int, int]] = frozenset()  # the boxes around the last one, and itself
    end = 0
    for match in _BRACE.finditer(response):
        if match[0].endswith("{") and match[0] != r"\{":
            stack.append((match.start(), match.end()) if match[1] else (-1, -1))
            if match.end() == last + 1:
                around = frozenset(box for box in stack if box[0] >= 0)
        elif match[0] == "}" and stack:
            box = stack.pop()
            if box[0] >= 0:
                closed[match.end()] = box
            if box in around:
                end = match.end()
    return _with_boxes_before(response, closed, end) if end else Box("open")


def _with_boxes_before(response: str, closed: Mapping[int, tuple[int, int]], end: int) -> Box:
    r"""Return the box that ends at ``end`` and those to its left, as one list.

    Where it has a name, ``x = \boxed{2}``, the others need one too.
    """
    parts: list[tuple[str, str]] = []  # names and values, the last box first
    start, at, link = closed[end][0], end, ", "
    is_named = _NAME.search(response, max(0, start - _MAX_NAME), start) is not None
    while at in closed and len(parts) < _MAX_SIDE_BY_SIDE:
        begin, inside = closed[at]
        name = _NAME.search(response, max(0, begin - _MAX_NAME), begin) if is_named else None
        if is_named and name is None:
            break
        start, left = begin, name.start() if name else begin
        parts.append((f"{name[1]} = " if name else "", response[inside : at - 1].strip()))
        glue = _GLUE.search(response, max(0, left - _MAX_GLUE), left)
        is_parted = glue is not None and (not glue[1] or _PARTED.search(glue[1]))
        at = glue.start() + 1 if glue is not None and is_parted else -1
        if glue is not None and at in closed and "or" in glue[1]:
            link = r" \text{ or } "
    if at in closed and len(parts) == _MAX_SIDE_BY_SIDE:
        return Box("open")  # no answer has more parts, and none of them is left out
    name, last = parts[0]
    parts[0] = (name, last + _mark_after(response, end, last))
    texts = without_repeats(parts[::-1])
    text = link.join(texts) if len(texts) > 1 else texts[0].removeprefix(name)
    return Box("closed", text, (start, end))


def _mark_after(response: str, end: int, inside: str) -> str:
    """Return a mark that belongs to the value in the box that ends at ``end``.

    A base belongs to digits, the others to one number without a mark of its own.
    """
    mark = _MARK.match(response, end)
    if mark is None or _TAKES_NO_MARK.search(inside) or not re.search(r"\d", inside):
        return ""
    return mark[1] or (mark[2] if inside.isdigit() else "")


def _last_match(response: str) -> int | None:
    """Return where the last box's brace must be; one only spoken of counts if it is alone."""
    spoken_of = None
    start = response.rfind(r"\boxed")
    while start >= 0:
        match = _BOX.match(response, start)
        if match is not None and not _is_spoken_of(response, start):
            return match.end()
        spoken_of = match.end() if match is not None and spoken_of is None else spoken_of
        start = response.rfind(r"\boxed", 0, start)
    return spoken_of


def _is_spoken_of(response: str, start: int) -> bool:
    """Tell whether the command here holds nothing and the words around it speak of it."""
    box = _EMPTY_BOX.match(response, start)
    if box is None:
        return False
    if _FORMAT.match(response, box.end()):
        return True
    is_ended = _QUOTED_END.match(response, box.end()) is not None
    return is_ended and _INSIDE.search(response, max(0, start - 20), start) is not None


def compare(answer: str, candidate: str, problem: str = "") -> Equality:
    """Compare two answers by all means; slow.

    Raises:
        ValueError: The stated tolerance is not a positive number.
    """
    gold, stated = _gold_text(answer)
    tolerance = _tolerance(gold, stated)
    if tolerance is None and (quick := _quick_equal(gold, candidate, problem)) is not None:
        return quick
    left = read(gold)
    right = read_answer(candidate, left, problem)
    if left.text == right.text:
        return Equality(True, "text")
    return _trees_equal(left, right, Comparison(problem=problem, tolerance=tolerance)) or Equality(
        False, "text"
    )


def equal(answer: str, candidate: str, problem: str = "") -> bool:
    """Return whether two answers mean the same; errors are those of ``compare``."""
    return compare(answer, candidate, problem).is_equal


def is_text_only(answer: str) -> bool:
    """Return whether a gold answer cannot be read, so that only the same text is right."""
    return not read(_gold_text(answer)[0]).trees


def _trees_equal(gold: Reading, other: Reading, comparison: Comparison) -> Equality | None:
    """Compare readings; ``None`` if the answer has none, or its value cannot be told."""
    known = False
    golds = gold.trees
    if len(golds) > 1 and not asks_for_several(comparison.problem):
        golds = golds[:1]  # `1,234` is one number where one is asked for
    again = Comparison(tolerance=comparison.tolerance, is_quick=comparison.is_quick).equal
    is_near = comparison.tolerance is not None
    for gold_tree in golds:
        for tree in other.trees:
            right = with_names(tree, gold_tree, comparison.problem)
            left = without_form(gold_tree, right)
            comparison.ignored.clear()
            if leaves_work(left, right):
                known = True
                continue
            try:
                is_equal = comparison.equal(left, right)
            except NoValue:
                continue
            known = True
            if is_equal and is_finished(left, right, comparison.problem, again, is_near=is_near):
                return Equality(True, _basis(comparison), "; ".join(comparison.ignored)[:200])
    return Equality(False, _basis(comparison)) if known else None


def _basis(comparison: Comparison) -> Basis:
    if comparison.used_algebra:
        return "algebra"
    return "text" if comparison.used_words else "number"


def _quick_equal(gold: str, candidate: str, problem: str) -> Equality | None:
    """Compare two answers as written; ``None`` unless exact arithmetic decides."""
    if candidate == gold:
        return Equality(True, "text")
    digits = _integer(gold), _integer(candidate)
    if None not in digits:
        return Equality(digits[0] == digits[1], "number")
    if len(candidate) > MAX_ANSWER_CHARS:
        return Equality(False, "text")
    if max(len(gold), len(candidate)) > _MAX_QUICK_CHARS:
        return None
    try:
        left = read(gold)
        right = read_answer(candidate, left, problem)
        if left.text == right.text:
            return Equality(True, "text")
        if not left.trees or not right.trees:
            return Equality(False, "text")
        return _trees_equal(left, right, Comparison(problem=problem, is_quick=True))
    except NeedsAlgebra:
        return None


def _integer(text: str) -> str | None:
    """Return the canonical digits of an integer of any length, else ``None``."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    # Text, not int(): Python refuses numerals of more than 4300 digits.
    digits = match[2].lstrip("0") or "0"
    return digits if match[1] != "-" or digits == "0" else f"-{digits}"


def _gold_text(answer: str) -> tuple[str, str]:
    """Return the gold answer, without a box that the data set kept, and its stated tolerance."""
    box = last_box(answer)
    answer = (box.text if box.state == "closed" else answer).strip()
    if not any(map(str.isalnum, answer)) and not read(answer).text:
        return "", ""  # `$$` and `{}` say as little as no answer
    value, mark, stated = answer.rpartition(_TOLERANCE_MARK)
    if mark and stated.endswith(")") and value.strip():
        return value.strip(), stated[:-1].strip(" =") or "none"
    return answer, ""


def _tolerance(gold: str, stated: str) -> Fraction | None:
    """Return the largest allowed difference.

    Raises:
        ValueError: It is not a positive number, or is relative and the gold answer is not a number.
    """
    if not stated:
        return None
    match = _POSITIVE.fullmatch(stated)
    if match is None or not Fraction(match[1]):
        raise ValueError(f"a tolerance is a positive number such as 0.1 or 5%, got {stated!r}")
    if not match[2]:
        return Fraction(match[1])
    try:
        return Fraction(match[1]) / 100 * abs(Fraction(gold))
    except ValueError:
        raise ValueError(f"a tolerance in percent needs a plain number, got {gold!r}") from None


def _verdict(equality: Equality, extracted: str) -> Verdict:
    return Verdict(
        float(equality.is_equal),
        "correct" if equality.is_equal else "wrong",
        extracted,
        equality.basis,
        equality.ignored,
    )

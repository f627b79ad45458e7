r"""Judge a final answer in mathematics: the last ``\boxed{}`` against the gold answer.

An answer is read whole or not at all. The lexer (``lexer``) gives every character a token or
knows that it means nothing, the parser (``parser``) gives every token a place in a tree, and
trees are compared by shape (``compare``) and value (``values``). What cannot be read
is compared as text, so that an answer is never right because a part of it was overlooked.
An answer of the right value that only repeats the question (``copies``) is wrong.

``quick_verdict`` decides with exact fractions what needs no more and runs anywhere, in time linear
in a capped length. ``grade_maths`` adds numeric evaluation; run it in a worker that can be killed.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from fractions import Fraction

from recipe.verify.maths.box import changes_value, has_other, last_box
from recipe.verify.maths.compare import Comparison
from recipe.verify.maths.copies import adds_operation, repeats_question, sides_of
from recipe.verify.maths.named import with_names
from recipe.verify.maths.question import asks_for_several
from recipe.verify.maths.reading import Reading, read, read_answer
from recipe.verify.maths.tree import STRUCTURES, Node, NoValue
from recipe.verify.maths.values import NeedsAlgebra
from recipe.verify.schema import Basis, Verdict

# What the calling thread reads; a longer answer is left to the worker.
_MAX_QUICK_CHARS = 300
MAX_ANSWER_CHARS = 10_000
_INTEGER = re.compile(r"([+-]?)([0-9]+)")
_TOLERANCE_MARK = "(tolerance"
_POSITIVE = re.compile(r"([0-9]*\.?[0-9]+(?:e[+-]?[0-9]{1,2})?)(%?)", re.IGNORECASE)


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
    comparison = Comparison(problem=problem, tolerance=tolerance)
    equality = _trees_equal(left, read_answer(candidate, left, problem), comparison)
    return equality or Equality(False, "text")


def equal(answer: str, candidate: str, problem: str = "") -> bool:
    """Return whether two answers mean the same; errors are those of ``compare``."""
    return compare(answer, candidate, problem).is_equal


def is_text_only(answer: str) -> bool:
    """Return whether a gold answer cannot be read, so that only the same text is right."""
    return not read(_gold_text(answer)[0]).trees


def _trees_equal(gold: Reading, other: Reading, comparison: Comparison) -> Equality | None:
    """Compare readings; ``None`` if the answer has none, or its value cannot be told."""
    if gold.text == other.text:
        return Equality(True, "text")
    known, problem = False, comparison.problem
    # `1,234` is one number where one is asked for
    golds = gold.trees if asks_for_several(problem) else gold.trees[:1]
    pairs = [
        (left, with_names(_member(right, left), left, problem))
        for left in golds
        for right in other.trees
    ]
    for left, right in pairs:
        comparison.ignored.clear()
        # The sides of sqrt(50) = 5 sqrt(2) have to be equal, and one has to be finished.
        sides = sides_of(right)
        if comparison.tolerance is None:
            sides = [each for each in sides if not adds_operation(left, each)]
        try:
            is_equal = bool(sides) and comparison.equal(_member(left, right), right)
        except NoValue:
            continue
        known = True
        again = Comparison(tolerance=comparison.tolerance, is_quick=comparison.is_quick).equal
        if is_equal and not all(repeats_question(left, each, problem, again) for each in sides):
            return Equality(True, _basis(comparison), "; ".join(comparison.ignored)[:200])
    return Equality(False, _basis(comparison)) if known else None


def _member(node: Node, other: Node) -> Node:
    is_one = node.kind == "set" and len(node.items) == 1
    is_single = other.kind == "label" or other.kind not in STRUCTURES
    return node.items[0] if is_one and is_single else node


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
        if not left.trees or not right.trees:
            return Equality(left.text == right.text, "text")
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
    box = last_box(answer)
    answer = (box.text if box.state == "closed" else answer).strip()
    if not re.sub(r"[\s$]|(?<!\\)[{}]", "", answer):
        return "", ""  # `$$` and `{}` say as little as no answer
    value, mark, stated = answer.rpartition(_TOLERANCE_MARK)
    if mark and stated.endswith(")") and value.strip():
        return value.strip(), stated[:-1].strip(" =") or "none"
    return answer, ""


def _tolerance(gold: str, stated: str) -> Fraction | None:
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

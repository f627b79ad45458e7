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

import re

from recipe.verify.maths.box import changes_value, has_other, last_box, without_answer
from recipe.verify.maths.compare import Comparison
from recipe.verify.maths.copies import adds_operation, repeats_question, sides_of
from recipe.verify.maths.named import with_names
from recipe.verify.maths.reading import Reading, read, read_answer
from recipe.verify.maths.tree import STRUCTURES, Node, NoValue
from recipe.verify.maths.values import NeedsAlgebra
from recipe.verify.schema import Basis, Verdict

# What the calling thread reads; a longer answer is left to the worker.
_MAX_QUICK_CHARS = 300
_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")


def quick_verdict(
    response: str, answer: str, is_truncated: bool = False, problem: str = ""
) -> Verdict | None:
    """Return the verdict when exact arithmetic decides, else ``None`` (ask ``grade_maths``).

    Args:
        response: Text written by the policy.
        answer: Gold answer, plain or with ``$`` or a box around it.
        is_truncated: The response was cut at the length limit.
        problem: The problem's text, which says what nouns and units an answer may carry.
    """
    box = last_box(response)
    if verdict := without_answer(box, is_truncated):
        return verdict
    gold = _gold_text(answer)
    if not gold:
        return Verdict(0.0, "error", box.text)
    if changes_value(response, *box.place, problem) or has_other(response, *box.place, box.text):
        return Verdict(0.0, "malformed", box.text)
    try:
        return _judged(gold, box.text, Comparison(problem=problem, is_quick=True))
    except NeedsAlgebra:
        return None
    except Exception:  # noqa: BLE001 - a fault of the reader must end no run: the worker says "error"
        return None


def grade_maths(
    response: str, answer: str, *, is_truncated: bool = False, problem: str = ""
) -> Verdict:
    """Judge one response; may take long, so call it where it can be killed.

    A truncated response that holds a complete last box is judged like any other.
    ``error`` means that the gold answer is empty.
    """
    verdict = quick_verdict(response, answer, is_truncated, problem)
    if verdict is not None:
        return verdict
    extracted, comparison = last_box(response).text, Comparison(problem=problem)
    verdict = _judged(_gold_text(answer), extracted, comparison)
    return verdict or _verdict(False, extracted, "text")


def is_text_only(answer: str) -> bool:
    """Return whether a gold answer cannot be read, so that only the same text is right."""
    return not read(_gold_text(answer)).trees


def _compared(
    gold: Reading, other: Reading, extracted: str, comparison: Comparison
) -> Verdict | None:
    """Compare readings; ``None`` if the answer has none, or its value cannot be told."""
    if gold.text == other.text:
        return _verdict(True, extracted, "text")
    known, problem = False, comparison.problem
    pairs = [
        (left, with_names(_member(right, left), left, problem))
        for left in gold.trees[:1]  # `1,234` is one number
        for right in other.trees
    ]
    for left, right in pairs:
        comparison.ignored.clear()
        # The sides of sqrt(50) = 5 sqrt(2) have to be equal, and one has to be finished.
        sides = sides_of(right)
        sides = [each for each in sides if not adds_operation(left, each)]
        try:
            is_equal = bool(sides) and comparison.equal(_member(left, right), right)
        except NoValue:
            continue
        known = True
        again = Comparison(is_quick=comparison.is_quick).equal
        if is_equal and not all(repeats_question(left, each, problem, again) for each in sides):
            ignored = "; ".join(comparison.ignored)[:200]
            return _verdict(True, extracted, _basis(comparison), ignored)
    return _verdict(False, extracted, _basis(comparison)) if known else None


def _member(node: Node, other: Node) -> Node:
    is_one = node.kind == "set" and len(node.items) == 1
    is_single = other.kind == "label" or other.kind not in STRUCTURES
    return node.items[0] if is_one and is_single else node


def _basis(comparison: Comparison) -> Basis:
    if comparison.used_algebra:
        return "algebra"
    return "text" if comparison.used_words else "number"


def _judged(gold: str, candidate: str, comparison: Comparison) -> Verdict | None:
    """Compare two answers as written; ``None`` where that cannot be decided, or not quickly."""
    if candidate == gold:
        return _verdict(True, candidate, "text")
    if _INTEGER.fullmatch(gold) and _INTEGER.fullmatch(candidate):
        return _verdict(int(gold) == int(candidate), candidate, "number")
    if comparison.is_quick and max(len(gold), len(candidate)) > _MAX_QUICK_CHARS:
        return None
    left = read(gold)
    right = read_answer(candidate, left, comparison.problem)
    if not left.trees or not right.trees:
        return _verdict(left.text == right.text, candidate, "text")
    return _compared(left, right, candidate, comparison)


def _gold_text(answer: str) -> str:
    box = last_box(answer)
    answer = (box.text if box.state == "closed" else answer).strip()
    if not re.sub(r"[\s$]|(?<!\\)[{}]", "", answer):
        return ""  # `$$` and `{}` say as little as no answer
    return answer


def _verdict(is_equal: bool, extracted: str, basis: Basis, ignored: str = "") -> Verdict:
    reason = "correct" if is_equal else "wrong"
    return Verdict(float(is_equal), reason, extracted, basis, ignored)

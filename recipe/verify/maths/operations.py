r"""Kinds of operations that an answer may have: a root where the gold answer has one, and the like.

``\log_2 4`` for 2, ``\arcsin\frac12`` for ``\frac{\pi}{6}`` and ``\sin 75^\circ`` for
``\frac{\sqrt6+\sqrt2}{4}`` leave the work undone. Members of a list, a bracket or an interval are
looked at one by one, and so are the roots and functions of a sum: one with a rational value is
undone, whatever is beside it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from recipe.verify.maths.numeric import approximate
from recipe.verify.maths.tree import Node, NoValue, exact, names_in

_WAVES = frozenset("sin cos tan cot sec csc".split())
_LOGS = frozenset({"ln", "log"})
# What else an answer may have where the gold answer has the first.
_TWINS = {
    "wave": {"root", "exp", "pi", "i", "e"},
    "arc": {"root", "pi"},
    "log": {"root", "e"},
    "exp": {"root", "wave", "log", "hyp", "pi", "i", "e"},
    "hyp": {"exp", "e", "root"},
    "abs": {"root"},
    "degree": {"pi"},
    "e": {"exp", "hyp"},
    "i": {"exp", "pi", "e"},
}
_ASKED = frozenset({"root", "wave", "arc", "log", "exp", "hyp", "pi", "e", "i"})
_MAX_BOTTOM = 1000  # of a fraction that a number of 60 digits is found to be
_SUMS = frozenset({"add", "sub", "neg"})
_PI = Node("const", value="pi")
_DIGITS = 60
_NEAR = Fraction(1, 10**40)
_MAX_VALUES = 40  # constants of one answer that are evaluated; with more it is undone
_MAX_SIZE = Fraction(10**15)
_ROUNDED_DECIMALS = 5  # a gold answer with as many may be a rounding of anything


def adds_operation(
    golds: Sequence[Node], answers: Sequence[Node], equal: Callable[[Node, Node], bool]
) -> bool:
    """Tell whether an answer has a kind of operation that its gold answer lacks.

    Args:
        golds: The values of the gold answer.
        answers: Those of an answer that says the same.
        equal: Whether two values are equal.
    """
    allowed = [_allowed(gold) for gold in golds]
    nodes = {each for gold in golds for each in nodes_of(gold)}
    has_polar = any("i" in known and known & {"exp", "wave"} for known in map(_kinds, golds))
    for place, answer in enumerate(answers):
        kinds = _kinds(answer) & _ASKED
        if not kinds:
            continue
        own = [gold for gold, known in zip(golds, allowed, strict=True) if kinds <= known]
        own += [gold for gold in golds if gold not in own and _may_round(gold, answer)]
        # In a bracket it has the place of its gold member.
        own.sort(key=lambda gold: gold not in golds[place : place + 1])
        if not own or (len(own) < len(golds) and not any(_is_one(equal, g, answer) for g in own)):
            return True
        undone = [each for each in _undone(answer, nodes) if not (has_polar and _is_part(each))]
        if len(undone) > _MAX_VALUES or any(map(_is_rational, undone)):
            return True
    return False


def _is_part(node: Node) -> bool:
    r"""Tell whether it may be a part of ``2(\cos 60^\circ + i \sin 60^\circ)``."""
    return _kinds(node) & _ASKED <= {"wave", "pi"}


@functools.lru_cache(maxsize=512)
def _value(node: Node) -> Fraction | None:
    """Return a real constant's value; ``None`` for all else."""
    try:
        return approximate(node, _DIGITS)
    except NoValue:
        return None


def _is_one(equal: Callable[[Node, Node], bool], gold: Node, answer: Node) -> bool:
    if gold == answer:
        return True
    one, two = _value(gold), _value(answer)
    if one is not None and two is not None and abs(one - two) > Fraction(1, 10**9) * (1 + abs(one)):
        return False
    try:
        return equal(gold, answer)
    except NoValue:
        return False


def _may_round(gold: Node, answer: Node) -> bool:
    """Tell whether a gold decimal is a rounding of a constant: ``1.41421`` of a root."""
    if gold.kind == "neg":
        return _may_round(gold.items[0], Node("neg", (answer,)))
    is_long = gold.kind == "num" and gold.value.decimals >= _ROUNDED_DECIMALS
    return is_long and not names_in(answer) and not _is_near(answer, gold.value.value)


def _is_near(node: Node, value: Fraction) -> bool:
    own = _value(node)
    return own is not None and abs(own - value) < _NEAR * max(1, abs(value))


def _is_rational(node: Node) -> bool:
    r"""Tell whether a constant is a fraction of small numbers, or ``\arccos 0`` one of pi."""
    value = _value(node)
    if value is None:
        return False
    if node.kind == "fn" and _function_kind(node.value) == "arc":
        value /= approximate(_PI, _DIGITS)
    if value and not 1 / _MAX_SIZE < abs(value) < _MAX_SIZE:  # too far from the mesh of fractions
        return False
    nearest = value.limit_denominator(_MAX_BOTTOM)
    return abs(value - nearest) < _NEAR * max(1, abs(value))


def _undone(answer: Node, known: set[Node]) -> list[Node]:
    """List the constants with roots and functions in an answer that are not the gold answer's.

    Sums are left out: only their terms can be worked out.
    """
    found = {
        each: None
        for each in nodes_of(answer)
        if each.items and each.kind not in _SUMS and not names_in(each)
        and _kinds(each) & _ASKED and each not in known
    }  # fmt: skip
    return list(found)


def _allowed(gold: Node) -> set[str]:
    """List the kinds that an answer may have: the gold answer's, and what they may become."""
    kinds = _kinds(gold, is_gold=True)
    return kinds.union(*(_TWINS.get(kind, ()) for kind in kinds))


def _kinds(node: Node, *, is_gold: bool = False) -> set[str]:
    return {_own_kind(each, is_gold=is_gold) for each in nodes_of(node)}


def _own_kind(node: Node, *, is_gold: bool = False) -> str:
    """Name the kind of operation at the top of a tree; of sums and products nothing."""
    if node.kind in ("root", "log", "degree", "abs"):
        return node.kind
    if node.kind == "const":
        return str(node.value)
    if node.kind == "fn":
        return _function_kind(node.value)
    if node.kind != "pow":
        return ""
    power = exact(node.items[1])
    if power is not None:
        return "root" if power.denominator > 1 else ""
    return "exp" if is_gold or not names_in(node.items[1]) else ""


def _function_kind(name: str) -> str:
    if name in _LOGS:
        return "log"
    if name.startswith("arc"):
        return "arc"
    return "wave" if name in _WAVES else "hyp"


def nodes_of(node: Node) -> Iterator[Node]:
    """Yield a tree's nodes, the root first."""
    yield node
    for item in node.items:
        yield from nodes_of(item)


def signed_terms(node: Node, sign: int = 1) -> Iterator[tuple[Node, int]]:
    """Yield the terms of a sum with their signs, 1 or -1."""
    if node.kind not in _SUMS:
        yield node, sign
        return
    for place, item in enumerate(node.items):
        is_taken = node.kind == "neg" or (node.kind == "sub" and place == 1)
        yield from signed_terms(item, -sign if is_taken else sign)

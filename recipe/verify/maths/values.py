r"""Equality of formulas: by exact fractions, as a rounding, else by mpmath.

Two constants are equal when they agree to at least 100 digits beyond the widest spread of sizes
in any of their sums, so that no term is ever too small to count. Two functions are equal when
they agree at random irrational points on several scales, drawn anew for each pair of texts, and
when the answer changes its formula (roots, logarithms, ``|x|``) only where the gold answer does.
A size or a number of digits beyond the limits raises ``NoValue``: then only the same tree is equal.

Only for a worker: time is bounded by the limits below, not by what a caller can wait for.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from recipe.verify.maths.numeric import agree, approximate, evaluate, is_real
from recipe.verify.maths.tree import Node, NoValue, decimals, exact, names_in

_MIN_POINTS = 4
_SCALES = (0, -6, -2, 2, 4, 9, 20, 60, 300)  # powers of ten
_ROUNDED_DIGITS = 6  # a decimal with fewer is not a rounding of anything
# A rounding of a decimal that ends, 12345.67, may be off by this times min(1, |gold|).
_TOLERANCE = Fraction(2, 1_000_000)
_EXACT = Fraction(1, 10**20)  # sqrt(4), computed to 30 digits more, is 2


class NeedsAlgebra(Exception):
    """Exact arithmetic does not decide, and algebra belongs in a worker."""


def same_value(gold: Node, other: Node) -> bool:
    """Return whether two formulas are equal, as constants or as functions.

    Raises:
        NoValue: That cannot be told.
    """
    names = sorted(names_in(gold, other))
    if not names:
        return agree(gold, other, {})
    if _branches_alone(gold, other) or len(names) > 12:
        return False
    points = itertools.chain(_points(gold, other, names), _near_corners(gold, other, names))
    compared, is_complex = 0, _has_imaginary(gold)
    for point in points:
        try:
            value = evaluate(gold, point)[0]
        except NoValue:
            continue
        if not is_complex and not is_real(value):
            continue  # the gold answer is not defined there
        try:
            if not agree(gold, other, point):
                return False
        except NoValue as problem:
            if str(problem) in ("too large", "too many digits"):
                continue
            return False  # the gold answer is defined there
        compared += 1
    if compared < _MIN_POINTS:
        raise NoValue("too few points")
    return True


def _branches_alone(gold: Node, other: Node) -> bool:
    """Return whether the answer can change its formula where the gold answer does not.

    Such a function may differ far away, or between two points only.
    """
    own = [*_branches(gold)]
    return not all(
        any(argument == each or _is_proportional(argument, each) for each in own)
        for argument in _branches(other)
    )


def _is_proportional(one: Node, other: Node) -> bool:
    try:
        return names_in(one) == names_in(other) and _differ_by_factor(one, other)
    except NoValue:
        return False


def _branches(node: Node) -> Iterator[Node]:
    if not names_in(node):
        return
    is_inverse = node.kind == "fn" and (node.value == "ln" or node.value.startswith("arc"))
    power = exact(node.items[1]) if node.kind == "pow" else Fraction(1)
    takes_root = power is None or power.denominator > 1
    if node.kind in ("root", "log", "abs", "floor", "ceil") or is_inverse or takes_root:
        parts = node.items if node.kind == "log" else node.items[:1]
        yield from (item for item in parts if names_in(item))
    for item in node.items:
        yield from _branches(item)


def _has_imaginary(node: Node) -> bool:
    return (node.kind, node.value) == ("const", "i") or any(map(_has_imaginary, node.items))


def _points(gold: Node, other: Node, names: list[str]) -> Iterator[Mapping[str, Any]]:
    # Seeded by both texts, so that nobody can know the points before writing an answer.
    digest = hashlib.sha256(repr((gold, other)).encode("utf-8", "backslashreplace")).digest()
    rng = random.Random(digest)
    for scale in (0, *_SCALES):
        for sign in (1, -1):
            # Some variables stay near 1: terms of different sizes meet.
            signs = [sign if rng.random() < 0.8 else -sign for _ in names]
            scales = [scale if rng.random() < 0.85 else 0 for _ in names]
            yield {
                name: _irrational(rng, *each)
                for name, *each in zip(names, signs, scales, strict=True)
            }


def _near_corners(gold: Node, other: Node, names: list[str]) -> Iterator[Mapping[str, Any]]:
    if any(True for node in (gold, other) for _ in _branches(node)):
        numbers = {exact(constant) for node in (gold, other) for constant in _constants(node)}
        for number in sorted(numbers - {None})[:12]:  # pyright: ignore[reportArgumentType]
            for sign in (1, -1):
                yield {name: _irrational_near(number, sign) for name in names}


def _irrational_near(number: Fraction, sign: int) -> Any:
    return lambda mp: mp.mpf(number.numerator) / number.denominator + sign * mp.sqrt(2) / 9


def _irrational(rng: random.Random, sign: int, scale: int) -> Any:
    radicand = rng.getrandbits(160) | 1
    return lambda mp: sign * mp.sqrt(mp.mpf(radicand) / 2**159) * mp.mpf(10) ** scale * 3


def _constants(node: Node) -> Iterator[Node]:
    if not names_in(node):
        yield node
        return
    for item in node.items:
        yield from _constants(item)


def same_relation(gold: Node, other: Node, *, may_flip: bool) -> bool:
    """Return whether two differences agree up to a factor, which is positive unless ``may_flip``.

    Args:
        gold: A relation of two sides.
        other: That of the answer.
        may_flip: The relation is symmetric.

    Raises:
        NoValue: That cannot be told.
    """
    left, right = Node("sub", gold.items), Node("sub", other.items)
    if names_in(left) != names_in(right) or _branches_alone(left, right):
        return False
    return _differ_by_factor(left, right, may_flip=may_flip)


def _differ_by_factor(left: Node, right: Node, *, may_flip: bool = True) -> bool:
    names = sorted(names_in(left))
    found: list[Mapping[str, Any]] = []  # points where neither is 0
    for point in _points(left, right, names):
        try:
            a, b = (evaluate(each, point)[0] for each in (left, right))
        except NoValue:
            continue
        if not is_real(a) or not is_real(b):
            continue
        if (a == 0) != (b == 0) or not (may_flip or (a.real > 0) == (b.real > 0)):
            return False
        if a != 0:
            found.append(point)
            if not _proportional(left, right, found[0], point):
                return False
    if len(found) <= _MIN_POINTS:
        raise NoValue("too few points")
    return True


def _proportional(left: Node, right: Node, one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Test ``left(one) right(two) = left(two) right(one)``, as values of one tree at one point."""
    both = {f"1{name}": value for name, value in one.items()}
    both |= {f"2{name}": value for name, value in two.items()}
    return agree(
        Node("mul", (_renamed(left, "1"), _renamed(right, "2"))),
        Node("mul", (_renamed(left, "2"), _renamed(right, "1"))),
        both,
    )


def _renamed(node: Node, prefix: str) -> Node:
    if node.kind == "sym":
        return Node("sym", value=prefix + node.value)
    return Node(node.kind, tuple(_renamed(item, prefix) for item in node.items), node.value)


def is_rounded(gold: Node, other: Node) -> bool:
    """Return whether one of two constants is written as a decimal that rounds the other.

    An answer that ends, 12.345671, says more than a gold answer that is rounded.

    Raises:
        NoValue: One has no real value.
    """
    for node, constant in ((other, gold), (gold, other)):
        decimal, value = exact(node), exact(constant)
        if decimal is None or not _may_round(node, decimal):
            continue
        if value is None:
            value, is_inexact = approximate(constant, decimals(node) + 30), True
        else:
            is_near = abs(value - decimal) <= _TOLERANCE * min(1, abs(value))
            is_near = is_near and node is other and decimals(other) >= _ROUNDED_DIGITS - 1
            is_inexact = is_near or _never_ends(value)
        if is_inexact and _rounds_to(value, node, decimal):
            return True
    return False


def _never_ends(value: Fraction) -> bool:
    rest = value.denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    return rest > 1


def _may_round(node: Node, decimal: Fraction) -> bool:
    """Return whether ``node``, which is ``decimal``, has enough digits for a rounding."""
    places = decimals(node)
    return 0 < places <= 400 and abs(decimal) * 10**places >= 10 ** (_ROUNDED_DIGITS - 1)


def _rounds_to(value: Fraction, node: Node, decimal: Fraction) -> bool:
    """Return whether ``node``, a decimal of six digits or more, is ``value`` rounded or cut."""
    unit = Fraction(1, 10 ** decimals(node))
    nearest = round(value / unit)
    if abs(value / unit - nearest) < _EXACT:
        return nearest * unit == decimal  # it can be written exactly
    gap = abs(value - decimal)
    return 2 * gap <= unit or (gap < unit and abs(decimal) < abs(value))

r"""Equality of formulas: by exact fractions where that is enough, else by mpmath.

Two constants are equal when they agree to at least 100 digits beyond the widest spread of sizes
in any of their sums, so that no term is ever too small to count. Two functions are equal when
they agree at random irrational points on several scales, drawn anew for each pair of texts, and
when the answer changes its formula (roots, logarithms, ``|x|``, steps) only where the gold answer
does. A size or a number of digits beyond the limits raises ``NoValue``: then only the same tree
is equal.

Only for a worker: time is bounded by the limits below, not by what a caller can wait for.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from recipe.verify.maths.numeric import agree, certain, is_real
from recipe.verify.maths.tree import Node, NoValue, exact, factors, names_in, num

_MIN_POINTS = 4
_SCALES = (0, -6, -2, 2, 4, 9, 20, 60, 300)  # powers of ten
_STEPS = frozenset({"floor", "ceil"})
_MAX_PERIOD = 500  # of a step: all whole numbers up to four times as many are tried


def same_value(gold: Node, other: Node) -> bool:
    """Return whether two formulas are equal, as constants or as functions.

    Raises:
        NoValue: That cannot be told.
    """
    if gold == other:
        return True
    values = exact(gold), exact(other)
    if None not in values:
        return values[0] == values[1]
    if not names_in(gold, other):
        return agree(gold, other, {})
    return _same_function(gold, other)


def _kinds_with_names(node: Node, kinds: frozenset[str]) -> bool:
    """Return whether one of ``kinds`` is there with a variable inside."""
    return next(_parts_of(node, kinds), None) is not None


def _has_signed_power(node: Node) -> bool:
    """Return whether it has a ``(-1)^n``, a function of whole numbers."""
    if node.kind == "pow" and names_in(node.items[1]) and (exact(node.items[0]) or 0) < 0:
        return True
    return any(_has_signed_power(item) for item in node.items)


def _is_piecewise_alone(gold: Node, other: Node) -> bool:
    """Return whether the answer can change its formula where the gold answer does not.

    Such a function may differ far away, or between two points only.
    """
    if _kinds_with_names(other, _STEPS) and not _kinds_with_names(gold, _STEPS):
        return True
    if _has_corner(other) and not _has_corner(gold):
        return True
    own = [*_branches(gold), *(factor for arg in _branches(gold) for factor in factors(arg))]
    return not all(_is_one_of(arg, own) for arg in _branches(other))


def _is_one_of(argument: Node, own: list[Node]) -> bool:
    """Return whether something changes at places where one of ``own`` does, or at 0 alone."""
    if argument in own or _is_proportional_to_one(argument, own):
        return True
    return all(
        part.kind == "sym" or _is_proportional_to_one(part, own) for part in factors(argument)
    )


def _is_proportional_to_one(node: Node, own: list[Node]) -> bool:
    for each in own:
        try:
            if names_in(node) == names_in(each) and _differ_by_factor(node, each):
                return True
        except NoValue:
            continue
    return False


def _branches(node: Node) -> Iterator[Node]:
    """Yield what a variable's root, logarithm, absolute value or inverse function is taken of."""
    if not names_in(node):
        return
    is_inverse = node.kind == "fn" and (node.value == "ln" or node.value.startswith("arc"))
    power = exact(node.items[1]) if node.kind == "pow" else Fraction(1)
    takes_root = power is None or power.denominator > 1
    if node.kind in ("root", "log", "abs") or is_inverse or takes_root:
        parts = node.items if node.kind == "log" else node.items[:1]
        yield from (item for item in parts if names_in(item))
    for item in node.items:
        yield from _branches(item)


def _has_corner(node: Node) -> bool:
    """Return whether it is bent: ``|x|``, and roots and logarithms of what has an even power."""
    if not names_in(node):
        return False
    takes_root = node.kind in ("root", "log") or (node.kind == "fn" and node.value == "ln")
    if node.kind == "pow" and (power := exact(node.items[1])) is not None:
        takes_root = power.denominator > 1
    is_even = takes_root and any(power % 2 == 0 for power in factors(node.items[0]).values())
    return node.kind == "abs" or is_even or any(map(_has_corner, node.items))


def _has_steps_of(gold: Node, other: Node, names: list[str]) -> bool:
    """Return whether the answer's steps are the gold's, moved, or few enough to try all places."""
    are_whole = _steps_between_whole_numbers(gold, names)
    own = [step.items[0] for step in _parts_of(gold, _STEPS)]
    for step in _parts_of(other, _STEPS):
        moves = [
            move for each in own for kind in ("sub", "add")
            if (move := _constant(Node(kind, (step.items[0], each)), names)) is not None
        ]  # fmt: skip
        if any(
            move.denominator == 1 if not are_whole else move.denominator < 200 for move in moves
        ):
            continue
        if not are_whole or _period(step.items[0]) > _MAX_PERIOD:
            return False
    return True


def _constant(node: Node, names: list[str]) -> Fraction | None:
    """Return a formula's value if it is rational and the same whatever its variables are."""
    values = {exact(placed(node, names, place)) for place in (Fraction(17, 3), Fraction(101), 7)}
    return values.pop() if len(values) == 1 else None


def placed(node: Node, names: list[str], start: Fraction | int) -> Node:
    """Return a formula with numbers from ``start`` on for its variables."""
    if node.kind == "sym" and node.value in names:
        return num(start + names.index(node.value))
    return Node(node.kind, tuple(placed(item, names, start) for item in node.items), node.value)


def _period(node: Node) -> int:
    """Return the product of the numbers in a step's argument, no smaller than its period."""
    if node.kind == "num":
        return max(1, *map(abs, node.value.value.as_integer_ratio()))
    return math.prod(map(_period, node.items))


def _steps_between_whole_numbers(node: Node, names: list[str]) -> bool:
    """Return whether a step's argument falls between whole numbers at whole variables."""
    import mpmath

    steps = list(_parts_of(node, _STEPS))
    for start in range(1, 12):
        point = {name: mpmath.mpf(start + place) for place, name in enumerate(names)}
        for step in steps:
            try:
                value = certain(step.items[0], point)
            except NoValue:
                continue
            if abs(value - mpmath.nint(value.real)) > 1e-9:
                return True
    return False


def _parts_of(node: Node, kinds: frozenset[str]) -> Iterator[Node]:
    if node.kind in kinds and names_in(node):
        yield node
    for item in node.items:
        yield from _parts_of(item, kinds)


def _same_function(gold: Node, other: Node) -> bool:
    names = sorted(names_in(gold, other))
    if _is_piecewise_alone(gold, other):
        return False
    if names_in(gold) != names_in(other) and len(names) > 12:
        raise NoValue("too many variables")
    if not _has_steps_of(gold, other, names):
        return False
    # (-1)^n and steps are functions of whole numbers; factorials have values everywhere.
    is_signed = _has_signed_power(gold)
    points = itertools.chain(_points(gold, other, names), _between(gold, other, names))
    verdict = None if is_signed else _agrees_at(gold, other, points)
    if _kinds_with_names(gold, _STEPS) and _differ_at_whole_numbers(gold, other, names):
        return False
    if verdict is True and _kinds_with_names(gold, _STEPS):  # at a step only whole numbers tell
        return _agrees_at(gold, other, _whole_points(gold, other, names)) is not False
    if verdict is not True and (is_signed or _steps_between_whole_numbers(gold, names)):
        has_waves = [_kinds_with_names(node, frozenset({"fn"})) for node in (gold, other)]
        if not is_signed and has_waves == [False, True]:
            return False  # sin(pi n) is 0 at whole numbers only
        verdict = _agrees_at(gold, other, _whole_points(gold, other, names))
    if verdict is None:
        raise NoValue("too few points")
    return verdict


def _agrees_at(gold: Node, other: Node, points: Iterator[Mapping[str, Any]]) -> bool | None:
    """Compare; ``False`` at the first point where they differ; ``None`` if too few have values."""
    compared = 0
    is_complex = _has_imaginary(gold)
    for point in points:
        try:
            value = certain(gold, point)
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
    return True if compared >= _MIN_POINTS else None


def _has_imaginary(node: Node) -> bool:
    return (node.kind, node.value) == ("const", "i") or any(map(_has_imaginary, node.items))


def _random(*parts: object) -> random.Random:
    """Seed the points by both texts, so that nobody can know them before writing an answer."""
    digest = hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).digest()
    return random.Random(digest)


def _points(gold: Node, other: Node, names: list[str]) -> Iterator[Mapping[str, Any]]:
    rng = _random("points", gold, other)
    for scale in (*_SCALES, *_own_scales(gold, other)):
        for sign in (1, -1):
            # Half of the variables may stay near 1: terms of different sizes meet.
            is_spread = rng.random() < 0.3
            yield {
                name: _irrational(
                    rng,
                    sign if rng.random() < 0.8 else -sign,
                    0 if is_spread and rng.random() < 0.5 else scale,
                )
                for name in names
            }
        if scale == 0:
            for sign in (1, -1):
                yield {name: _irrational(rng, sign, 0) for name in names}


def _between(gold: Node, other: Node, names: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield points between any two places where ``|ax+b|`` and its like change."""
    rng = _random("between", gold, other)
    changing = {part for node in (gold, other) for arg in _branches(node) for part in factors(arg)}
    for name in names if len(changing) > 1 else ():
        rest = {each: _irrational(rng, 1, 0) for each in names if each != name}
        roots = sorted(filter(None, (_root_of(part, name, rest) for part in changing)))
        for low, high in itertools.pairwise(roots[:20]):
            for _ in range(3):
                yield {**rest, name: low + (high - low) * rng.uniform(0.05, 0.95)}


def _root_of(node: Node, name: str, rest: Mapping[str, Any]) -> Any:
    """Return where a formula is 0, were it linear in a variable; ``None`` if that is unknown."""
    try:
        zero, one = (certain(node, {**rest, name: value}).real for value in (0.0, 1.0))
        return None if zero == one else zero / (zero - one)
    except NoValue:
        return None


def _irrational(rng: random.Random, sign: int, scale: int) -> Any:
    """Return a square root times a power of ten, to as many digits as are asked for."""
    import mpmath

    radicand = rng.getrandbits(160) | 1
    shift = 2**159

    def value() -> Any:
        return sign * mpmath.sqrt(mpmath.mpf(radicand) / shift) * mpmath.mpf(10) ** scale * 3

    return value


def _whole_points(gold: Node, other: Node, names: list[str]) -> Iterator[Mapping[str, Any]]:
    import mpmath

    rng = _random("whole", gold, other)
    tops = [*[12] * 3, *[40] * 6, *[90] * 6, *[300] * 6, *[2000] * 3, 50_000]
    tops += [10**6, 10**9, 10**15, *(10**scale for scale in _own_scales(gold, other) if scale > 0)]
    for top in tops:
        yield {name: mpmath.mpf(rng.randrange(1, top)) for name in names}
    near = {number + step for number in _own_numbers(gold, other) for step in (-1, 0, 1)}
    near |= {2 * number for number in near} if len(near) < 30 else set()
    for start in sorted({*range(1, 130 if len(names) == 1 else 12), *near}):
        if start > 0:
            yield {name: mpmath.mpf(start + place) for place, name in enumerate(names)}


def _differ_at_whole_numbers(gold: Node, other: Node, names: list[str]) -> bool:
    """Compare exactly at every whole number up to four times the longest period."""
    steps = [step.items[0] for node in (gold, other) for step in _parts_of(node, _STEPS)]
    top = 4 * min(_MAX_PERIOD, max(map(_period, steps), default=1)) + 200
    for place in range(1, top if len(names) == 1 else 1):
        left, right = (exact(placed(node, names, place)) for node in (gold, other))
        if left is not None and right is not None and left != right:
            return True
    return False


def _own_numbers(*nodes: Node) -> set[int]:
    """Return the whole constants of the formulas, where steps may happen."""
    values = [exact(constant) for node in nodes for constant in _constants(node)]
    found = {part for value in values if value is not None for part in value.as_integer_ratio()}
    return {abs(number) for number in found if 10 < abs(number) < 10**12}


def _own_scales(*nodes: Node) -> list[int]:
    """Return the powers of ten of the constants in the formulas, at most eight of them."""
    found: set[int] = set()
    for node in nodes:
        for constant in _constants(node):
            value = exact(constant)
            if value is not None and value != 0:
                bits = value.numerator.bit_length() - value.denominator.bit_length()
                digits = int(bits * 0.30103)
                if 3 < abs(digits) < 2000:
                    found |= {digits + 1, -digits}
    return sorted(found, key=abs, reverse=True)[:8]


def _constants(node: Node) -> Iterator[Node]:
    if not names_in(node):
        yield node
        return
    for item in node.items:
        yield from _constants(item)


def same_relation(gold: tuple[Node, Node], other: tuple[Node, Node], *, may_flip: bool) -> bool:
    """Return whether two differences agree up to a factor, which is positive unless ``may_flip``.

    Args:
        gold: The two sides.
        other: Those of the answer.
        may_flip: The relation is symmetric.

    Raises:
        NoValue: That cannot be told.
    """
    left, right = Node("sub", gold), Node("sub", other)
    if names_in(left) != names_in(right):
        return False
    if _is_piecewise_alone(left, right):
        return False
    return _differ_by_factor(left, right, may_flip=may_flip)


def _differ_by_factor(left: Node, right: Node, *, may_flip: bool = True) -> bool:
    names = sorted(names_in(left))
    found: list[Mapping[str, Any]] = []  # points where neither is 0
    for point in _points(left, right, names):
        try:
            a, b = (certain(each, point) for each in (left, right))
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

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
import operator
import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from recipe.verify.maths.tree import Node, NoValue, decimals, exact, is_infinite, names_in

_MAX_LOG10 = 10**15  # of an exponent's result: 10^{10^{15}} still has a place on the scale
GUARD = 25
_MAX_DIGITS = 6000
BASE_DIGITS = 60


_PLAIN: dict[str, Any] = {
    "neg": operator.neg,
    "mul": operator.mul,
    "div": operator.truediv,
    "abs": abs,
}


class Evaluation:
    """One tree at one point to a number of digits; notes the sizes of all terms of sums."""

    def __init__(self, digits: int, point: Mapping[str, Any]) -> None:
        import mpmath

        self.mp = mpmath.mp
        self.digits = digits
        self.point = point
        self.sizes: list[float] = []  # log10 of the sizes of all terms
        self.scale: Any = None  # the largest term

    def log10(self, value: Any) -> float:
        """Return the logarithm of the size of a value that is not 0."""
        size = self.mp.mag(value)
        return float(size) * 0.30103

    def note(self, value: Any) -> None:
        """Remember the size of a term."""
        if value == 0:
            return
        size = self.log10(value)
        self.sizes.append(size)
        self.scale = abs(value) if self.scale is None else max(self.scale, abs(value))

    def note_size(self, argument: Any) -> None:
        """Remember how far a function may be from its value at 0 or at infinity."""
        if argument != 0:
            self.sizes.append(self.log10(argument))

    def value(self, node: Node, *, in_function: bool = False) -> Any:
        """Return the value of a tree; a degree sign counts inside a function only."""
        kind, is_inside = node.kind, in_function or node.kind in ("fn", "log")
        parts = [self.value(item, in_function=is_inside) for item in node.items]
        if kind == "degree":
            result = parts[0] * (self.mp.pi / 180 if in_function else 1)
        elif kind in ("add", "sub"):
            self.note(parts[0])
            self.note(parts[1])
            result = parts[0] + parts[1] if kind == "add" else parts[0] - parts[1]
        elif kind in _PLAIN:
            result = _PLAIN[kind](*parts)
        elif (method := getattr(self, f"_{kind}", None)) is not None:
            result = method(node, *parts)
        else:
            raise NoValue(kind)
        if not self.mp.isfinite(result):
            raise NoValue("infinite")
        if result != 0 and abs(self.log10(result)) > _MAX_LOG10:
            raise NoValue("too large")
        return result

    def _num(self, node: Node) -> Any:
        value = node.value.value
        return self.mp.mpf(value.numerator) / value.denominator

    def _sym(self, node: Node) -> Any:
        value = self.point.get(node.value)
        if value is None:
            raise NoValue("a variable")
        return value() if callable(value) else value

    def _const(self, node: Node) -> Any:
        return {
            "pi": +self.mp.pi, "e": +self.mp.e, "i": self.mp.mpc(0, 1), "inf": self.mp.inf,
        }[node.value]  # fmt: skip

    def _pow(self, node: Node, base: Any, exponent: Any) -> Any:
        return self._power(base, exponent, exact(node.items[1]))

    def _power(self, base: Any, exponent: Any, power: Fraction | None) -> Any:
        if base == 0:
            if power is None or power <= 0:
                raise NoValue("a power of 0")
            return self.mp.mpf(0)
        if exponent != 0 and self.log10(exponent) > 20:
            raise NoValue("too large")
        if exponent != 0 and abs(float(self.mp.re(exponent)) * self.log10(base)) > _MAX_LOG10:
            raise NoValue("too large")
        self.note_size(exponent)  # 2^{10^{-90}} is 1 but for its 90th digit
        if power is not None and power.denominator == 1 and abs(power) < 10**9:
            return base ** int(power)
        return self.mp.power(base, exponent)

    def _root(self, node: Node, radicand: Any, degree: Any) -> Any:
        number = exact(node.items[1])
        if number is None or number.denominator != 1 or not 1 < number <= 1000:
            raise NoValue("a root of no whole degree")
        return self._power(radicand, 1 / degree, 1 / number)

    def _log(self, node: Node, value: Any, base: Any) -> Any:
        if base == 0:
            raise NoValue("no logarithm")
        return self.mp.log(value) / self.mp.log(base)

    def _fn(self, node: Node, value: Any) -> Any:
        name = str(node.value)
        if value != 0 and self.log10(value) > (15 if name.endswith("h") else 400):
            raise NoValue("too large")
        self.note_size(value)
        if name in ("tanh", "coth"):  # 1 but for e^{-2x}
            self.sizes.append(-0.87 * abs(float(self.mp.re(value))))
        names = {
            "ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot",
        }  # fmt: skip
        result = getattr(self.mp, names.get(name, name))(value)
        is_pole = name in ("tan", "cot", "sec", "csc") and result != 0
        if is_pole and self.log10(result) > self.digits / 2:
            raise NoValue("a pole")
        return result


def evaluate(
    node: Node, point: Mapping[str, Any], digits: int = BASE_DIGITS
) -> tuple[Any, Evaluation]:
    """Return a tree's value with ``digits`` digits, and the evaluation that found it.

    Raises:
        NoValue: There is none within the limits.
    """
    import mpmath

    with mpmath.workdps(digits):
        evaluation = Evaluation(digits, point)
        try:
            value = evaluation.value(node)
        except NoValue:
            raise
        except (ArithmeticError, ValueError, TypeError, RecursionError) as problem:
            raise NoValue(str(problem)) from problem
        return value, evaluation


def agree(gold: Node, other: Node, point: Mapping[str, Any]) -> bool:
    """Return whether two trees have one value at a point, with more digits until that is certain.

    Raises:
        NoValue: One has no value there, or too many digits would be needed.
    """
    import mpmath

    digits = BASE_DIGITS
    for _ in range(6):
        (a, left), (b, right) = evaluate(gold, point, digits), evaluate(other, point, digits)
        with mpmath.workdps(digits + 10):
            scale = max([abs(a), abs(b), *(e.scale for e in (left, right) if e.scale is not None)])
            if scale == 0:
                return True
            if abs(a - b) > scale * mpmath.mpf(10) ** (GUARD - digits):
                return False
            logs = [left.log10(value) for value in (a, b) if value != 0]
        logs += left.sizes + right.sizes
        needed = BASE_DIGITS + 40 + 2 * int(max(logs, default=0) - min(logs, default=0))
        if digits >= needed:
            return True
        digits = max(needed, 2 * digits)
        if digits > _MAX_DIGITS:
            raise NoValue("too many digits")
    raise NoValue("too many digits")


def is_real(value: Any) -> bool:
    """Return whether a value has no imaginary part, but for rounding."""
    return value.imag == 0 or abs(value.imag) < abs(value.real) * 1e-30


def approximate(node: Node, digits: int) -> Fraction:
    """Return a real constant to ``digits`` significant digits.

    Raises:
        NoValue: It has none.
    """
    import mpmath

    value, _ = evaluate(node, {}, digits + 40)
    if value != 0 and abs(mpmath.mp.mag(value)) > 40_000:
        raise NoValue("too large")
    with mpmath.workdps(digits + 40):
        if abs(mpmath.im(value)) > abs(value) * mpmath.mpf(10) ** (-digits):
            raise NoValue("no real number")
        sign, mantissa, exponent, _ = mpmath.mpf(mpmath.re(value))._mpf_
    size = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -size if sign else size


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
    if gold == other:
        return True
    values = exact(gold), exact(other)
    if None not in values:
        return values[0] == values[1]
    if not names_in(gold, other):
        return agree(gold, other, {})
    return _same_function(gold, other)


def _same_function(gold: Node, other: Node) -> bool:
    names = sorted(names_in(gold, other))
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
    import mpmath

    return lambda: mpmath.mpf(number.numerator) / number.denominator + sign * mpmath.sqrt(2) / 9


def _irrational(rng: random.Random, sign: int, scale: int) -> Any:
    import mpmath

    radicand = rng.getrandbits(160) | 1

    def value() -> Any:
        return sign * mpmath.sqrt(mpmath.mpf(radicand) / 2**159) * mpmath.mpf(10) ** scale * 3

    return value


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


def is_rounded(gold: Node, other: Node, left: Fraction, right: Fraction) -> bool:
    """Return whether one of two numbers is written as a decimal that rounds the other.

    An answer that ends, 12.345671, says more than a gold answer that is rounded.
    """
    is_near = decimals(other) >= _ROUNDED_DIGITS - 1
    is_near = is_near and abs(left - right) <= _TOLERANCE * min(1, abs(left))
    if _rounds_to(left, other, right) and (is_near or _never_ends(left)):
        return True
    return _never_ends(right) and _rounds_to(right, gold, left)


def rounds_constant(gold: Node, other: Node) -> bool | None:
    r"""Compare a constant such as ``\sqrt 2`` with a decimal; ``None`` without such a pair."""
    node, constant = (gold, other) if exact(gold) is not None else (other, gold)
    value = exact(node)
    if value is None or not _may_round(node, value) or is_infinite(constant):
        return None
    try:
        return _rounds_to(approximate(constant, decimals(node) + 30), node, value)
    except NoValue:
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
    if not _may_round(node, decimal):
        return False
    unit = Fraction(1, 10 ** decimals(node))
    nearest = round(value / unit)
    if abs(value / unit - nearest) < _EXACT:
        return nearest * unit == decimal  # it can be written exactly
    gap = abs(value - decimal)
    return 2 * gap <= unit or (gap < unit and abs(decimal) < abs(value))

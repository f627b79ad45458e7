r"""Values of formulas: exact fractions where that is enough, else mpmath to as many digits as needed.

Two constants are equal when they agree to at least 100 digits beyond the widest spread of sizes
in any of their sums, so that no term is ever too small to count. Two functions are equal when
they agree at random irrational points on several scales, drawn anew for each pair of texts; what
is piecewise in the answer alone makes it another function. A size or a number of digits beyond
the limits raises ``NoValue``: then only the same tree is equal.

Only for a worker: time is bounded by the limits below, not by what a caller can wait for.
"""

from __future__ import annotations

import functools
import hashlib
import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from recipe.hint.verify.maths_parser import Node, names_in, num

_MAX_BITS = 200_000  # of an exact numerator or denominator
_MAX_DIGITS = 6000
_MAX_LOG10 = 10**15  # of an exponent's result: 10^{10^{15}} still has a place on the scale
_MAX_TERMS = 2000  # of a sum or product
_MAX_FACTORIAL = 3000
_BASE_DIGITS = 60
_GUARD = 25
_MIN_POINTS = 4
_SCALES = (0, 0, 0, 0, 0, -6, -2, 2, 4, 9, 20, 60, 300)  # powers of ten
_STEPS = frozenset({"floor", "ceil"})
_PIECEWISE = _STEPS | {"abs"}


class NoValue(Exception):
    """It has no value here: undefined, too large, or too many digits would be needed."""


class _Noise(NoValue):
    """A difference has cancelled to nothing but rounding: more digits tell whether it is 0."""


# -- exact --------------------------------------------------------------------------------------


def exact(node: Node) -> Fraction | None:
    """The value of a rational constant; ``None`` for what is not one, or is too large."""
    try:
        return _exact(node)
    except (NoValue, RecursionError):
        return None


def _exact(node: Node) -> Fraction:
    kind = node.kind
    if kind == "num":
        return node.value.value
    if kind == "fact":
        value = _exact(node.items[0])
        if value.denominator != 1 or not 0 <= value <= _MAX_FACTORIAL:
            raise NoValue
        return Fraction(_factorial(int(value)))
    if kind not in ("add", "sub", "neg", "mul", "div", "pow", "binom", "abs", "floor", "ceil"):
        raise NoValue
    values = [_exact(item) for item in node.items]
    value = _EXACT[kind](*values)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise NoValue
    return value


@functools.lru_cache(maxsize=64)
def _factorial(value: int) -> int:
    import math

    return math.factorial(value)


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise NoValue
    if base == 0 and exponent <= 0:
        raise NoValue
    power = int(exponent)
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if base not in (0, 1, -1) and size * abs(power) > 2 * _MAX_BITS:
        raise NoValue
    if base in (1, -1):
        power %= 2
    return base**power


def _exact_quotient(top: Fraction, bottom: Fraction) -> Fraction:
    if bottom == 0:
        raise NoValue
    return top / bottom


def _exact_binom(n: Fraction, k: Fraction) -> Fraction:
    import math

    if n.denominator != 1 or k.denominator != 1 or not 0 <= k <= n <= _MAX_FACTORIAL:
        raise NoValue
    return Fraction(math.comb(int(n), int(k)))


_EXACT: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "neg": lambda a: -a,
    "mul": lambda a, b: a * b,
    "div": _exact_quotient,
    "pow": _exact_power,
    "binom": _exact_binom,
    "abs": abs,
    "floor": lambda a: Fraction(a.__floor__()),
    "ceil": lambda a: Fraction(a.__ceil__()),
}


# -- numeric ------------------------------------------------------------------------------------


class _Evaluation:
    """One tree at one point to a number of digits; notes the sizes of all terms of sums."""

    def __init__(self, digits: int, point: Mapping[str, Any]) -> None:
        import mpmath

        self.mp = mpmath.mp
        self.digits = digits
        self.point = point
        self.sizes: list[float] = []  # log10 of the sizes of all terms
        self.scale: Any = None  # the largest term

    def log10(self, value: Any) -> float:
        """Of the size of a value that is not 0."""
        size = self.mp.mag(value)
        return float(size) * 0.30103

    def note(self, value: Any) -> None:
        if value == 0:
            return
        size = self.log10(value)
        self.sizes.append(size)
        self.scale = abs(value) if self.scale is None else max(self.scale, abs(value))

    def value(self, node: Node, *, in_function: bool = False) -> Any:
        method = getattr(self, f"_{node.kind}", None)
        if method is None:
            raise NoValue(node.kind)
        if node.kind == "degree":
            factor = self.mp.pi / 180 if in_function else 1
            return self.value(node.items[0]) * factor
        if node.kind in ("add", "sub", "neg", "mul"):
            result = method(*(self.value(item, in_function=in_function) for item in node.items))
        elif node.kind == "div":
            top = self.value(node.items[0], in_function=in_function)
            result = top / self.not_zero(node.items[1], in_function=in_function)
        else:
            result = method(node)
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
        if node.value == "inf":
            raise NoValue("infinite")
        return {"pi": +self.mp.pi, "e": +self.mp.e, "i": self.mp.mpc(0, 1)}[node.value]

    def _add(self, a: Any, b: Any) -> Any:
        self.note(a)
        self.note(b)
        return a + b

    def _sub(self, a: Any, b: Any) -> Any:
        return self._add(a, -b)

    def _neg(self, a: Any) -> Any:
        return -a

    def _mul(self, a: Any, b: Any) -> Any:
        return a * b

    def _div(self, a: Any, b: Any) -> Any:
        raise AssertionError("read with its surroundings")

    def not_zero(self, node: Node, *, in_function: bool = False, may_be_zero: bool = False) -> Any:
        """A value that a function singular at 0 will take.

        Raises:
            NoValue: It is 0.
            _Noise: It may be 0: its own terms have cancelled to nothing but rounding.
        """
        outer, self.scale = self.scale, None
        value = self.value(node, in_function=in_function)
        if value == 0:
            if not may_be_zero:
                raise NoValue("division by 0")
        elif self.scale is not None:
            if abs(value) < self.scale * self.mp.mpf(10) ** (_GUARD - self.digits):
                raise _Noise
        self.scale = max((each for each in (outer, self.scale) if each is not None), default=None)
        return value

    def _pow(self, node: Node) -> Any:
        base, exponent = node.items
        return self.power(self.value(base), exponent)

    def power(self, base: Any, exponent: Node) -> Any:
        """Real for a negative base under a root of odd degree."""
        power = exact(exponent)
        value = self.value(exponent) if power is None else self.mp.mpf(power.numerator) / power.denominator
        if base == 0:
            if power is None or power <= 0:
                raise NoValue("a power of 0")
            return self.mp.mpf(0)
        if value != 0 and self.log10(value) > 20:
            raise NoValue("too large")
        size = abs(float(self.mp.re(value)) * self.log10(base)) if value != 0 else 0.0
        if size > _MAX_LOG10:
            raise NoValue("too large")
        if power is not None and power.denominator % 2 and power.denominator > 1:
            if self.mp.im(base) == 0 and base < 0:
                root = -((-base) ** (self.mp.mpf(1) / power.denominator))
                return root**power.numerator
        if power is not None and power.denominator == 1 and abs(power) < 10**9:
            return base ** int(power)
        return self.mp.power(base, value)

    def _root(self, node: Node) -> Any:
        radicand, degree = node.items
        number = exact(degree)
        if number is None or number.denominator != 1 or not 1 < number <= 1000:
            raise NoValue("a root of no whole degree")
        value = self.not_zero(radicand, may_be_zero=True)
        return self.power(value, num(1 / number)) if value != 0 else self.mp.mpf(0)

    def _log(self, node: Node) -> Any:
        value, base = (self.not_zero(item, in_function=True) for item in node.items)
        if base == 1:
            raise NoValue("no logarithm")
        return self.mp.log(value) / self.mp.log(base)

    def _fn(self, node: Node) -> Any:
        name = node.value
        value = self.not_zero(node.items[0], in_function=True, may_be_zero=name != "ln")
        if value != 0 and self.log10(value) > (15 if name.endswith("h") else 400):
            raise NoValue("too large")
        if name == "ln":
            return self.mp.log(value)
        names = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arccot": "acot"}
        result = getattr(self.mp, names.get(name, name))(value)
        if name in ("tan", "cot", "sec", "csc") and result != 0 and self.log10(result) > self.digits / 2:
            raise NoValue("a pole")
        return result

    def _fact(self, node: Node) -> Any:
        return self._gamma(self.value(node.items[0]) + 1)

    def _gamma(self, value: Any) -> Any:
        if value != 0 and self.log10(value) > 5:
            raise NoValue("too large")
        if self.mp.im(value) == 0 and value <= 0 and value == self.mp.floor(value):
            raise NoValue("a pole")
        return self.mp.gamma(value)

    def _binom(self, node: Node) -> Any:
        n, k = (self.value(item) for item in node.items)
        return self._gamma(n + 1) / (self._gamma(k + 1) * self._gamma(n - k + 1))

    def _abs(self, node: Node) -> Any:
        return abs(self.value(node.items[0]))

    def _floor(self, node: Node) -> Any:
        return self._step(node, self.mp.floor)

    def _ceil(self, node: Node) -> Any:
        return self._step(node, self.mp.ceil)

    def _step(self, node: Node, step: Any) -> Any:
        rational = exact(node.items[0])
        if rational is not None:
            return self.mp.mpf(int(_EXACT[node.kind](rational)))
        value = self.value(node.items[0])
        if self.mp.im(value) != 0:
            raise NoValue("a step of no real number")
        if value != 0 and self.log10(value) > self.digits - _GUARD:
            raise NoValue("too large")
        nearest = self.mp.nint(value)
        if abs(value - nearest) < self.mp.mpf(10) ** (_GUARD - self.digits) * max(1, abs(value)):
            return nearest  # a whole number, but for rounding
        return step(value)

    def _degree(self, node: Node) -> Any:
        raise AssertionError("read with its surroundings")

    def _det(self, node: Node) -> Any:
        rows = [row.items for row in node.items]
        if len(rows) != len(rows[0]) or len(rows) > 4:
            raise NoValue("no determinant")
        return self._determinant([[self.value(cell) for cell in row] for row in rows])

    def _determinant(self, rows: list[list[Any]]) -> Any:
        if len(rows) == 1:
            return rows[0][0]
        total = self.mp.mpf(0)
        for column, cell in enumerate(rows[0]):
            minor = [row[:column] + row[column + 1 :] for row in rows[1:]]
            total = self._add(total, (-1) ** column * cell * self._determinant(minor))
        return total

    def _sum(self, node: Node) -> Any:
        total = self.mp.mpf(0)
        for term in self._terms(node):
            total = self._add(total, term)
        return total

    def _prod(self, node: Node) -> Any:
        total = self.mp.mpf(1)
        for term in self._terms(node):
            total *= term
        return total

    def _terms(self, node: Node) -> Iterator[Any]:
        name, low, high, body = node.items
        first, last = exact(low), exact(high)
        if first is None or last is None or first.denominator != 1 or last.denominator != 1:
            raise NoValue("limits that are no whole numbers")
        if last - first >= _MAX_TERMS or name.value in self.point:
            raise NoValue("too many terms")
        outer = self.point
        for number in range(int(first), int(last) + 1):
            self.point = {**outer, name.value: self.mp.mpf(number)}
            yield self.value(body)
        self.point = outer


def _evaluate(node: Node, digits: int, point: Mapping[str, Any]) -> tuple[Any, _Evaluation]:
    """Its value with ``digits`` digits.

    Raises:
        NoValue: There is none within the limits.
    """
    import mpmath

    with mpmath.workdps(digits):
        evaluation = _Evaluation(digits, point)
        try:
            value = evaluation.value(node)
        except NoValue:
            raise
        except (ZeroDivisionError, OverflowError, ValueError, TypeError, RecursionError) as problem:
            raise NoValue(str(problem)) from problem
        except mpmath.libmp.NoConvergence as problem:
            raise NoValue(str(problem)) from problem
        return value, evaluation


def _agree(gold: Node, other: Node, point: Mapping[str, Any]) -> bool:
    """Whether two trees have one value at a point, with more digits until that is certain.

    Raises:
        NoValue: One has no value there, or too many digits would be needed.
    """
    import mpmath

    digits = _BASE_DIGITS
    for _ in range(6):
        try:
            (a, left), (b, right) = _evaluate(gold, digits, point), _evaluate(other, digits, point)
        except _Noise:
            digits *= 4
            if digits > _MAX_DIGITS:
                raise
            continue
        with mpmath.workdps(digits + 10):
            scale = max([abs(a), abs(b), *(e.scale for e in (left, right) if e.scale is not None)])
            if scale == 0:
                return True
            if abs(a - b) > scale * mpmath.mpf(10) ** (_GUARD - digits):
                return False
            logs = [left.log10(value) for value in (a, b) if value != 0]
        logs += left.sizes + right.sizes
        needed = _BASE_DIGITS + 40 + 2 * int(max(logs) - min(logs))
        if digits >= needed:
            return True
        digits = max(needed, 2 * digits)
        if digits > _MAX_DIGITS:
            raise NoValue("too many digits")
    raise NoValue("too many digits")


def _certain(node: Node, point: Mapping[str, Any]) -> Any:
    """The value at a point, with as many digits as its differences need.

    Raises:
        NoValue: There is none.
    """
    for digits in (_BASE_DIGITS, 5 * _BASE_DIGITS, 25 * _BASE_DIGITS):
        try:
            return _evaluate(node, digits, point)[0]
        except _Noise:
            continue
    raise NoValue("division by 0")


def _is_real(value: Any) -> bool:
    return value.imag == 0 or abs(value.imag) < abs(value.real) * 1e-30


def same_value(gold: Node, other: Node) -> bool:
    """Whether two formulas are equal, as constants or as functions.

    Raises:
        NoValue: That cannot be told.
    """
    if gold == other:
        return True
    values = exact(gold), exact(other)
    if None not in values:
        return values[0] == values[1]
    if not names_in(gold, other):
        return _agree(gold, other, {})
    return _same_function(gold, other)


def approximate(node: Node, digits: int) -> Fraction:
    """A real constant to ``digits`` significant digits.

    Raises:
        NoValue: It has none.
    """
    import mpmath

    value, _ = _evaluate(node, digits + 40, {})
    if value != 0 and abs(mpmath.mp.mag(value)) > 40_000:
        raise NoValue("too large")
    with mpmath.workdps(digits + 40):
        if abs(mpmath.im(value)) > abs(value) * mpmath.mpf(10) ** (-digits):
            raise NoValue("no real number")
        sign, mantissa, exponent, _ = mpmath.mpf(mpmath.re(value))._mpf_
    size = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -size if sign else size


# -- functions ----------------------------------------------------------------------------------


def _has(node: Node, kinds: frozenset[str]) -> bool:
    return node.kind in kinds or any(_has(item, kinds) for item in node.items)


def _kinds_with_names(node: Node, kinds: frozenset[str]) -> bool:
    """Whether one of ``kinds`` is there with a variable inside."""
    if node.kind in kinds and names_in(node):
        return True
    return any(_kinds_with_names(item, kinds) for item in node.items)


def _has_signed_power(node: Node) -> bool:
    """``(-1)^n``: a function of whole numbers."""
    if node.kind == "pow" and names_in(node.items[1]):
        base = exact(node.items[0])
        if base is not None and base < 0:
            return True
    return any(_has_signed_power(item) for item in node.items)


def _same_function(gold: Node, other: Node) -> bool:
    names = sorted(names_in(gold, other))
    for new, known in ((_STEPS, _STEPS), (frozenset({"abs"}), frozenset({"abs", "root"}))):
        if _kinds_with_names(other, new) and not _kinds_with_names(gold, known):
            return False  # what differs far away or between two points
    if names_in(gold) != names_in(other) and len(names) > 12:
        raise NoValue("too many variables")
    is_signed = _has_signed_power(gold)
    steps = _STEPS | {"fact", "binom"}
    is_discrete = is_signed or _kinds_with_names(gold, steps)
    verdict = None if is_signed else _agrees_at(gold, other, _points(gold, other, names))
    if verdict or not is_discrete:
        if verdict is None:
            raise NoValue("too few points")
        return verdict
    waves = frozenset({"fn"})
    if not is_signed and _kinds_with_names(other, waves) and not _kinds_with_names(gold, waves):
        return False  # sin(pi n) is 0 at whole numbers only
    verdict = _agrees_at(gold, other, _whole_points(gold, other, names))
    if verdict is None:
        raise NoValue("too few points")
    return verdict


def _agrees_at(gold: Node, other: Node, points: Iterator[Mapping[str, Any]]) -> bool | None:
    """``False`` at the first point where they differ; ``None`` when too few have values."""
    compared = 0
    is_complex = _has_imaginary(gold)
    for point in points:
        try:
            value = _certain(gold, point)
        except NoValue:
            continue
        if not is_complex and not _is_real(value):
            continue  # the gold answer is not defined there
        try:
            if not _agree(gold, other, point):
                return False
        except NoValue as problem:
            if str(problem) in ("too large", "too many digits"):
                continue
            return False  # the gold answer is defined there
        compared += 1
    return True if compared >= _MIN_POINTS else None


def _has_imaginary(node: Node) -> bool:
    if node.kind == "const" and node.value == "i":
        return True
    return any(_has_imaginary(item) for item in node.items)


def _random(*parts: object) -> random.Random:
    """Points follow from both texts, so that nobody can know them before he has written his."""
    digest = hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).digest()
    return random.Random(digest)


def _points(gold: Node, other: Node, names: list[str]) -> Iterator[Mapping[str, Any]]:
    rng = _random("points", gold, other)
    scales = [*_SCALES, *_own_scales(gold, other)]
    for number, scale in enumerate(scales):
        signs = [1 if number % 3 == 0 else rng.choice((1, -1)) for _ in names]
        if number == 1:
            signs = [-1] * len(names)
        spread = rng.random() < 0.3
        yield {
            name: _irrational(rng, sign, 0 if spread and rng.random() < 0.5 else scale)
            for name, sign in zip(names, signs, strict=True)
        }


def _irrational(rng: random.Random, sign: int, scale: int) -> Any:
    """A square root times a power of ten, to the digits of whoever asks."""
    import mpmath

    radicand = rng.getrandbits(160) | 1
    shift = 2**159

    def value() -> Any:
        return sign * mpmath.sqrt(mpmath.mpf(radicand) / shift) * mpmath.mpf(10) ** scale * 3

    return value


def _whole_points(gold: Node, other: Node, names: list[str]) -> Iterator[Mapping[str, Any]]:
    import mpmath

    rng = _random("whole", gold, other)
    tops = [12, 12, 12, 40, 40, 40, 90, 90, 300, 300, 2000, 50_000]
    tops += [10**6, 10**9, 10**15, *(10**scale for scale in _own_scales(gold, other) if scale > 0)]
    for top in tops:
        yield {name: mpmath.mpf(rng.randrange(1, top)) for name in names}
    for start in range(1, 7):
        yield {name: mpmath.mpf(start + place) for place, name in enumerate(names)}


def _own_scales(*nodes: Node) -> list[int]:
    """Powers of ten of the constants in the formulas, at most eight of them."""
    found: set[int] = set()
    for node in nodes:
        for constant in _constants(node):
            value = exact(constant)
            if value is not None and value != 0:
                digits = _digits(value)
                if 3 < abs(digits) < 2000:
                    found |= {digits + 1, -digits}
    return sorted(found, key=abs, reverse=True)[:8]


def _digits(value: Fraction) -> int:
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    return int(bits * 0.30103)


def _constants(node: Node) -> Iterator[Node]:
    if not names_in(node):
        yield node
        return
    for item in node.items:
        yield from _constants(item)


def same_relation(gold: tuple[Node, Node], other: tuple[Node, Node], *, may_flip: bool) -> bool:
    """Whether two differences agree up to a factor, which is positive unless ``may_flip``.

    Args:
        gold: The two sides.
        other: Those of the answer.
        may_flip: The relation is symmetric.

    Raises:
        NoValue: That cannot be told.
    """
    left, right = Node("sub", gold), Node("sub", other)
    names = sorted(names_in(left, right))
    if names_in(left) != names_in(right):
        return False
    if _kinds_with_names(right, _PIECEWISE) and not _kinds_with_names(left, _PIECEWISE):
        return False
    reference: Mapping[str, Any] | None = None
    compared = 0
    for point in _points(left, right, names):
        try:
            a, b = (_certain(each, point) for each in (left, right))
        except NoValue:
            continue
        if not _is_real(a) or not _is_real(b):
            continue
        a, b = a.real, b.real
        if (abs(a) == 0) != (abs(b) == 0):
            return False
        if a == 0 or b == 0:
            continue
        if not may_flip and (a > 0) != (b > 0):
            return False
        if reference is None:
            reference = point
            continue
        if not _proportional(left, right, reference, point):
            return False
        compared += 1
    if compared < _MIN_POINTS:
        raise NoValue("too few points")
    return True


def _proportional(
    left: Node, right: Node, one: Mapping[str, Any], two: Mapping[str, Any]
) -> bool:
    """``left(one) right(two) = left(two) right(one)``, as values of one tree at one point."""
    both = {f"1{name}": value for name, value in one.items()}
    both |= {f"2{name}": value for name, value in two.items()}
    return _agree(
        Node("mul", (_renamed(left, "1"), _renamed(right, "2"))),
        Node("mul", (_renamed(left, "2"), _renamed(right, "1"))),
        both,
    )


def _renamed(node: Node, prefix: str) -> Node:
    if node.kind == "sym":
        return Node("sym", value=prefix + node.value)
    return Node(node.kind, tuple(_renamed(item, prefix) for item in node.items), node.value)

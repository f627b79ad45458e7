"""The value of one tree at one point, by mpmath, with the sizes of what it adds up."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from recipe.verify.maths.tree import EXACT, Node, NoValue, exact

_MAX_LOG10 = 10**15  # of an exponent's result: 10^{10^{15}} still has a place on the scale
GUARD = 25
_MAX_DIGITS = 6000
BASE_DIGITS = 60
_PLAIN = {kind: EXACT[kind] for kind in ("neg", "mul", "div", "abs")}


class Evaluation:
    """One tree at one point to a number of digits; notes the sizes of all terms of sums."""

    def __init__(self, digits: int, point: Mapping[str, Any]) -> None:
        import mpmath

        self.mp = mpmath.mp
        self.digits = digits
        self.point = point
        self.sizes: list[float] = []  # log10 of the sizes of all terms
        self.scale: Any = 0  # the largest term

    def log10(self, value: Any) -> float:
        """Return the logarithm of the size of a value that is not 0."""
        size = self.mp.mag(value)
        return float(size) * 0.30103

    def note(self, value: Any) -> None:
        """Remember the size of a term."""
        self.note_size(value)
        self.scale = max(self.scale, abs(value))

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
        if node.value not in self.point:
            raise NoValue("a variable")
        return self.point[node.value](self.mp)

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
        result = getattr(self.mp, "log" if name == "ln" else name.replace("arc", "a"))(value)
        is_pole = name in ("tan", "cot", "sec", "csc") and result != 0
        if is_pole and self.log10(result) > self.digits / 2:
            raise NoValue("a pole")
        return result


def evaluate(
    node: Node, point: Mapping[str, Any], digits: int = BASE_DIGITS
) -> tuple[Any, Evaluation]:
    """Return a tree's value with ``digits`` digits, and the evaluation that found it.

    ``point`` has a function of mpmath's context for each name, since its values take the digits.

    Raises:
        NoValue: There is none within the limits.
    """
    evaluation = Evaluation(digits, point)
    with evaluation.mp.workdps(digits):
        try:
            value = evaluation.value(node)
        except (ArithmeticError, ValueError, TypeError, RecursionError) as problem:
            raise NoValue(str(problem)) from problem
        return value, evaluation


def agree(gold: Node, other: Node, point: Mapping[str, Any]) -> bool:
    """Return whether two trees have one value at a point, with more digits until that is certain.

    Raises:
        NoValue: One has no value there, or too many digits would be needed.
    """
    digits = BASE_DIGITS
    while digits <= _MAX_DIGITS:
        (a, left), (b, right) = evaluate(gold, point, digits), evaluate(other, point, digits)
        with left.mp.workdps(digits + 10):
            scale = max(abs(a), abs(b), left.scale, right.scale)
            if abs(a - b) > scale * left.mp.mpf(10) ** (GUARD - digits):
                return False
            logs = [left.log10(value) for value in (a, b) if value != 0]
        logs += left.sizes + right.sizes
        needed = BASE_DIGITS + 40 + 2 * int(max(logs, default=0) - min(logs, default=0))
        if digits >= needed:
            return True
        digits = max(needed, 2 * digits)
    raise NoValue("too many digits")


def is_real(value: Any) -> bool:
    """Return whether a value has no imaginary part, but for rounding."""
    return value.imag == 0 or abs(value.imag) < abs(value.real) * 1e-30


def approximate(node: Node, digits: int) -> Fraction:
    """Return a real constant to ``digits`` significant digits.

    Raises:
        NoValue: It has none.
    """
    value, evaluation = evaluate(node, {}, digits + 40)
    mp = evaluation.mp
    if value != 0 and abs(mp.mag(value)) > 40_000:
        raise NoValue("too large")
    with mp.workdps(digits + 40):
        if abs(mp.im(value)) > abs(value) * mp.mpf(10) ** (-digits):
            raise NoValue("no real number")
        sign, mantissa, exponent, _ = mp.mpf(mp.re(value))._mpf_
    size = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -size if sign else size

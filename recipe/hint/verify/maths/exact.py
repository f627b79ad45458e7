"""Exact values of rational constants, bounded in size."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

from recipe.hint.verify.maths.tree import Node

_MAX_BITS = 40_000  # of an exact numerator or denominator
_MAX_FACTORIAL = 3000


class NoValue(Exception):
    """It has no value here: undefined, too large, or too many digits would be needed."""


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
    value = EXACT[kind](*values)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise NoValue
    return value


@functools.lru_cache(maxsize=64)
def _factorial(value: int) -> int:
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
    if n.denominator != 1 or k.denominator != 1 or not 0 <= k <= n <= _MAX_FACTORIAL:
        raise NoValue
    return Fraction(math.comb(int(n), int(k)))


EXACT: dict[str, Any] = {
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

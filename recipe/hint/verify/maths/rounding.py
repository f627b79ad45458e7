"""Decimals that round a number."""

from __future__ import annotations

from fractions import Fraction

from recipe.hint.verify.maths.tree import Node

# A decimal with fewer digits is no rounding of anything; and none may differ by more than this
# times min(1, |gold|).
ROUNDED_DIGITS = 6
_TOLERANCE = Fraction(2, 1_000_000)
_EXACT = Fraction(1, 10**20)  # sqrt(4), computed to 30 digits more, is 2


def decimals(node: Node) -> int:
    """How many decimals a numeral is written with, a sign before it or not; 0 for others."""
    if node.kind == "neg":
        return decimals(node.items[0])
    return node.value.decimals if node.kind == "num" else 0


def is_rounded(gold: Node, other: Node, left: Fraction, right: Fraction) -> bool:
    """Whether one of two numbers is written as a decimal that rounds the other."""
    if decimals(other) and rounds_to(left, other, right):
        return True
    return bool(decimals(gold)) and rounds_to(right, gold, left)


def rounds_to(value: Fraction, node: Node, decimal: Fraction) -> bool:
    """Whether ``node``, a decimal of at least six digits, is ``value`` rounded or cut."""
    places = decimals(node)
    unit = Fraction(1, 10**places)
    digits = len(str(abs(decimal.numerator * 10**places // decimal.denominator)).lstrip("0"))
    if places < ROUNDED_DIGITS - 1 or digits < ROUNDED_DIGITS or places > 400:
        return False
    nearest = round(value / unit)
    if abs(value / unit - nearest) < _EXACT:
        return nearest * unit == decimal  # it can be written exactly
    gap = abs(value - decimal)
    is_cut = gap < unit and abs(decimal) < abs(value)
    return (2 * gap <= unit or is_cut) and gap <= _TOLERANCE * min(1, abs(value))

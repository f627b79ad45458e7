r"""Decide whether two values are equal: exactly, by algebra, within a tolerance, or by rounding."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from recipe.verify.maths.numeric import approximate
from recipe.verify.maths.tree import (
    STRUCTURES,
    Node,
    NoValue,
    decimals,
    exact,
    infinity_sign,
    is_infinite,
    names_in,
)
from recipe.verify.maths.values import same_value

_ROUNDED_DIGITS = 6  # a decimal with fewer is not a rounding of anything
# A rounding of a decimal that ends, 12345.67, may be off by this times min(1, |gold|).
_TOLERANCE = Fraction(2, 1_000_000)
_EXACT = Fraction(1, 10**20)  # sqrt(4), computed to 30 digits more, is 2


class NeedsAlgebra(Exception):
    """Exact arithmetic does not decide, and algebra belongs in a worker."""


@dataclass(kw_only=True)
class Closeness:
    """Compares values.

    Attributes:
        tolerance: Largest allowed difference of two numbers, instead of the usual one.
        is_quick: Raise ``NeedsAlgebra`` where exact arithmetic does not decide.
        used_algebra: Whether values were computed numerically.
    """

    tolerance: Fraction | None = None
    is_quick: bool = False
    used_algebra: bool = False

    def _is_rounding(self, value: Node, rounded: Node, *, may_cut: bool = True) -> bool:
        number = exact(rounded)
        if number is None:
            return False
        self._go_on()
        rest, unit = approximate(value, 40) - number, last_place(rounded)
        if rounded.kind not in ("num", "neg"):
            return abs(rest) < unit
        is_cut = may_cut and abs(rest) < unit and rest * number >= 0
        return is_cut or 2 * abs(rest) <= unit

    def _values(self, gold: Node, other: Node) -> bool:
        if {gold.kind, other.kind} & STRUCTURES:
            return False
        left, right = exact(gold), exact(other)
        if self.tolerance is not None:
            return self._within_tolerance(gold, other, self.tolerance)
        if left is not None and right is not None:
            if left == right:
                return True
            return is_rounded(gold, other, left, right)
        if {left, right} != {None} and not names_in(gold, other):
            rounded = self._rounded_constant(gold, other, left, right)
            if rounded is not None:
                return rounded
        if is_infinite(gold) or is_infinite(other):
            return infinity_sign(gold) == infinity_sign(other) != 0
        self._go_on()
        return same_value(gold, other)

    def _rounded_constant(
        self, gold: Node, other: Node, left: Fraction | None, right: Fraction | None
    ) -> bool | None:
        r"""Compare a constant such as ``\sqrt 2`` with a decimal; ``None`` without such a pair."""
        node, value = (gold, left) if left is not None else (other, right)
        constant = other if left is not None else gold
        if value is None or not may_round(node, value) or is_infinite(constant):
            return None
        self._go_on()
        try:
            size = approximate(constant, decimals(node) + 30)
        except NoValue:
            return False
        return rounds_to(size, node, value)

    def _within_tolerance(self, gold: Node, other: Node, tolerance: Fraction) -> bool:
        self._go_on()
        values = [
            value if (value := exact(node)) is not None else approximate(node, 40)
            for node in (gold, other)
        ]
        return abs(values[0] - values[1]) <= tolerance

    def _go_on(self) -> bool:
        """Note that what comes next may take long; true.

        Raises:
            NeedsAlgebra: In a quick comparison.
        """
        if self.is_quick:
            raise NeedsAlgebra
        self.used_algebra = True
        return True


def last_place(node: Node) -> Fraction:
    """Return a numeral's last place, zeros aside; a twentieth of a product, 0 of a quotient."""
    if node.kind == "neg":
        return last_place(node.items[0])
    if node.kind != "num":
        return Fraction(0) if node.kind == "div" else abs(exact(node) or Fraction(0)) / 20
    if decimals(node) or node.value.value.numerator.bit_length() > 4000:
        return Fraction(1, 10 ** decimals(node))
    digits = str(node.value.value)
    return Fraction(10 ** (len(digits) - len(digits.rstrip("0") or "0")))


def is_rounded(gold: Node, other: Node, left: Fraction, right: Fraction) -> bool:
    """Return whether one of two numbers is written as a decimal that rounds the other.

    An answer that ends, 12.345671, says more than a gold answer that is rounded.
    """
    is_near = decimals(other) >= _ROUNDED_DIGITS - 1
    is_near = is_near and abs(left - right) <= _TOLERANCE * min(1, abs(left))
    if rounds_to(left, other, right) and (is_near or _never_ends(left)):
        return True
    return _never_ends(right) and rounds_to(right, gold, left)


def _never_ends(value: Fraction) -> bool:
    rest = value.denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    return rest > 1


def may_round(node: Node, decimal: Fraction) -> bool:
    """Return whether ``node``, which is ``decimal``, has enough digits for a rounding."""
    places = decimals(node)
    return 0 < places <= 400 and abs(decimal) * 10**places >= 10 ** (_ROUNDED_DIGITS - 1)


def rounds_to(value: Fraction, node: Node, decimal: Fraction) -> bool:
    """Return whether ``node``, a decimal of six digits or more, is ``value`` rounded or cut."""
    if not may_round(node, decimal):
        return False
    unit = Fraction(1, 10 ** decimals(node))
    nearest = round(value / unit)
    if abs(value / unit - nearest) < _EXACT:
        return nearest * unit == decimal  # it can be written exactly
    gap = abs(value - decimal)
    is_cut = gap < unit and abs(decimal) < abs(value)
    return 2 * gap <= unit or is_cut

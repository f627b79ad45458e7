r"""Whether two values are one: exactly, by algebra, within a tolerance, or one a rounding."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from recipe.hint.verify.maths.numeric import approximate
from recipe.hint.verify.maths.tree import (
    STRUCTURES,
    Node,
    NoValue,
    decimals,
    exact,
    infinity_sign,
    is_infinite,
    is_rounded,
    last_place,
    may_round,
    names_in,
    rounds_to,
)
from recipe.hint.verify.maths.values import same_value


class NeedsAlgebra(Exception):
    """Exact arithmetic does not decide, and algebra is for a worker."""


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
        r"""A constant such as ``\sqrt 2`` against a decimal; ``None`` when none is there."""
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
        """What comes next may take long.

        Raises:
            NeedsAlgebra: In a quick comparison.
        """
        if self.is_quick:
            raise NeedsAlgebra
        self.used_algebra = True
        return True

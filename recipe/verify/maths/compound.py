"""Quantities in two units or more: ``2 hours 30 minutes`` is 2.5 hours and 150 minutes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from recipe.verify.maths.lexer import Token
from recipe.verify.maths.tree import Node, num, parted, whole
from recipe.verify.maths.units import name_of
from recipe.verify.maths.words import Suffix

_SIZES = (
    {"day": 86_400, "hour": 3600, "minute": 60, "second": 1},
    {"foot": 12, "inch": 1},
    {"pound": 16, "ounce": 1},
    {"dollar": 100, "cent": 1},
)
SMALLER = {  # words for units, and for those that may follow them
    "days?": "hours?",
    r"hours?|hrs?\.?|h": "minutes?|mins?",
    r"minutes?|mins?\.?": "seconds?|secs?|s",
    r"feet|foot|ft\.?": r"inch(?:es)?|in(?=[.$}]|\s*\Z)",
    r"pounds?|lbs?\.?": "ounces?|oz",
    "dollars?": "cents?",
}
_STATED = re.compile(
    "|".join(
        rf"\b(?:{unit})(?![A-Za-z])[\s,]{{0,3}}(?:and\s)?[0-9A-Za-z-]{{1,20}}[\s-](?:{smaller})\b"
        for unit, smaller in SMALLER.items()
    )
)
_NUMERAL = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?")
_MAX_DIGITS = 9


def compounds(tokens: Sequence[Token]) -> tuple[Node, ...]:
    """Return one quantity in each of its units, the largest first; nothing for other tokens.

    Each number but the first is less than one of the unit before it. Their units have no text:
    none is written after the whole.
    """
    parts = [token for token in tokens[:12] if token.text not in (",", "and")]
    numbers, names = parts[::2], [name_of(token.text) or "" for token in parts[1::2]]
    sizes = next((each for each in _SIZES if {*names} <= {*each}), None)
    if len(tokens) > 12 or sizes is None or not 1 < len(names) == len(numbers):
        return ()
    if not all(each.text.isdigit() and len(each.text) <= _MAX_DIGITS for each in numbers):
        return ()
    amounts = [whole(each.text) * sizes[name] for each, name in zip(numbers, names, strict=True)]
    is_in_order = all(
        amount < sizes[before] and sizes[name] < sizes[before]
        for (before, name), amount in zip(pairwise(names), amounts[1:], strict=True)
    )
    values = [Fraction(sum(amounts), sizes[name]) for name in names]
    return tuple(
        Node("quantity", (num(value),), Suffix(unit=((name, 1),)))
        for value, name in zip(values, names, strict=True)
        if is_in_order
    )


def without_compounds(
    trees: Sequence[Node], golds: Sequence[Node], problem: str
) -> tuple[Node, ...]:
    """Return the readings of an answer, except those that leave a conversion undone.

    A smaller unit than the first has to be the gold answer's, and no quantity in two units, nor
    one of the same value or numbers, may be the problem's: "How many minutes are 2 h 30 min?"
    """
    found = [tree for tree in trees if _is_compound(tree)]
    stated = {Fraction(each) for each in _NUMERAL.findall(problem)} if found else set()
    values = [tree.items[0].value.value for tree in found]
    is_stated = stated.intersection(values) or _numbers(values) <= stated or _STATED.search(problem)
    has_unit = any(parted(gold)[1].unit for gold in golds)
    kept = () if is_stated else found if has_unit else found[:1]
    return tuple(tree for tree in trees if tree in kept or not _is_compound(tree))


def compounds_of_gold(trees: Sequence[Node], problem: str) -> tuple[Node, ...]:
    """Return the readings of a gold answer, in one unit only where that is no list, nor stated."""
    kept = without_compounds(trees, trees, problem)
    if trees and _is_compound(trees[0]):
        return kept
    return tuple(tree for tree in kept if not _is_compound(tree))


def _numbers(values: Sequence[Fraction]) -> set[Fraction]:
    """Return the 2 and 30 of 2.5 hours and 150 minutes."""
    if not any(values):
        return set()
    rest = [value - before // 1 * (value / before) for before, value in pairwise(values)]
    return {Fraction(each // 1) for each in (*values[:1], *rest)}


def _is_compound(tree: Node) -> bool:
    return tree.kind == "quantity" and bool(tree.value.unit) and not tree.value.text

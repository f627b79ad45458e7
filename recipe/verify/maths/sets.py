"""Sets of real numbers: intervals, points, unions, differences, inequalities in one variable.

The ends of two sets and the gaps between them are all the places where they can differ: a set is
one truth value per place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from recipe.verify.maths.numeric import approximate
from recipe.verify.maths.tree import (
    REALS,
    STRUCTURES,
    Node,
    NoValue,
    exact,
    infinity_sign,
    names_in,
    turned,
)

_PLACES = 100  # decimals of an end that is no rational number
_INFINITY = Node("const", value="inf")
_MINUS_INFINITY = Node("neg", (_INFINITY,))
_GROUPS = ("union", "inter", "minus", "list")


def as_interval(node: Node) -> tuple[Node, str] | None:
    """Return an inequality as an interval and the name of its variable; an interval as it is."""
    if node.kind == "tuple" and len(node.items) == 2:
        return node, ""
    node = turned(node) if node.kind == "relation" else node
    items, kinds = node.items, node.value
    if node.kind != "relation" or not set(kinds) <= {"<", r"\le"}:
        return None
    if len(items) == 2:  # x < 5 and 5 < x
        is_below = items[0].kind == "sym"
        items = (_MINUS_INFINITY, *items) if is_below else (*items, _INFINITY)
        kinds = ("<", *kinds) if is_below else (*kinds, "<")
    low, name, high = items
    if name.kind != "sym" or names_in(low, high):
        return None
    brackets = ("(" if kinds[0] == "<" else "[") + (")" if kinds[1] == "<" else "]")
    return Node("tuple", (low, high), brackets), name.value


def variables_of(node: Node) -> set[str]:
    r"""Return the names that inequalities bound, and ``x`` of ``x \in``."""
    if node.kind in ("label", "relation"):
        return names_in(*node.items[:1]) if node.kind == "label" else names_in(node)
    return {name for item in node.items for name in variables_of(item)}


def same_set(one: Node, other: Node) -> bool:
    """Return whether two sets of real numbers are the same.

    Raises:
        NoValue: One is not a set of real numbers, or its ends cannot be compared.
    """
    if any(len(variables_of(node)) > 1 for node in (one, other)):
        raise NoValue("two variables")
    ends = sorted({_number(end) for node in (one, other) for end in _ends(node)})
    ends = [end for end in ends if isinstance(end, Fraction)] or [Fraction(0)]
    gaps = [(a + b) / 2 for a, b in pairwise(ends)]
    places = [*ends, *gaps, ends[0] - 1, ends[-1] + 1]
    return _holds(one, places) == _holds(other, places)


def _number(end: Node) -> Fraction | float:
    if sign := infinity_sign(end):
        return sign * math.inf
    value = exact(end)
    return round(approximate(end, 2 * _PLACES), _PLACES) if value is None else value


def _ends(node: Node) -> Iterator[Node]:
    node = _without_variable(node)
    if node.kind in _GROUPS:
        for item in node.items:
            yield from _ends(item)
    elif node != REALS:
        interval = as_interval(node)
        yield from _points(node) if interval is None else interval[0].items


def _points(node: Node) -> Sequence[Node]:
    r"""Return the members of ``\{1, 2\}``, ``x = 1`` and ``x \ne 1``."""
    is_value = node.kind == "label" or (node.kind == "relation" and node.value == (r"\ne",))
    if (
        is_value
        and node.items[0].kind == "sym"
        and node.items[1].kind not in (*STRUCTURES, "chain")
    ):
        return node.items[1:]
    if node.kind != "set":
        raise NoValue("no set of real numbers")
    return node.items


def _without_variable(node: Node) -> Node:
    return node.items[1] if (node.kind, node.value) == ("label", r"\in") else node


def _holds(node: Node, places: Sequence[Fraction]) -> list[bool]:
    node = _without_variable(node)
    if node.kind in _GROUPS:
        return _merged(node, [_holds(item, places) for item in node.items])
    if node == REALS:
        return [True] * len(places)
    interval = as_interval(node)
    if interval is None:
        points = {*map(_number, _points(node))}
        return [(place in points) == (node.kind != "relation") for place in places]
    (low, high), brackets = map(_number, interval[0].items), interval[0].value
    if low > high:
        raise NoValue("an interval that runs backwards")
    has_low, has_high = brackets[0] == "[", brackets[1] == "]"
    return [low < x < high or (x == low and has_low) or (x == high and has_high) for x in places]


def _merged(node: Node, parts: list[list[bool]]) -> list[bool]:
    r"""Read members side by side: ``x > 2, x \ne 5`` is "and", intervals and ``or`` are unions.

    Two inequalities with a comma are what leaves some numbers but not all.
    """
    either, both = ([merge(each) for each in zip(*parts, strict=True)] for merge in (any, all))
    if node.kind == "minus":
        return [first and not any(rest) for first, *rest in zip(*parts, strict=True)]
    if node.kind in ("union", "inter"):
        return either if node.kind == "union" else both
    if node.value == "or" or all(item.kind in ("tuple", "union") for item in node.items):
        return either
    if node.value == "and" or all(item.value == (r"\ne",) for item in node.items[1:]):
        return both
    if any(both) == (not all(either)):
        raise NoValue("inequalities side by side")
    return both if any(both) else either

"""Sets of real numbers: intervals, points, unions, differences, inequalities in one variable.

The ends of two sets, in order, and the gaps between them are all the places where they can differ:
a set is one truth value per place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from recipe.verify.maths.numeric import approximate
from recipe.verify.maths.tree import STRUCTURES, Node, NoValue, exact, infinity_sign, names_in
from recipe.verify.maths.values import same_value

_MAX_ENDS = 60
_INFINITY = Node("const", value="inf")
_MINUS_INFINITY = Node("neg", (_INFINITY,))
_REALS = Node("sym", value=r"\mathbb{R}")
_FLIPPED = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}


def as_interval(node: Node) -> tuple[Node, str] | None:
    """Return an inequality as an interval and the name of its variable; an interval as it is."""
    if node.kind == "tuple" and len(node.items) == 2:
        return node, ""
    kinds = node.value if node.kind == "relation" else ()
    if not kinds or not set(kinds) <= {*_FLIPPED}:
        return None
    items = node.items
    if all(kind in (">", r"\ge") for kind in kinds):
        items, kinds = items[::-1], tuple(_FLIPPED[kind] for kind in reversed(kinds))
    if not set(kinds) <= {"<", r"\le"}:
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


def is_all_reals(node: Node) -> bool:
    """Return whether it is the interval from minus to plus infinity."""
    try:
        return same_set(node, _REALS)
    except NoValue:
        return False


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
    ends = {end for node in (one, other) for end in _ends(node) if not infinity_sign(end)}
    if len(ends) > _MAX_ENDS:
        raise NoValue("too many ends")
    places: dict[Node, int] = {_MINUS_INFINITY: 0}  # odd: an end, even: the gap before or after it
    last = 0
    before: Node | None = None
    for end in sorted(ends, key=functools.cmp_to_key(_compare)):
        last += 2 if before is None or _compare(before, end) else 0
        places[end], before = last - 1, end
    return _holds(one, places, last + 1) == _holds(other, places, last + 1)


def _ends(node: Node) -> Iterator[Node]:
    if node.kind in ("union", "inter", "minus", "list"):
        for item in node.items:
            yield from _ends(item)
    elif node.kind == "label" and node.value == r"\in":
        yield from _ends(node.items[1])
    elif node.kind == "label" and node.items[1].kind in STRUCTURES | {"chain"}:
        raise NoValue("no set of numbers")
    elif node.kind == "label" or (node.kind == "relation" and node.value == (r"\ne",)):
        if node.items[0].kind != "sym":
            raise NoValue("no set of numbers")
        yield node.items[1]
    elif (interval := as_interval(node)) is not None:
        yield from interval[0].items
    elif node.kind == "set":
        yield from node.items
    elif node != _REALS:
        raise NoValue("no set of real numbers")


def _holds(node: Node, places: dict[Node, int], size: int) -> list[bool]:
    if node.kind == "label" and node.value == r"\in":
        return _holds(node.items[1], places, size)
    if node.kind in ("union", "inter", "minus", "list"):
        parts = [_holds(item, places, size) for item in node.items]
        return _listed(node, parts) if node.kind == "list" else _merged(_MERGES[node.kind], parts)
    if node == _REALS:
        return [True] * size
    if node.kind in ("label", "relation", "set") and (interval := as_interval(node)) is None:
        points = {places[item] for item in node.items[node.kind != "set" :]}
        return [(place in points) == (node.kind != "relation") for place in range(size)]
    interval = as_interval(node)
    assert interval is not None  # _ends knows no other sets
    (low, high), (opener, closer) = interval[0].items, interval[0].value
    start, end = (
        {-1: -1, 1: size}.get(infinity_sign(item)) or places.get(item, 0) for item in (low, high)
    )
    if start > end:
        raise NoValue("an interval that runs backwards")
    return [
        start < place < end
        or (place == start and opener == "[")
        or (place == end and closer == "]")
        for place in range(size)
    ]


_MERGES: dict[str, Callable[[tuple[bool, ...]], bool]] = {
    "union": any,
    "inter": all,
    "minus": lambda holds: holds[0] and not any(holds[1:]),
}


def _merged(merge: Callable[[tuple[bool, ...]], bool], parts: list[list[bool]]) -> list[bool]:
    return [merge(holds) for holds in zip(*parts, strict=True)]


def _listed(node: Node, parts: list[list[bool]]) -> list[bool]:
    r"""Read members side by side: ``x > 2, x \ne 5`` is "and", intervals and ``or`` are unions.

    Two inequalities with a comma are what leaves some numbers but not all.
    """
    either, both = _merged(any, parts), _merged(all, parts)
    if node.value == "or" or all(item.kind in ("tuple", "union") for item in node.items):
        return either
    if node.value == "and" or all(item.value == (r"\ne",) for item in node.items[1:]):
        return both
    if any(both) == (not all(either)):
        raise NoValue("inequalities side by side")
    return both if any(both) else either


def _compare(a: Node, b: Node) -> int:
    left, right = exact(a), exact(b)
    if left is None or right is None:
        if names_in(a, b):
            raise NoValue("an end with a variable")
        if same_value(a, b):
            return 0
        left, right = approximate(a, 60), approximate(b, 60)
    return (left > right) - (left < right)

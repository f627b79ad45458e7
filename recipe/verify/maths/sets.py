"""Sets of real numbers: intervals, points, unions, differences, inequalities in one variable."""

from __future__ import annotations

import functools

from recipe.verify.maths.numeric import approximate
from recipe.verify.maths.tree import STRUCTURES, Node, NoValue, exact, infinity_sign, names_in
from recipe.verify.maths.values import same_value

_MAX_PARTS = 60
Cut = tuple[Node, int]  # a place on the real line: just before (-1) or just after (1) a number
Part = tuple[Cut, Cut]  # from, to
_INFINITY = Node("const", value="inf")
_MINUS_INFINITY = Node("neg", (_INFINITY,))
_LOW, _HIGH = (_MINUS_INFINITY, 1), (_INFINITY, -1)
_ALL: tuple[Part, ...] = ((_LOW, _HIGH),)
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
        return _same(real_set(node), _ALL)
    except NoValue:
        return False


def same_set(one: Node, other: Node) -> bool:
    """Return whether two sets of real numbers are the same.

    Raises:
        NoValue: One is not a set of real numbers, or its ends cannot be compared.
    """
    return _same(real_set(one), real_set(other))


def _same(one: tuple[Part, ...], other: tuple[Part, ...]) -> bool:
    return len(one) == len(other) and all(
        _order(a, b) == 0
        for left, right in zip(one, other, strict=True)
        for a, b in zip(left, right, strict=True)
    )


def variables_of(node: Node) -> set[str]:
    r"""Return the names that inequalities bound, and ``x`` of ``x \in``."""
    if node.kind in ("label", "relation"):
        return names_in(*node.items[:1]) if node.kind == "label" else names_in(node)
    return {name for item in node.items for name in variables_of(item)}


def real_set(node: Node) -> tuple[Part, ...]:
    """Return the disjoint parts of a set in ascending order.

    Raises:
        NoValue: It is not a set of real numbers, or its ends cannot be compared.
    """
    if len(variables_of(node)) > 1:
        raise NoValue("two variables")
    return _merged(_parts(node))


def _parts(node: Node) -> list[Part]:
    if node.kind == "sym" and node.value == r"\mathbb{R}":
        return [*_ALL]
    if node.kind == "label":
        if node.value != r"\in" and node.items[1].kind in STRUCTURES | {"chain"}:
            raise NoValue("no set of numbers")
        inner = node.items[1]
        return _parts(inner if node.value == r"\in" else Node("set", (inner,)))
    if node.kind == "set":
        return [((item, -1), (item, 1)) for item in node.items]
    if node.kind == "union":
        return [part for item in node.items for part in _parts(item)]
    if node.kind in ("inter", "minus"):
        left, right = map(real_set, node.items)
        return [*_intersection(left, _complement(right) if node.kind == "minus" else right)]
    if node.kind == "list":
        return _listed(node)
    return _interval(node)


def _interval(node: Node) -> list[Part]:
    if node.kind == "relation" and node.value == (r"\ne",) and node.items[0].kind == "sym":
        return [*_complement(real_set(Node("set", (node.items[1],))))]
    bounded = as_interval(node)
    if bounded is None:
        raise NoValue("no set of real numbers")
    (low, high), (opener, closer) = bounded[0].items, bounded[0].value
    if _compare(low, high) > 0:
        raise NoValue("an interval that runs backwards")
    return [((low, -1 if opener in "[" else 1), (high, 1 if closer == "]" else -1))]


def _listed(node: Node) -> list[Part]:
    r"""Read members side by side: ``x > 2, x \ne 5`` is "and", intervals and ``or`` are unions.

    Two inequalities with a comma are what leaves some numbers but not all.

    Raises:
        NoValue: Some of them are no sets, or both or neither of the two readings are possible.
    """
    either = [part for item in node.items for part in _parts(item)]
    if node.value == "or" or all(item.kind in ("tuple", "union") for item in node.items):
        return either
    both = functools.reduce(_intersection, map(real_set, node.items))
    is_exclusion = all(item.value == (r"\ne",) for item in node.items[1:])
    if is_exclusion or node.value == "and":
        return [*both]
    if bool(both) == (not _same(_merged(either), _ALL)):
        raise NoValue("inequalities side by side")
    return [*both] if both else either


def _merged(parts: list[Part]) -> tuple[Part, ...]:
    if len(parts) > _MAX_PARTS:
        raise NoValue("too many parts")
    parts = [part for part in parts if _order(*part) < 0]
    parts.sort(key=functools.cmp_to_key(lambda a, b: _order(a[0], b[0])))
    merged: list[Part] = []
    for low, high in parts:
        if merged and _order(low, merged[-1][1]) <= 0:
            last_low, last_high = merged[-1]
            merged[-1] = (last_low, high if _order(last_high, high) < 0 else last_high)
        else:
            merged.append((low, high))
    return tuple(merged)


def _complement(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    cuts = [_LOW, *(cut for part in parts for cut in part), _HIGH]
    pairs = [(cuts[i], cuts[i + 1]) for i in range(0, len(cuts), 2)]
    return tuple(part for part in pairs if _order(*part) < 0)


def _intersection(one: tuple[Part, ...], other: tuple[Part, ...]) -> tuple[Part, ...]:
    found = []
    for a_low, a_high in one:
        for b_low, b_high in other:
            low = b_low if _order(a_low, b_low) < 0 else a_low
            high = a_high if _order(a_high, b_high) < 0 else b_high
            if _order(low, high) < 0:
                found.append((low, high))
    return tuple(found)


def _order(a: Cut, b: Cut) -> int:
    """Return -1, 0 or 1."""
    by_value = _compare(a[0], b[0])
    return by_value if by_value else (a[1] > b[1]) - (a[1] < b[1])


def _compare(a: Node, b: Node) -> int:
    signs = [infinity_sign(node) for node in (a, b)]
    if any(signs):
        return (signs[0] > signs[1]) - (signs[0] < signs[1])
    left, right = exact(a), exact(b)
    if left is None or right is None:
        if names_in(a, b):
            raise NoValue("an end with a variable")
        if same_value(a, b):
            return 0
        left, right = approximate(a, 60), approximate(b, 60)
    return (left > right) - (left < right)

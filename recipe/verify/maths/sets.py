"""Sets of real numbers: intervals, points, unions, differences, inequalities in one variable."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

from recipe.verify.maths.numeric import approximate
from recipe.verify.maths.tree import STRUCTURES, Node, NoValue, exact, infinity_sign, names_in
from recipe.verify.maths.values import same_value

_MAX_PARTS = 60


@dataclass(frozen=True, slots=True)
class Cut:
    """A place on the real line: just before (``side`` -1) or just after (1) ``at``."""

    at: Node
    side: int


Part = tuple[Cut, Cut]  # from, to
_INFINITY = Node("const", value="inf")
_LOW, _HIGH = Cut(Node("neg", (_INFINITY,)), 1), Cut(_INFINITY, -1)
_ALL: tuple[Part, ...] = ((_LOW, _HIGH),)


def parts_of(node: Node) -> tuple[Node, ...]:
    """Return the members of nested unions."""
    if node.kind != "union":
        return (node,)
    return tuple(part for item in node.items for part in parts_of(item))


def as_interval(node: Node) -> tuple[Node, str] | None:
    """Return an inequality as an interval and the name of its variable; an interval as it is."""
    if node.kind == "tuple" and len(node.items) == 2:
        return node, ""
    if node.kind != "relation":
        return None
    return _bounded(node)


def _bounded(node: Node) -> tuple[Node, str] | None:
    relations = node.value
    if not set(relations) <= {"<", ">", r"\le", r"\ge"}:
        return None
    items = node.items
    if len(items) == 2:
        (left, right), [kind] = items, relations
        if left.kind != "sym":
            left, right, kind = right, left, _flipped(kind)
        if left.kind != "sym" or names_in(right):
            return None
        return _half_line(left.value, kind, right)
    low, name, high = items
    if {k[-1] for k in relations} & {">"} or r"\ge" in relations:
        low, high, relations = high, low, tuple(_flipped(kind) for kind in reversed(relations))
    if name.kind != "sym" or names_in(low, high) or not set(relations) <= {"<", r"\le"}:
        return None
    brackets = ("(" if relations[0] == "<" else "[") + (")" if relations[1] == "<" else "]")
    return Node("tuple", (low, high), brackets), name.value


def _flipped(kind: str) -> str:
    return {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}[kind]


def _half_line(name: str, kind: str, bound: Node) -> tuple[Node, str]:
    if kind in (">", r"\ge"):
        return Node("tuple", (bound, _INFINITY), "()" if kind == ">" else "[)"), name
    low = Node("neg", (_INFINITY,))
    return Node("tuple", (low, bound), "()" if kind == "<" else "(]"), name


def is_all_reals(node: Node) -> bool:
    """Return whether it is the interval from minus to plus infinity."""
    try:
        return same(real_set(node), _ALL)
    except NoValue:
        return False


def real_set(node: Node) -> tuple[Part, ...]:
    """Return the disjoint parts of a set in ascending order.

    Raises:
        NoValue: It is not a set of real numbers, or its ends cannot be compared.
    """
    if len(variables_of(node)) > 1:
        raise NoValue("two variables")
    return _merged(_parts(node))


def same(one: tuple[Part, ...], other: tuple[Part, ...]) -> bool:
    """Return whether two sets have the same parts."""
    return len(one) == len(other) and all(
        _order(a, b) == 0 for left, right in zip(one, other, strict=True)
        for a, b in zip(left, right, strict=True)
    )  # fmt: skip


def variables_of(node: Node) -> set[str]:
    r"""Return the names that inequalities bound, and ``x`` of ``x \in``."""
    if node.kind in ("label", "relation"):
        return names_in(*node.items[:1]) if node.kind == "label" else names_in(node)
    return {name for item in node.items for name in variables_of(item)}


def _parts(node: Node) -> list[Part]:
    rule = _RULES.get(node.kind)
    if node.kind == "sym" and node.value == r"\mathbb{R}":
        return list(_ALL)
    if rule is not None:
        return rule(node)
    if node.kind == "relation" and node.value == (r"\ne",) and node.items[0].kind == "sym":
        return list(_complement(real_set(Node("set", (node.items[1],)))))
    bounded = as_interval(node)
    if bounded is None:
        raise NoValue("no set of real numbers")
    low, high = bounded[0].items
    opener, closer = bounded[0].value
    if _compare(low, high) > 0:
        raise NoValue("an interval that runs backwards")
    return [(Cut(low, -1 if opener == "[" else 1), Cut(high, 1 if closer == "]" else -1))]


def _union(node: Node) -> list[Part]:
    if node.kind == "list" and {item.kind for item in node.items} <= {"tuple", "union"}:
        node = replace(node, kind="union")  # intervals side by side
    if node.kind == "list":
        others = (item.kind == "relation" and item.value == (r"\ne",) for item in node.items[1:])
        first = _interval_of(node.items[0]) if all(others) else None
        items = (first, *node.items[1:]) if first else tuple(map(_as_relation, node.items))
        node = replace(node, items=items)
    # x > 2, x \ne 5: a comma before \ne means "and"; between two inequalities it may be "or"
    is_exclusion = sum(item.value != (r"\ne",) for item in node.items) <= 1
    if node.kind == "list" and (node.value == "and" or (not node.value and is_exclusion)):
        parts = real_set(node.items[0])
        for item in node.items[1:]:
            parts = _intersection(parts, real_set(item))
        return list(parts)
    either = [part for item in node.items for part in _parts(item)]
    if node.kind == "list" and node.value != "or":
        return _told_by_comma(node, either)
    return either


def _told_by_comma(node: Node, either: list[Part]) -> list[Part]:
    """Return the set that ``x > 1, x < 2`` ("and") or ``x < 1, x > 2`` ("or") is.

    Raises:
        NoValue: Both or neither of the two would be some but not all numbers.
    """
    both: tuple[Part, ...] = _ALL
    for item in node.items:
        both = _intersection(both, real_set(item))
    if bool(both) == (not same(_merged(either), _ALL)):
        raise NoValue("inequalities side by side")
    return list(both) if both else either


def _interval_of(node: Node) -> Node | None:
    r"""Return the interval of ``x \in (0, 2)`` or ``(0, 2)``: points are taken out of it."""
    is_member = node.kind == "label" and node.value == r"\in" and node.items[0].kind == "sym"
    node = node.items[1] if is_member else node
    return node if node.kind == "tuple" and len(node.items) == 2 else None


def _as_relation(node: Node) -> Node:
    """Return a member of a list of relations; ``x = 1`` among them is {1}.

    Raises:
        NoValue: It is not a relation.
    """
    if node.kind == "relation":
        return node
    if node.kind == "label" and node.items[0].kind == "sym":
        if node.items[1].kind not in STRUCTURES | {"chain"}:
            return Node("set", node.items[1:])
    raise NoValue("a list is no set of numbers")


def _difference(node: Node) -> list[Part]:
    outer, inner = map(real_set, node.items)
    return list(_intersection(outer, _complement(inner)))


_RULES: dict[str, Callable[[Node], list[Part]]] = {
    "label": lambda node: _parts(node.items[1]),
    "set": lambda node: [(Cut(item, -1), Cut(item, 1)) for item in node.items],
    "union": _union,
    "list": _union,
    "minus": _difference,
    "inter": lambda node: list(_intersection(*map(real_set, node.items))),
}


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
    by_value = _compare(a.at, b.at)
    return by_value if by_value else (a.side > b.side) - (a.side < b.side)


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

"""Formulas as texts that do not depend on the order of terms and factors, and what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from recipe.verify.maths.tree import Node, exact

_NEUTRAL = {"sum": "0", "product": "1"}
_GROUPS = {"add": "sum", "sub": "sum", "neg": "sum", "mul": "product", "div": "product"}
_TURNED = {">": "<", r"\ge": r"\le", "<": ">", r"\le": r"\ge"}
_OPPOSITE = {"+": "-", "-": "+", "*": "/", "/": "*"}
Parts = tuple[str, Counter[str]]  # what puts them together, and their keys with their signs


def key(node: Node) -> str:
    """Return a tree as text, the same for any order of terms and factors; without 0 + and 1 times.

    Nothing is multiplied out or put together: ``x^2 x^3`` is not ``x^5``, nor ``a-(b-c)`` the same
    as ``a-b+c``. A product with one fraction is that fraction: ``1/2 x`` is ``x/2``.
    """
    group = _GROUPS.get(node.kind, "")
    if group:
        texts = sorted(_texts(node, group))
        if len(texts) == 1 and texts[0][0] in "+*":
            return texts[0][1:]
        return f"({''.join(texts)})" if texts else _NEUTRAL[group]
    if node.kind == "pow" and exact(node.items[1]) == 1:
        return key(node.items[0])
    if node.kind == "num":
        value = node.value.value
        return str(value) if value.numerator.bit_length() < 4000 else repr(node)
    if node.kind == "relation" and set(node.value) & {">", r"\ge"}:
        kinds = tuple(_TURNED.get(kind, kind) for kind in reversed(node.value))
        node = Node("relation", node.items[::-1], kinds)
    value = "" if node.value is None else str(node.value)
    items = f"({','.join(map(key, node.items))})" if node.items else ""
    return f"{node.kind}:{value}{items}"


def parts_in(node: Node) -> list[Parts]:
    """Return the terms of every sum in a tree, the factors of every product, and all else as it is.

    Those of each sum's negative and each product's reciprocal too.
    """
    found, rest = [], [node]
    while rest:
        each = rest.pop()
        group, texts = parts_of(each)
        found.append((group, texts))
        if group:  # 1/(1/F), -(-a-b)
            turned = {_OPPOSITE[text[0]] + text[1:]: count for text, count in texts.items()}
            found.append((group, Counter(turned)))
        rest += [part for _, part in _split(each, group)] if group else each.items
    return found


def parts_of(node: Node) -> Parts:
    """Return the terms of a sum, the factors of a product, or the whole."""
    group = _GROUPS.get(node.kind, "")
    return group, Counter(_texts(node, group) if group else [key(node)])


def is_among(formula: Parts, parts: Sequence[Parts]) -> bool:
    """Return whether a formula is in ``parts``, alone or with more terms or factors."""
    group, wanted = formula
    return any(wanted and group == other and wanted <= found for other, found in parts)


def _texts(node: Node, group: str) -> list[str]:
    texts = ((sign, key(part)) for sign, part in _split(node, group))
    return [sign + text for sign, text in texts if text != _NEUTRAL[group]]


def _split(node: Node, group: str) -> list[tuple[str, Node]]:
    if group == "sum":
        return _terms(node)
    above, below = _factors(node)
    return [("*", each) for each in above] + [("/", each) for each in below]


def _terms(node: Node) -> list[tuple[str, Node]]:
    """Return the terms of a sum with their signs; a subtracted sum is one term."""
    found, rest = [], [(node, "+")]
    while rest:
        each, sign = rest.pop()
        if sign == "-" or _GROUPS.get(each.kind) != "sum":
            found.append((sign, each))
        elif each.kind == "neg":
            rest.append((each.items[0], "-"))
        else:
            rest += [(each.items[0], "+"), (each.items[1], "+" if each.kind == "add" else "-")]
    return found


def _factors(node: Node) -> tuple[list[Node], list[Node]]:
    """Return what a product multiplies and divides by; of several fractions, each is a factor."""
    above, below, fractions, rest = [], [], [], [node]
    while rest:
        each = rest.pop()
        if _GROUPS.get(each.kind) != "product":
            above.append(each)
            continue
        left, right = each.items
        rest.append(left)
        if each.kind == "div":
            below += _flat(right)
        else:
            (fractions if right.kind == "div" else rest).append(right)
    if len(fractions) == 1 and not below:
        top, bottom = _factors(fractions[0])
        return above + top, bottom
    return above + fractions, below


def _flat(node: Node) -> list[Node]:
    found, rest = [], [node]
    while rest:
        each = rest.pop()
        if each.kind == "mul":
            rest += each.items
        else:
            found.append(each)
    return found

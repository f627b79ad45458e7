"""The tree of an answer, and what can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from recipe.hint.verify.maths.words import is_noun

_FUNCTION_NAMES = frozenset("fghpquFGHPQ")
STRUCTURES = frozenset(
    "list tuple set union inter minus matrix ratio relation label quantity word numeral".split()
)


class Unread(Exception):
    """Some of the text has no place in the grammar."""


@dataclass(frozen=True, slots=True)
class Node:
    """One part of an answer.

    Attributes:
        kind: ``num sym const add sub neg mul div pow root log fn fact abs floor ceil binom degree
            sum prod pm mp`` for a formula; ``list tuple interval set union inter minus matrix
            ratio relation label quantity numeral word`` for what holds formulas.
        items: Its parts.
        value: What is no part: a number, a name, brackets, relations, a suffix.
    """

    kind: str
    items: tuple[Node, ...] = ()
    value: Any = None


@dataclass(frozen=True, slots=True)
class Number:
    """A numeral: its value, and how many decimals it is written with."""

    value: Fraction
    decimals: int = 0


def num(value: Fraction | int, decimals: int = 0) -> Node:
    """A numeral."""
    return Node("num", value=Number(Fraction(value), decimals))


def names_in(*nodes: Node) -> set[str]:
    """The names of all variables."""
    found: set[str] = set()
    for node in nodes:
        if node.kind == "sym":
            found.add(node.value)
        elif node.kind in ("sum", "prod"):
            bound, low, high, body = node.items
            found |= names_in(low, high) | (names_in(body) - {bound.value})
        else:
            found |= names_in(*node.items)
    return found


def is_name(node: Node) -> bool:
    """Whether it can stand left of ``=`` as a name: ``x``, ``f(x)``, ``(x, y)``, ``Area``."""
    if node.kind == "sym":
        return True
    if node.kind == "word":
        return len(node.value.split()) == 1 and is_noun(node.value)
    if node.kind == "const":
        return node.value in ("e", "i")
    if node.kind == "tuple":
        return all(item.kind == "sym" for item in node.items) and node.value == "()"
    if node.kind == "mul" and len(node.items) == 2 and node.value is None:  # f(x), f(2), AB
        left, right = node.items
        if left.kind != "sym":
            return is_name(left) and right.kind == "sym" and right.value.isupper()
        is_function = left.value in _FUNCTION_NAMES or left.value[:1].isupper()
        if right.kind == "num":
            return left.value in _FUNCTION_NAMES
        is_points = left.value.isupper() and right.kind == "sym" and right.value.isupper()
        is_argument = right.kind == "sym" or (right.kind == "tuple" and is_name(right))
        return is_points or (is_function and is_argument)
    return False


def has_sign_pair(node: Node) -> bool:
    r"""Whether a ``\pm`` is in it."""
    return node.kind in ("pm", "mp") or any(has_sign_pair(item) for item in node.items)


def with_sign(node: Node, sign: int) -> Node:
    r"""With the upper (1) or the lower (-1) sign of every ``\pm``."""
    items = tuple(with_sign(item, sign) for item in node.items)
    if node.kind not in ("pm", "mp"):
        return replace(node, items=items)
    is_plus = (node.kind == "pm") == (sign > 0)
    return Node("add" if is_plus else "sub", items)

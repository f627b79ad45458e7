"""The tree of an answer, what can be asked of it, and the exact value of a rational one."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from recipe.verify.maths.units import Suffix, is_noun

_FUNCTION_NAMES = frozenset("fghpquFGHPQ")
STRUCTURES = frozenset(
    "list tuple set union inter minus matrix relation label quantity word numeral".split()
)
_IN_NAMES = frozenset({"of", "the", "remainder"})  # Number of apples
_MAX_BITS = 40_000  # of an exact numerator or denominator
_MAX_FACTORIAL = 3000
_TURNED = {">": "<", r"\ge": r"\le"}
_MAX_DIGITS = 4300  # Python reads no more


_NO_SOLUTION = re.compile(r"(?:there (?:is|are) )?no (?:real )?solutions?(?: exists?)?|none")


class Unread(Exception):
    """Some of the text has no place in the grammar."""


@dataclass(frozen=True, slots=True)
class Node:
    """One part of an answer.

    Attributes:
        kind: ``num sym const add sub neg mul div pow root log fn fact abs floor ceil binom degree
            pm mp`` for a formula; ``list tuple set union inter minus matrix relation label
            quantity numeral word`` for what holds formulas.
        items: Its parts.
        value: What is not a part: a number, a name, brackets, relations, a suffix.
    """

    kind: str
    items: tuple[Node, ...] = ()
    value: Any = None


@dataclass(frozen=True, slots=True)
class Number:
    """A numeral: its value, and how many decimals it has."""

    value: Fraction
    decimals: int = 0


def num(value: Fraction | int, decimals: int = 0) -> Node:
    """Return a numeral."""
    return Node("num", value=Number(Fraction(value), decimals))


REALS = Node("sym", value=r"\mathbb{R}")


def names_in(*nodes: Node) -> set[str]:
    """Return the names of all variables."""
    found: set[str] = set()
    for node in nodes:
        if node.kind == "sym":
            found.add(node.value)
        else:
            found |= names_in(*node.items)
    return found


def is_name(node: Node) -> bool:
    """Return whether it can be a name left of ``=``: ``x``, ``f(x)``, ``(x, y)``, ``Area``."""
    if node.kind == "sym":
        return not node.value.startswith(r"\mathbb")
    if node.kind == "word":
        return all(word in _IN_NAMES or is_noun(word) for word in node.value.lower().split())
    if node.kind == "tuple":
        are_names = all(item.kind in ("sym", "mul") and is_name(item) for item in node.items)
        return are_names and node.value == "()"
    if node.kind == "mul" and len(node.items) == 2 and node.value is None:  # f(x), f(2), AB
        left, right = node.items
        if left.kind == "pow" and left.items[1] == Node("neg", (num(1),)):  # f^{-1}(x)
            left = left.items[0]
        if left.kind != "sym":
            return is_name(left) and right.kind == "sym" and right.value.isupper()
        is_function = left.value.rstrip("'") in _FUNCTION_NAMES or left.value[:1].isupper()
        if right.kind == "num":
            return left.value in _FUNCTION_NAMES
        is_points = left.value.isupper() and right.kind == "sym" and right.value.isupper()
        is_argument = right.kind == "sym" or (right.kind == "tuple" and is_name(right))
        return is_points or (is_function and is_argument)
    return False


def has_sign_pair(node: Node) -> bool:
    r"""Return whether a ``\pm`` is in it."""
    return node.kind in ("pm", "mp") or any(has_sign_pair(item) for item in node.items)


def without_bare_degrees(node: Node) -> Node:
    r"""Return a tree without degree signs outside functions: ``90^\circ - x`` is 90 - x.

    Raises:
        Unread: It multiplies angles, or divides by one.
    """
    if node.kind == "degree":
        return without_bare_degrees(node.items[0])
    if node.kind == "fn":
        return node
    items = tuple(map(without_bare_degrees, node.items))
    changed = [item != before for item, before in zip(items, node.items, strict=True)]
    if (node.kind == "mul" and all(changed)) or (node.kind == "div" and changed[1]):
        raise Unread("a product of angles")
    return replace(node, items=items)


def with_sign(node: Node, sign: int) -> Node:
    r"""Return a tree with the upper (1) or the lower (-1) sign of every ``\pm``."""
    items = tuple(with_sign(item, sign) for item in node.items)
    if node.kind not in ("pm", "mp"):
        return replace(node, items=items)
    is_plus = (node.kind == "pm") == (sign > 0)
    return Node("add" if is_plus else "sub", items)


def folded(node: Node) -> str:
    """Return a word without its case; one letter keeps it."""
    if node.kind == "word":
        text = node.value.strip(" .!'\"")
        text = text if len(text) == 1 else text.casefold().replace("-", " ")
        return "no solution" if _NO_SOLUTION.fullmatch(text) else text
    if node.kind == "sym" and len(node.value) == 1:
        return node.value
    if node.kind == "mul":  # AB, ABC: points, or letters of a word
        parts = [folded(item) for item in node.items]
        return "".join(parts).casefold() if all(parts) else ""
    return node.value if node.kind == "const" and node.value in ("e", "i") else ""


def parted(node: Node) -> tuple[Node, Suffix]:
    """Return a value and its suffix."""
    return (node.items[0], node.value) if node.kind == "quantity" else (node, Suffix())


def infinity_sign(node: Node) -> int:
    """Return 1 and -1 for the infinities, else 0."""
    if node.kind == "neg":
        return -infinity_sign(node.items[0])
    return int(node.kind == "const" and node.value == "inf")


def turned(relation: Node) -> Node:
    """Return ``3 > x`` as ``x < 3``; other relations as they are."""
    if not set(relation.value) <= {*_TURNED}:
        return relation
    kinds = tuple(map(_TURNED.get, reversed(relation.value)))
    return Node("relation", relation.items[::-1], kinds)


class NoValue(Exception):
    """It has no value here: undefined, too large, or too many digits would be needed."""


def exact(node: Node) -> Fraction | None:
    """Return the value of a rational constant; ``None`` for what is not one, or is too large."""
    try:
        return _exact(node)
    except (NoValue, RecursionError, ZeroDivisionError):
        return None


def _exact(node: Node) -> Fraction:
    kind = node.kind
    if kind == "num":
        return node.value.value
    if kind not in EXACT:
        raise NoValue
    values = [_exact(item) for item in node.items]
    value = EXACT[kind](*values)
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise NoValue
    return value


@functools.lru_cache(maxsize=64)
def _exact_factorial(n: Fraction) -> Fraction:
    if n.denominator != 1 or not 0 <= n <= _MAX_FACTORIAL:
        raise NoValue
    return Fraction(math.factorial(int(n)))


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or base == exponent == 0:
        raise NoValue
    power = int(exponent)
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if base not in (0, 1, -1) and size * abs(power) > 2 * _MAX_BITS:
        raise NoValue
    return base**power


def _exact_binom(n: Fraction, k: Fraction) -> Fraction:
    if n.denominator != 1 or k.denominator != 1 or not 0 <= k <= n <= _MAX_FACTORIAL:
        raise NoValue
    return Fraction(math.comb(int(n), int(k)))


EXACT: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "neg": lambda a: -a,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": _exact_power,
    "fact": _exact_factorial,
    "binom": _exact_binom,
    "abs": abs,
    "floor": lambda a: Fraction(a.__floor__()),
    "ceil": lambda a: Fraction(a.__ceil__()),
}


def decimal(text: str) -> Fraction:
    """Return the value of a numeral with a point."""
    before, _, decimals = text.partition(".")
    return Fraction(whole((before + decimals) or "0"), 10 ** len(decimals))


def whole(text: str) -> int:
    """Read digits."""
    if not text.isdigit() or len(text) > _MAX_DIGITS:
        raise Unread("no whole number, or one of too many digits")
    return int(text)


def decimals(node: Node) -> int:
    """Return how many decimals a numeral is written with, a sign before it or not; 0 for others."""
    if node.kind == "neg":
        return decimals(node.items[0])
    return node.value.decimals if node.kind == "num" else 0

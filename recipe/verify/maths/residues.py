r"""``12 \pmod{17}`` is 12 where the problem asks for a remainder of division by 17."""

from __future__ import annotations

import re
from dataclasses import replace

from recipe.verify.maths.mentions import MAX_CHARS
from recipe.verify.maths.questions import asks
from recipe.verify.maths.tree import Node, exact

_ASKED = re.compile(
    r"\bremainder|\bresidue|\bmodul|\bmod\b|\\[pb]?mod(?![a-z])|\\equiv(?![a-z])|\bcongruen"
)
_MODULUS = r"(?:\bby|mod(?:ulo|ulus|uli)?)(?:[\s$~{(,]|\\[,;: (]|of ){0,9}"
_MAX = 10**100  # no problem states a larger modulus, and its digits are written out


def without_moduli(gold: Node, node: Node, problem: str) -> Node:
    """Return an answer without the modulus that the question states if the gold answer has none."""
    return node if _has_residue(gold) else _without(node, problem)


def _has_residue(node: Node) -> bool:
    return node.kind == "residue" or any(map(_has_residue, node.items))


def _without(node: Node, problem: str) -> Node:
    if node.kind == "residue":
        return node.items[0] if _is_asked(node.items[0], node.items[1], problem) else node
    if node.kind not in ("label", "list", "set"):
        return node
    return replace(node, items=tuple(_without(item, problem) for item in node.items))


def _is_asked(value: Node, modulus: Node, problem: str) -> bool:
    number, size = exact(value), exact(modulus)
    if number is None or size is None or not 0 <= number < size <= _MAX or size.denominator > 1:
        return False
    stated = re.search(rf"{_MODULUS}{size}(?![0-9]|[.,][0-9])", problem[-MAX_CHARS:])
    return stated is not None and asks(_ASKED, problem)

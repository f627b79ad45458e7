r"""Signs of an answer that have a meaning by convention: ``(1, 2)^T``, ``2i - 3j``, ``C(10, 3)``.

Unit vectors and combinations are read only beside a gold answer that is a vector or a number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from recipe.verify.maths.operations import signed_terms
from recipe.verify.maths.tree import (
    STRUCTURES,
    Node,
    Number,
    Unread,
    names_in,
    num,
    parted,
    whole,
)
from recipe.verify.maths.words import NUMBERS

_TURN = re.compile(  # (1, 2)^\top
    r"\^\s?(\{\s?)?\\(?:(?:top|intercal)(?![A-Za-z])|text(?:rm|sf|bf)?\s?\{\s?T\s?\})(?(1)\s?\})"
)
_DOTLESS = re.compile(r"\\([ij])math(?![A-Za-z])")
_NUMBER = r"(?:\{\s?([A-Za-z0-9][A-Za-z0-9+ -]{0,19})\}|([A-Za-z0-9]))"
_CHOOSE = re.compile(  # _{10}C_3, {}^{10}C_3; after a letter or number it is an index of that
    rf"(?:\{{\}}\s?|\A|(?<=[-=(,+*/{{]))[_^]\s?{_NUMBER}\s?"
    rf"(?:C|\\(?:mathrm|mathbf|text|textrm|operatorname)\s?\{{C\}})\s?_\s?{_NUMBER}"
)
CALLED = re.compile(r"(?<![A-Za-z\\])C\(\s?([0-9]{1,4})\s?,\s?([0-9]{1,4})\s?\)")
_CALLED = re.compile(  # C(10, 3) = 120; alone it may be a point
    rf"{CALLED.pattern}(?=\s?(?:[-+*/=]|\\(?:cdot|times)\b))"
)
_COUNTS = re.compile(r"\b(?:[Hh]ow many|number of|ways|probability|cho(?:ose|ice|sen))\b")
_VECTOR = re.compile(r"vector|\\(?:vec|mathbf|overrightarrow|hat|nabla)(?![a-z])|gradient|\bforce")
_MAX_BITS = 4000  # of a numeral with a base
_T = Node("sym", value="T")
_C = Node("sym", value="C")
_AXES = "ijk"
_I = Node("const", value="i")
_AXES_OF = {_I: "i", Node("sym", value="j"): "j", Node("sym", value="k"): "k"} | {
    Node("sym", value=rf"\{mark}{{{axis}}}"): axis for mark in ("hat", "vec") for axis in _AXES
}


def with_plain_signs(text: str) -> str:
    r"""Return an answer with ``_{10}C_3`` as a binomial, ``^\top`` as ``^T``, ``\imath`` as i."""
    text = _DOTLESS.sub(r" \1", _TURN.sub("^T", text))
    text = _CALLED.sub(r"\\binom{\1}{\2}", text)
    return _CHOOSE.sub(lambda m: rf"\binom{{{m[1] or m[2]}}}{{{m[3] or m[4]}}}", text)


def in_base(digits: Number, index: str) -> Node:
    """Return the numeral of these digits in the base ``8``, ``(8)``, ``eight`` or ``base 8``.

    Raises:
        Unread: The index is not a base, or the digits have a point.
    """
    if index.startswith("( ") and index.endswith(" )"):
        index = index[2:-2]
    index = index.lower().removeprefix("base ")
    base = NUMBERS[index] if index in NUMBERS else whole(index)
    if digits.value.numerator.bit_length() > _MAX_BITS:
        raise Unread("a numeral of too many digits")
    if not 2 <= base <= 36 or digits.decimals:
        raise Unread("an index of a number that is not a base")
    return Node("numeral", value=(str(digits.value.numerator), base))


def raised(node: Node, exponent: Node | None) -> Node:
    """Return a power; for a bracket or matrix to the T, its columns as rows."""
    if exponent is None:
        return node
    if exponent == _T and node.kind == "tuple" and node.value in ("()", "[]"):
        return _column(node.items)
    if exponent == _T and node.kind == "matrix" and len(node.items) == 1:
        return _column(node.items[0].items)
    if exponent == _T and node.kind == "matrix" and all(len(row.items) == 1 for row in node.items):
        return Node("matrix", (Node("tuple", tuple(row.items[0] for row in node.items), "()"),))
    return Node("pow", (node, exponent))


def by_convention(gold: Node, answer: Node, problem: str) -> Node:
    """Return ``2i - 3j`` beside a vector as a column, ``C(10, 3)`` as a binomial in counting."""
    name, value = answer.items if answer.kind == "label" else (None, answer)
    if name == _C and value.kind == "tuple" and parted(gold)[0].kind not in STRUCTURES:
        is_pair = len(value.items) == 2 and _COUNTS.search(problem)
        return Node("binom", value.items) if is_pair and not CALLED.search(problem) else answer
    is_open = problem and gold.kind == "tuple" and not _VECTOR.search(problem)  # 2j is no interval
    parts = None if value.kind in STRUCTURES else _components(value, _size(gold))
    if parts is None or is_open:
        return answer
    return _column(parts) if name is None else replace(answer, items=(name, _column(parts)))


def _column(cells: Sequence[Node]) -> Node:
    return Node("matrix", tuple(Node("tuple", (cell,), "()") for cell in cells))


def _size(gold: Node) -> int:
    """Return how many numbers a bracket, row or column has; 0 for all else."""
    gold = gold.items[1] if gold.kind == "label" else gold
    if gold.kind == "tuple":
        return len(gold.items) if gold.value == "()" else 0
    return max(len(gold.items), len(gold.items[0].items)) if gold.kind == "matrix" else 0


def _components(node: Node, size: int) -> tuple[Node, ...] | None:
    """Return the factors of i, j and k in a sum of nothing else; ``None`` for other formulas."""
    if not 1 < size <= len(_AXES):
        return None
    found: dict[str, Node] = {}
    axes: set[Node] = set()
    for term, sign in signed_terms(node):
        factor, axis = term.items if term.kind == "mul" else (num(1), term)
        name = _AXES_OF.get(axis, "")
        if not name or name in found or names_in(factor):
            return None
        axes.add(axis)
        found[name] = Node("neg", (factor,)) if sign < 0 else factor
    is_imaginary = axes == {_I}  # 2i alone is not a vector
    if is_imaginary or not {*found} <= {*_AXES[:size]}:
        return None
    return tuple(found.get(axis, num(0)) for axis in _AXES[:size])

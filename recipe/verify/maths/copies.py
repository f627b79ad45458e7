"""Tell whether an answer only repeats a formula of the question, padded or not worked out.

``123*456 + 1 - 1`` and ``2*123*456/2`` say no more than the question ``123*456``. So an answer may
not contain a formula of the question that has the gold answer's value, whatever surrounds it.
Padding only adds numerals and names, so these are counted too: an answer may not contain all those
of such a formula, unless the gold answer does, nor be as long as that formula and longer than the
gold answer, nor have functions where that formula has some and the gold answer none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from recipe.verify.maths.keys import is_among, parts_in, parts_of
from recipe.verify.maths.operations import nodes_of
from recipe.verify.maths.tree import (
    STRUCTURES,
    Node,
    NoValue,
    Number,
    decimals,
    exact,
    factors,
    names_in,
)

_FACTOR = re.compile(
    r"\b[Ff]actor(?:i[sz]e|i[sz]ing|i[sz]ation|ed|ing)?\b(?! of)"
    r"|(?:into|product of) (?:\w{1,20} ){0,2}factors|因式分解|分解因式"
    r"|form \$?\s?\([^()]{1,9}\)\s?\([^()]{1,9}\)"  # (x+a)(x+b)
)
_EXPAND = re.compile(r"\b[Ee]xpand\b")
_COMMON = re.compile(r"\bcommon fraction")
_JOIN = re.compile(r"\b[Ss]implif|\b[Ee]xpand\b")
_RATIONAL_BELOW = re.compile(r"rational denominator|[Rr]ationali[sz]|radical form")
_SIMPLIFY = re.compile(r"\b[Ss]implif|\b[Rr]ationali[sz]|\bradical")
_DIVIDE = re.compile(r"\b[Qq]uotient|\b[Dd]ivided? |\b[Ss]implif")
_SCALES = frozenset(10**power for power in range(16))
_NEUTRAL = {"mul": _SCALES, "div": _SCALES, "pow": {1}, "add": {0}, "sub": {0}}
_PLAIN = frozenset({"num", "sym", "const"})
_RATIONAL = frozenset("num add sub neg mul div pow binom fact".split())
_FIELD = frozenset("num sym const add sub neg mul div pow".split())
_UNDONE = frozenset("floor ceil abs".split())


def repeats_one(
    answers: Sequence[Node],
    golds: Sequence[Node],
    formulas: Sequence[Node],
    equal: Callable[[Node, Node], bool],
    *,
    is_rational: bool,
) -> bool:
    """Return whether one of the answers is one of ``formulas`` with something around it.

    Linear in the answers; the values of the formulas depend on the problem alone.

    Args:
        answers: Values, each equal to one of ``golds``.
        golds: Those of the gold answer.
        formulas: The values in the problem's text.
        equal: Whether a formula has the value of a gold answer.
        is_rational: The gold answer is a number that can be worked out to the end.
    """
    parts = [(a, Counter(_leaves(a)), Counter(_leaves(_folded(a)))) for a in answers]
    own_golds = [Counter(_leaves(gold)) for gold in golds]
    room = max(leaves.total() for leaves in own_golds)
    if is_rational and any((exact(gold) or 0).denominator > 1 for gold in golds):
        room = max(room, 2)
    held, own_held = list(map(parts_in, answers)), list(map(parts_in, golds))
    for formula in formulas:
        whole, leaves = parts_of(formula), Counter(_leaves(formula))
        is_of_gold = any(leaves <= own for own in own_golds)
        least = room + 1 if is_rational else max(room + 1, leaves.total())
        is_padded = any(is_among(whole, each) for each in held) and not any(
            is_among(whole, each) for each in own_held
        )
        # \frac{\sqrt6}{4}+\frac{\sqrt2}{4} is longer than \sin 75, and worked out
        calls = set[str]() if is_rational or _has_root(formula) else _functions(formula)
        is_doubtful = is_padded or any(
            (own.total() >= least and calls <= _functions(answer))
            or (not is_of_gold and (leaves <= own or leaves <= folded))
            or (is_rational and _is_larger_fraction(answer, formula, golds))
            # cos 15 where the question is sin 75, and the gold answer a root
            or (_functions(answer) and _functions(formula) and not _functions(*golds))
            for answer, own, folded in parts
        )
        if is_doubtful and _has_value(formula, golds, equal):
            return True
    return False


def sides_of(gold: Node, answer: Node) -> list[Node]:
    """Return the sides of ``sqrt(50) = 5 sqrt(2)``, each with the name before them; else none."""
    name, value = answer.items if answer.kind == "label" else (None, answer)
    is_identity = value.kind == "relation" and gold.kind not in STRUCTURES
    if value.kind != "chain" and not is_identity:
        return []
    sides = [value.items[0]]
    sides += [s for kind, s in zip(value.value, value.items[1:], strict=True) if kind == "="]
    return [Node("label", (name, side)) if name else side for side in sides]


def has_form(problem: str, gold: Node, answer: Node) -> bool:
    """Return whether a value has the gold answer's factors or terms where a form is asked for."""
    if _FACTOR.search(problem):
        if sum(factors(answer).values()) < sum(factors(gold).values()):
            return False
        return _divides(gold) or not _divides(answer)  # x(x + 3 + 2/x) is not a factoring
    is_quotient = _divides(answer) and _is_rational(answer) and _is_polynomial(gold)
    if is_quotient and _DIVIDE.search(problem):
        return False  # (x^2 - 4 + 3)/(x + 1) for x - 1
    if _SIMPLIFY.search(problem) and 0 < max(_radicands(gold)) < max(_radicands(answer)):
        return False  # sqrt(968)/2 for 11 sqrt(2)
    has_fraction = any(each.kind in ("div", "pow") for each in nodes_of(gold))
    is_rational_below = _RATIONAL_BELOW if has_fraction else _SIMPLIFY
    if is_rational_below.search(problem) and _divides_by_root(answer) > _divides_by_root(gold):
        return False  # 10/sqrt(5) for 2 sqrt(5)
    if _COMMON.search(problem) and any(map(_divides_decimals, nodes_of(answer))):
        return False  # 1.4/0.3
    is_sum, is_expanded = bool(names_in(gold)) and _is_expanded(gold), _is_expanded(answer)
    num_more = _num_terms(answer) - _num_terms(gold)
    if is_sum and is_expanded and num_more > 0 and _JOIN.search(problem):
        return False  # 15x + 1 - 81 for 15x - 80
    return not _EXPAND.search(problem) or (num_more >= 0 and is_expanded >= is_sum)


def is_worked(node: Node) -> bool:
    """Return whether it is more than a number or a name."""
    return is_worked(node.items[0]) if node.kind == "neg" else node.kind not in _PLAIN


def is_done(answer: Node, golds: Sequence[Node]) -> bool:
    """Return whether every operation that asks for work is one of the gold answer's."""
    kinds = {each.kind for each in nodes_of(answer) if each.kind in ("sum", "prod", "det")}
    kinds |= {each.kind for each in nodes_of(answer) if each.kind in _UNDONE and not names_in(each)}
    return kinds <= {each.kind for gold in golds for each in nodes_of(gold)}


def is_arithmetic(node: Node) -> bool:
    """Return whether it has only numerals and rational arithmetic; ``2^{1/2}`` is a root."""
    is_root = node.kind == "pow" and (exact(node.items[1]) or Fraction(0)).denominator > 1
    return node.kind in _RATIONAL and not is_root and all(map(is_arithmetic, node.items))


def _radicands(node: Node) -> Iterator[int]:
    """Yield the sizes of the numbers under roots (of a fraction, both parts multiplied), and 0."""
    yield 0
    if _is_root(node):
        value = exact(node.items[0]) or Fraction(0)
        yield abs(value.numerator) * value.denominator
    for item in node.items:
        yield from _radicands(item)


def _divides(node: Node) -> bool:
    """Return whether a variable is below a fraction bar."""
    below = node.items[1:] if node.kind == "div" else ()
    if node.kind == "pow" and (exact(node.items[1]) or 0) < 0:
        below = node.items
    return bool(names_in(*below)) or any(map(_divides, node.items))


def _is_polynomial(node: Node) -> bool:
    """Return whether it is a polynomial with a name."""
    return bool(names_in(node)) and not _divides(node) and _is_rational(node)


def _is_rational(node: Node) -> bool:
    """Return whether it has only numbers, names and arithmetic with whole exponents."""
    power = exact(node.items[1]) if node.kind == "pow" else Fraction(1)
    is_whole = power is not None and power.denominator == 1
    return is_whole and node.kind in _FIELD and all(map(_is_rational, node.items))


def _divides_by_root(node: Node) -> bool:
    """Return whether a root is below a fraction bar, or a fraction below a root."""
    below = node.items[1:] if node.kind == "div" else ()
    if _is_root(node):
        return (exact(node.items[0]) or Fraction(0)).denominator > 1
    has_root = any(map(_is_root, nodes_of(Node("list", below))))
    return has_root or any(map(_divides_by_root, node.items))


def _is_root(node: Node) -> bool:
    power = exact(node.items[1]) if node.kind == "pow" else None
    return node.kind == "root" or (power is not None and power.denominator > 1)


def _num_terms(node: Node) -> int:
    return sum(map(_num_terms, node.items)) if node.kind in ("add", "sub", "neg") else 1


def _divides_decimals(node: Node) -> bool:
    return node.kind == "div" and any(map(decimals, node.items))


def _is_expanded(node: Node) -> bool:
    """Return whether it is a sum without a sum of names inside a product, power or fraction."""
    if node.kind in ("add", "sub", "neg"):
        return all(map(_is_expanded, node.items))
    return not any(each.kind in ("add", "sub") and names_in(each) for each in nodes_of(node))


def _has_value(formula: Node, golds: Sequence[Node], equal: Callable[[Node, Node], bool]) -> bool:
    for gold in golds:
        try:
            if names_in(gold) <= names_in(formula) and equal(gold, formula):
                return True
        except NoValue:
            continue
    return False


def _leaves(node: Node, inside: str = "") -> Iterator[Node]:
    """Yield numerals and names, but no exponents of 1, terms of 0, powers of ten as factors."""
    if node.kind == "fn":
        yield Node("fn", value=node.value)
    is_factor = inside in ("mul", "div")
    if node.kind == "num":
        if node.value.value not in _NEUTRAL.get(inside, ()):
            yield Node("num", value=node.value.value)
    elif not node.items:
        yield node
    elif not (is_factor and node.kind == "pow" and exact(node.items[0]) == 10):
        for item in node.items:
            yield from _leaves(item, node.kind)
    elif exact(node.items[1]) is None:
        yield from _leaves(node.items[1])


def _folded(node: Node) -> Node:
    """Return ``sqrt(241 + 1)`` with its arithmetic done."""
    value = exact(node)
    if value is not None:
        return Node("num", value=Number(value))
    return Node(node.kind, tuple(map(_folded, node.items)), node.value)


def _is_larger_fraction(answer: Node, formula: Node, golds: Sequence[Node]) -> bool:
    """Tell whether it is a fraction of the question, expanded: ``48/72`` for 24/36."""
    sizes = [_bits(each) for each in (answer, formula, *golds)]
    return sizes[0] >= sizes[1] > 0 and sizes[0] > max(sizes[2:])


def _functions(*nodes: Node) -> set[str]:
    """Return which of ``fn`` and ``log`` are in one of the trees."""
    return {each.kind for each in nodes_of(Node("list", nodes))} & {"fn", "log"}


def _has_root(node: Node) -> bool:
    """Return whether a root stands in it, but not inside a function: sqrt(12) - tan 60."""
    if node.kind in ("fn", "log"):
        return False
    return _is_root(node) or any(map(_has_root, node.items))


def _bits(node: Node) -> int:
    """Return the size of a fraction of two numerals; 0 for all else."""
    if node.kind != "div" or any(item.kind != "num" for item in node.items):
        return 0
    return sum(item.value.value.numerator.bit_length() for item in node.items)

"""Tell whether an answer only joins formulas of the question and leaves the work undone.

``3x+1-(x+2)`` says no more than f(x) - g(x), nor does ``(x+3)(x+4)`` where an expanded product is
asked for, or ``i(7+2i)`` for -2 + 7i. All of it takes time linear in the formulas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recipe.verify.maths.keys import key
from recipe.verify.maths.operations import nodes_of
from recipe.verify.maths.tree import Node, exact, names_in

_SUMS = frozenset({"add", "sub", "neg"})
_I = Node("const", value="i")
_MAX_POWER = 9  # of a formula that is written out as factors


def combines(golds: Sequence[Node], answers: Sequence[Node], formulas: Sequence[Node]) -> bool:
    """Tell whether an answer is a sum or product of formulas of the problem.

    A sum counts where its terms are theirs and two of them could be joined, a product where one of
    its factors is a sum; neither where a gold answer is such a sum or product.

    Args:
        golds: The gold answer's values.
        answers: Those of an equal answer.
        formulas: The values in the problem's text.
    """
    golds = [gold for gold in golds if _has_name(gold)]
    if not golds or any(map(_is_factored, golds)):
        return False
    keys = {key(each) for each in formulas}
    terms = {key(term) for each in formulas if _has_name(each) for term in _terms(each)}
    may_join = any(map(_can_be_joined, golds))
    return any(
        _is_product(answer, keys)
        or (not may_join and _can_be_joined(answer) and {*map(key, _terms(answer))} <= terms)
        for answer in answers
    )


def leaves_complex(golds: Sequence[Node], answers: Sequence[Node]) -> bool:
    """Tell whether an answer multiplies, divides by or raises i where the gold answers do not.

    The gold answers are numerals and numerals times i.
    """
    is_plain = all(_is_numeral_or_i(term) for gold in golds for term in _terms(gold))
    nodes = (each for answer in answers for each in nodes_of(answer))
    return is_plain and any(map(_has_i, golds)) and any(map(_raises_i, nodes))


def _is_product(answer: Node, keys: set[str]) -> bool:
    """Tell whether two factors or more are formulas, one a sum, and the rest is one or a number."""
    found = [each for each in _factors(answer) if exact(each) is None]
    sums = [each for each in found if each.kind in _SUMS]
    others = [each for each in found if each.kind not in _SUMS]
    if not sums or not {*map(key, sums)} <= keys:
        return False
    if not others:
        return len(sums) > 1
    numbers = [each for each in _factors(answer) if exact(each) is not None]
    return bool({_key_of_product(others), _key_of_product([*numbers, *others])} & keys)


def _key_of_product(parts: Sequence[Node]) -> str:
    whole = parts[0]
    for part in parts[1:]:
        whole = Node("mul", (whole, part))
    return key(whole)


def _factors(node: Node) -> Iterator[Node]:
    """Yield what a product or fraction is made of, a power of a sum as often as it says."""
    if node.kind in ("mul", "div", "neg"):
        for item in node.items:
            yield from _factors(item)
        return
    power = exact(node.items[1]) if node.kind == "pow" and node.items[0].kind in _SUMS else None
    if power is not None and power.denominator == 1 and abs(power) <= _MAX_POWER:
        yield from [node.items[0]] * int(abs(power))
    else:
        yield node


def _terms(node: Node) -> Iterator[Node]:
    """Yield the terms of a sum without their signs and brackets."""
    if node.kind not in _SUMS:
        yield node
        return
    for item in node.items:
        yield from _terms(item)


def _can_be_joined(node: Node) -> bool:
    """Tell whether two terms differ in their numbers alone."""
    kinds = [
        tuple(sorted(key(each) for each in _factors(term) if exact(each) is None))
        for term in _terms(node)
    ]
    return len(kinds) > len({*kinds})


def _is_factored(node: Node) -> bool:
    """Tell whether a sum with a name or i is inside a product, power or function."""
    inside = [each for term in _terms(node) for each in nodes_of(term)]
    return any(each.kind in _SUMS and _has_name(each) for each in inside)


def _has_name(node: Node) -> bool:
    return bool(names_in(node)) or _has_i(node)


def _has_i(node: Node) -> bool:
    return any(each == _I for each in nodes_of(node))


def _is_numeral_or_i(term: Node) -> bool:
    parts = [*_factors(term)]
    return all(each.kind == "num" or each == _I for each in parts) and parts.count(_I) < 2


def _raises_i(node: Node) -> bool:
    if node.kind == "mul":
        return all(map(_has_i, node.items))
    below = node.items[1:] if node.kind == "div" else node.items
    return node.kind in ("div", "pow", "fn") and any(map(_has_i, below))

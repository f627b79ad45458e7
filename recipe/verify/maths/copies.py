r"""Tell whether an answer of the right value only repeats the question or leaves work undone.

A policy that copies the problem's formula into the box has found nothing. Three rules: an answer
has no kind of operation (root, logarithm, variable) that the gold answer lacks; it is no formula
of the problem's text in another order; and it is not as long as such a formula of its value, and
longer than the gold answer. So padding (``123*456 + 1 - 1``) does not help.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from recipe.verify.maths.question import MAX_CHARS, asks
from recipe.verify.maths.reading import read
from recipe.verify.maths.tree import (
    STRUCTURES,
    Node,
    NoValue,
    decimals,
    exact,
    infinity_sign,
    names_in,
    num,
    turned,
)

_WAVES = frozenset("sin cos tan cot sec csc".split())
_MIN_DECIMALS = 5  # a gold answer with as many may be a rounding of anything
_GROUPS = {"add": "sum", "sub": "sum", "neg": "sum", "mul": "product", "div": "product"}
_KINDS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
_NEUTRAL = {"sum": "0", "product": "1"}

_CALLED = (  # functions and commands, as a text without marks writes them
    r"(?:sqrt|(?:arc)?(?:sin|cos|tan)|cot|sec|csc|log|ln|exp"
    r"|\\(?:times|cdot|div|sqrt|[dt]?frac|binom|pi|circ|(?:arc)?(?:sin|cos|tan)|log|ln|left|right))"
    r"(?![A-Za-z])"
)
FORMULA = re.compile(
    r"\$\$([^$]{1,300})\$\$|\$([^$]{1,300})\$|\\\[(.{1,300}?)\\\]|\\\((.{1,300}?)\\\)"
    r"|\\begin\{(?:align|equation|gather|multline|eqnarray|displaymath|math)\*?\}(.{1,600}?)\\end\{"
    r"|<math>([^<]{1,300})</math>|(?<!`)`([^`$\n]{1,200})`(?!`)"
    r"|(\\[dt]?frac[^ $]{1,60})"
    # without a mark: digits, signs, functions, and letters that stand alone
    r"|((?<![0-9A-Za-z.,\\])[-−(\[]{0,9}"
    rf"(?:[0-9√π]|{_CALLED}|[A-Za-z](?![A-Za-z]| [(0-9A-Za-z]))"
    r"(?:(?:\{,\}|,|\\,)(?=[0-9]{3}(?![0-9]))|[-−–+*/^_().0-9 ×÷·⋅!√π°{}\[\]⁰¹²³⁴⁵⁶⁷⁸⁹⁻]"
    rf"|{_CALLED}|[A-Za-z](?![A-Za-z])(?<![A-Za-z]{{2}})){{0,60}})",
    re.DOTALL,
)
MAX_FORMULAS = 60
_ENDS = '.,;:? (-*"”'  # of a sentence, not of its formula
_BETWEEN = re.compile(  # two parts of a formula, or a formula and its blank
    r"[=<>≤≥≠≈:;?&]|,(?![0-9]{3})|\\\\|\\(?:text|mbox|textrm|textbf)\{[^{}]{0,200}\}"
    r"|\\(?:q?quad|[lg]t|[lg]eq?|[lg]eqslant|neq?|approx|equiv|implies|iff|to|Rightarrow|boxed"
    r"|square|Box|underline|ldots|dots)(?![A-Za-z])|\\_|__"
)


def key(node: Node) -> str:
    """Return a tree as text, the same for any order of terms and factors; without 0 + and 1 times.

    Nothing is multiplied out or put together: ``x^2 x^3`` is not ``x^5``.
    """
    group = _GROUPS.get(node.kind, "")
    if group:
        parts = sorted(sign + key(part) for sign, part in _split(node, group))
        parts = [part for part in parts if part[1:] != _NEUTRAL[group]]
        if len(parts) == 1 and parts[0][0] in "+*":
            return parts[0][1:]
        return f"({''.join(parts)})" if parts else _NEUTRAL[group]
    if node.kind == "pow" and exact(node.items[1]) == 1:
        return key(node.items[0])
    if node.kind == "num":
        value = node.value.value
        bottom = f"/{value.denominator:x}" if value.denominator > 1 else ""
        return f"{value.numerator:x}{bottom}"  # str() refuses more than 4300 digits
    node = turned(node) if node.kind == "relation" else node
    items = f"({','.join(map(key, node.items))})" if node.items else ""
    return f"{node.kind}:{node.value or ''}{items}"


def worked(node: Node) -> Node:
    """Return a formula with its numbers worked out and its squares and cubes as products."""
    value, group = exact(node), _GROUPS.get(node.kind, "")
    if value is not None or not node.items:
        return node if value is None else num(value)
    if node.kind == "pow" and exact(node.items[1]) in (2, 3):
        factors = [worked(node.items[0])] * int(exact(node.items[1]) or 0)
        return functools.reduce(lambda one, other: Node("mul", (one, other)), factors)
    if not group:
        return replace(node, items=tuple(map(worked, node.items)))
    parts: list[tuple[str, Node]] = []
    for sign, part in _split(node, group):
        part = worked(part)
        if group == "sum" and part.kind == "sub" and part.items[0] == num(0):  # minus a minus
            sign, part = "-" if sign == "+" else "+", part.items[1]
        parts.append((_KINDS[sign], part))
    found = num(group == "product")
    for kind, part in sorted(parts, key=lambda each: exact(each[1]) is None):  # numbers first
        found = Node(kind, (found, part))
        value = exact(found)
        found = found if value is None else num(value)
    return found


def _split(node: Node, group: str) -> list[tuple[str, Node]]:
    """Return terms or factors with their signs; a subtracted sum and a divisor are one each."""
    plus, minus = "+-" if group == "sum" else "*/"
    found, rest = [], [node]
    while rest:
        each = rest.pop()
        if _GROUPS.get(each.kind) != group:
            found.append((plus, each))
        elif each.kind == "neg":
            found.append((minus, each.items[0]))
        elif each.kind in ("sub", "div"):
            rest.append(each.items[0])
            found.append((minus, each.items[1]))
        else:
            rest += each.items
    return found


@functools.lru_cache(maxsize=256)
def formulas_of(problem: str) -> tuple[frozenset[str], tuple[Node, ...]]:
    """Return the keys of all formulas in a text and of their sides, and its values to work out."""
    keys, values = set[str](), dict[Node, None]()
    for match in list(FORMULA.finditer(problem[-MAX_CHARS:]))[:MAX_FORMULAS]:
        for tree in _trees_of(next(filter(None, match.groups()))):
            for part in (tree, *(tree.items if tree.kind in STRUCTURES | {"chain"} else ())):
                keys |= {key(part), key(worked(part))} if names_in(part) else {key(part)}
                if part.kind not in STRUCTURES | {"chain"} and _is_worked(part):
                    values[part] = None
    return frozenset(keys), tuple(values)


def _trees_of(formula: str) -> list[Node]:
    if whole := read(formula.strip().rstrip(_ENDS)).trees:
        return [*whole]
    parts = (part.strip().rstrip(_ENDS) for part in _BETWEEN.split(formula))
    return [tree for part in parts for tree in read(part).trees if _is_worked(tree)]


def _is_worked(node: Node) -> bool:
    if node.kind == "neg":
        return _is_worked(node.items[0])
    return node.kind not in ("num", "sym", "const")


def sides_of(answer: Node) -> list[Node]:
    """Return the sides of ``sqrt(50) = 5 sqrt(2)``, each with the name before them, or itself."""
    name, value = answer.items if answer.kind == "label" else (None, answer)
    if value.kind != "chain":
        return [answer]
    return [Node("label", (name, side)) if name else side for side in value.items]


def adds_operation(gold: Node, answer: Node) -> bool:
    """Tell whether an answer has variables or kinds of operations that the gold answer lacks."""
    golds, answers = [*_values(gold)], [*_values(answer)]
    if gold.kind == "label" and names_in(gold.items[1]) and answer.kind in ("label", "relation"):
        golds.append(gold.items[0])  # a line may be solved for either variable
    if golds and names_in(*answers) - names_in(*golds):
        return True
    if any(each.kind == "num" and each.value.decimals >= _MIN_DECIMALS for each in golds):
        return False
    return bool(golds) and not _kinds(*answers) - {""} <= _kinds(*golds, is_gold=True)


def _kinds(*nodes: Node, is_gold: bool = False) -> set[str]:
    """Return names and kinds of operations; nothing for sums, products and whole powers."""
    found: set[str] = set()
    for node in nodes:
        found |= _kinds(*node.items, is_gold=is_gold)
        power = exact(node.items[1]) if node.kind == "pow" else None
        if node.kind in ("root", "log", "degree", "abs", "floor", "ceil"):
            found.add("pi" if node.kind == "degree" else node.kind)
        elif node.kind == "div" and any(map(decimals, node.items)):  # 5.2/38.5
            found.add("decimal")
        elif node.kind in ("const", "sym"):
            found.add(str(node.value))
        elif node.kind == "fn":
            kind = "wave" if node.value in _WAVES else "log" if node.value == "ln" else "exp"
            found.add("arc" if node.value.startswith("arc") else kind)
        elif power is not None:
            found |= {"root"} if power.denominator > 1 else set()
        elif node.kind == "pow" and (is_gold or not names_in(node.items[1])):
            found.add("exp")
    return found


def repeats_question(
    gold: Node, answer: Node, problem: str, equal: Callable[[Node, Node], bool]
) -> bool:
    """Return whether an answer equal to ``gold`` is a formula of the problem, padded or not.

    Args:
        gold: The gold answer.
        answer: One that says the same.
        problem: The problem's text.
        equal: The comparison that they passed.
    """
    keys, formulas = formulas_of(problem)
    golds, answers = [*_values(gold)], [*_values(answer)]
    own = {key(each) for each in (gold, *golds)}
    if answer.kind == "relation" or not answers:
        answers.append(answer)
    room = max(map(_size, golds), default=_size(gold))
    is_open, is_work = not asks("rewriting", problem), asks("work", problem)
    for each in answers:
        text = key(each)
        if text in own or (is_open and _is_numeral(each)):
            continue
        if text in keys or (names_in(each) and key(worked(each)) in keys):
            return True
        if is_work and _leaves_work(golds, each):
            return True
        doubtful = [f for f in formulas if room < _size(each) >= _size(f)]
        if any(_is_equal(equal, own_gold, f) for f in doubtful for own_gold in golds):
            return True
    return False


def _leaves_work(golds: list[Node], answer: Node) -> bool:
    """Tell whether more is left than in the gold answer: terms to join, a larger root."""
    is_longer = bool(names_in(answer)) and _size(answer) > max(map(_size, golds), default=0)
    return is_longer or _radicand(answer) > max(map(_radicand, golds), default=Fraction(0))


def _radicand(node: Node) -> Fraction:
    """Return the largest number under a root; 0 without one."""
    power = exact(node.items[1]) if node.kind == "pow" else None
    is_root = node.kind == "root" or (power is not None and power.denominator > 1)
    own = abs(exact(node.items[0]) or Fraction(0)) if is_root else Fraction(0)
    return max([own, *map(_radicand, node.items)])


def _is_equal(equal: Callable[[Node, Node], bool], gold: Node, formula: Node) -> bool:
    try:
        return names_in(gold) <= names_in(formula) and equal(gold, formula)
    except NoValue:
        return False


def _values(node: Node) -> Iterator[Node]:
    """Yield a tree's values: without names and units, members of lists, the bounds of a name."""
    if node.kind in ("label", "quantity"):
        yield from _values(node.items[-1])
    elif node.kind == "relation":
        if any(each.kind == "sym" for each in node.items):
            yield from (
                each for each in node.items if not names_in(each) and not infinity_sign(each)
            )
        else:
            yield from node.items
    elif node.kind in STRUCTURES | {"chain"}:
        for item in node.items:
            yield from _values(item)
    elif not infinity_sign(node) and not str(node.value).startswith(r"\mathbb"):
        yield node


def _size(node: Node) -> int:
    if node.kind == "pow" and (exact(node.items[1]) or Fraction(1)).denominator > 1:
        return _size(node.items[0]) + 1  # as long as a root
    return sum(map(_size, node.items)) if node.items else 1


def _is_numeral(node: Node) -> bool:
    """Tell whether it is a number or a fraction in lowest terms, with a sign or not."""
    node = node.items[0] if node.kind == "neg" else node
    value = exact(node)
    if value is None:
        return False
    fraction = Node("div", (num(value.numerator), num(value.denominator)))
    return key(node) in {key(num(value)), key(fraction)}

r"""The formulas that a problem's text states, and a key by which to know one again.

A formula stands between marks (``$``, ``\[``, ``<math>``, backticks, an environment) or without
any. One that is no answer form as a whole is read in parts: ``12+3=?`` states ``12+3``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from recipe.hint.verify.maths.copies import is_worked
from recipe.hint.verify.maths.mentions import MAX_CHARS
from recipe.hint.verify.maths.reading import read
from recipe.hint.verify.maths.tree import STRUCTURES, Node, exact

_CALLED = (  # functions and commands as a text without marks has them
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
    r"(?:[-−–+*/^_().0-9 ×÷·⋅!√π°{}\[\]⁰¹²³⁴⁵⁶⁷⁸⁹⁻]|,(?=[0-9]{3}(?![0-9]))"
    rf"|{_CALLED}|[A-Za-z](?![A-Za-z])(?<![A-Za-z]{{2}})){{0,60}})",
    re.DOTALL,
)
MAX_FORMULAS = 60
_SUMS, _PRODUCTS = frozenset({"add", "sub", "neg"}), frozenset({"mul", "div"})
_ENDS = ".,;:? (-*"  # of a sentence, not of its formula
_FACTOR_BEHIND = re.compile(r"\)\s?(?=[0-9])")  # (1+2i)6, which is no answer form
_LAYOUT = re.compile(
    r"&|\\(?:begin|end)\{(?:aligned|align|array|gathered|gather|split|cases|equation)\*?\}"
    r"(?:\{[clr|]{1,9}\})?"
)
_GROUPING = re.compile(r"\\sqrt\s?\[[^\[\]]{1,9}\]|\\[{}]|[\[\]]")
_BETWEEN = re.compile(  # two parts of a formula, or a formula and its blank
    r"[=<>≤≥≠≈:;?]|,(?![0-9]{3})|\\\\|\\(?:text|mbox|textrm|textbf)\{[^{}]{0,200}\}"
    r"|\\(?:q?quad|[lg]t|[lg]eq?|[lg]eqslant|neq?|approx|equiv|implies|iff|to|Rightarrow|boxed"
    r"|square|Box|underline|ldots|dots)(?![A-Za-z])|\\_|__"
)


@functools.lru_cache(maxsize=256)
def formulas_of(problem: str) -> tuple[frozenset[str], tuple[Node, ...], tuple[Node, ...]]:
    """The keys of all formulas in a text and of their sides; its equations; its values."""
    keys, equations, values = set[str](), [], []
    for match in list(FORMULA.finditer(problem[-MAX_CHARS:]))[:MAX_FORMULAS]:
        for tree in _trees_of(next(filter(None, match.groups()))):
            if tree.kind in ("relation", "label"):
                equations.append(tree)
            for part in (tree, *(tree.items if tree.kind in STRUCTURES | {"chain"} else ())):
                keys.add(key(part))
                if part.kind not in STRUCTURES | {"chain"} and is_worked(part):
                    values.append(part)
    return frozenset(keys), tuple(equations), tuple(dict.fromkeys(values))


def _trees_of(formula: str) -> list[Node]:
    """All readings of a formula; of one that is not read those of its parts that hold work."""
    whole = _readings(formula)
    if whole:
        return whole
    plain = _with_round_brackets(_LAYOUT.sub(" ", formula))
    parts = [tree for part in _BETWEEN.split(plain) for tree in _readings(part)]
    return [tree for tree in parts if is_worked(tree)]


def _readings(text: str) -> list[Node]:
    text = text.strip().rstrip(_ENDS)
    return [*(read(text).trees or read(_FACTOR_BEHIND.sub(r")\\cdot ", text)).trees)]


def _with_round_brackets(text: str) -> str:
    r"""``2[3(4+1)-5]`` and ``2\{3(4+1)-5\}`` with the brackets that group in an answer."""
    marks = {"[": "(", r"\{": "(", "]": ")", r"\}": ")"}
    return _GROUPING.sub(lambda match: marks.get(match[0], match[0]), text)


def key(node: Node) -> str:
    """A tree as text, the same for any order of terms and factors; without 0 + and 1 times.

    Nothing is multiplied out or put together: ``x^2 x^3`` is not ``x^5``, nor ``a-(b-c)`` the same
    as ``a-b+c``. A product with one fraction is that fraction: ``1/2 x`` is ``x/2``.
    """
    if node.kind in _SUMS:
        return _joined(_terms(node), "0")
    if node.kind in _PRODUCTS:
        above, below = _factors(node)
        texts = [f"*{key(each)}" for each in above] + [f"/{key(each)}" for each in below]
        return _joined(texts, "1")
    if node.kind == "pow" and exact(node.items[1]) == 1:
        return key(node.items[0])
    if node.kind == "relation" and set(node.value) & {">", r"\ge"}:
        turned = {">": "<", r"\ge": r"\le", "<": ">", r"\le": r"\ge"}
        kinds = tuple(turned.get(kind, kind) for kind in reversed(node.value))
        node = Node("relation", node.items[::-1], kinds)
    if node.kind == "num":
        return (
            str(node.value.value) if node.value.value.numerator.bit_length() < 4000 else repr(node)
        )
    value = "" if node.value is None else str(node.value)
    return (
        f"{node.kind}:{value}({','.join(map(key, node.items))})"
        if node.items
        else f"{node.kind}:{value}"
    )


def _joined(signed: Iterable[str], neutral: str) -> str:
    kept = sorted(text for text in signed if text[1:] != neutral)
    if len(kept) == 1 and kept[0][0] in "+*":
        return kept[0][1:]
    return f"({''.join(kept)})" if kept else neutral


def _terms(node: Node) -> list[str]:
    """The keys of a sum's terms with their signs; a sum that is taken away is one term."""
    found, rest = [], [(node, "+")]
    while rest:
        each, sign = rest.pop()
        if sign == "-" or each.kind not in _SUMS:
            found.append(f"{sign}{key(each)}")
        elif each.kind == "neg":
            rest.append((each.items[0], "-"))
        else:
            rest += [(each.items[0], "+"), (each.items[1], "+" if each.kind == "add" else "-")]
    return found


def _factors(node: Node) -> tuple[list[Node], list[Node]]:
    """What a product multiplies and what it divides by."""
    above, below, fractions, rest = [], [], [], [node]
    while rest:
        each = rest.pop()
        if each.kind not in _PRODUCTS:
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

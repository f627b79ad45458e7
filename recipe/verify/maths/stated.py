r"""The formulas that a problem's text states.

A formula is written between marks (``$``, ``\[``, ``<math>``, backticks, an environment) or without
any. One that is not an answer form as a whole is read in parts: ``12+3=?`` states ``12+3``.
"""

from __future__ import annotations

import functools
import re

from recipe.verify.maths.copies import is_worked
from recipe.verify.maths.keys import key
from recipe.verify.maths.mentions import MAX_CHARS
from recipe.verify.maths.reading import read
from recipe.verify.maths.tree import STRUCTURES, Node

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
_FACTOR_AFTER = re.compile(r"\)\s?(?=[0-9])")  # (1+2i)6, which is not an answer form
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
    """Return the keys of all formulas in a text and of their sides; its equations; its values."""
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
    """Return a formula's readings or, if it has none, those of its parts that hold work."""
    whole = _readings(formula)
    if whole:
        return whole
    plain = _with_round_brackets(_LAYOUT.sub(" ", formula))
    parts = [tree for part in _BETWEEN.split(plain) for tree in _readings(part)]
    return [tree for tree in parts if is_worked(tree)]


def _readings(text: str) -> list[Node]:
    text = text.strip().rstrip(_ENDS)
    return [*(read(text).trees or read(_FACTOR_AFTER.sub(r")\\cdot ", text)).trees)]


def _with_round_brackets(text: str) -> str:
    r"""Write ``2[3(4+1)-5]`` and ``2\{3(4+1)-5\}`` with the brackets that group in an answer."""
    marks = {"[": "(", r"\{": "(", "]": ")", r"\}": ")"}
    return _GROUPING.sub(lambda match: marks.get(match[0], match[0]), text)

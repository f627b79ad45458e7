r"""Points left out of a formula, ``x + 2, x \ne 2``, where the problem's has no value anyway."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from recipe.verify.maths.domains import BOUND
from recipe.verify.maths.operations import nodes_of
from recipe.verify.maths.reading import read
from recipe.verify.maths.stated import formulas_of
from recipe.verify.maths.tree import Node, exact
from recipe.verify.maths.values import placed
from recipe.verify.maths.wrappers import GAP

_NE = r"\s?(?:\\neq?(?![a-z])|≠)\s?"
_POINT = r"(?:-|\\pm\s?)?(?:[0-9]{1,9}(?:/[0-9]{1,9})?|\\[dt]?frac\{-?[0-9]{1,9}\}\{[0-9]{1,9}\})"
_EXCEPT = re.compile(  # x \ne 0 after a formula of x; for n, a whole number, a point may matter
    rf"(?:{GAP}|[,;(]|\\text\{{\s?,?\s?(?:for|where|with|when|if)(?: all)?\s?\}}){{1,9}}"
    rf"(?P<points>(?P<letter>[abt-z]){_NE}{_POINT}(?:(?:,|{GAP}|\\text\{{\s?(?:and|or)\s?\}}){{1,4}}"
    rf"(?:(?P=letter){_NE})?{_POINT}){{0,4}})\)?\.?\Z"
)
_NO_FORMULA = re.compile(rf"[=,;]|\\\{{|\\text|{BOUND.pattern}")
_REACH = 800  # characters at the end of an answer: no list of points is longer


def without_holes(text: str, letters: Collection[str], problem: str) -> str:
    r"""Return a formula without its excluded points, ``x \ne 0``, where they tell nothing.

    They have to be points at which the problem's formulas, or the answer itself, divide by 0. In
    a family or a set they matter: ``(t, 2t), t \ne 0``.

    Args:
        text: The answer.
        letters: Those of the problem's formulas; ``x`` must be one of them.
        problem: The problem's text.
    """
    found = _EXCEPT.search(text, max(0, len(text) - _REACH))
    if found is None or found["letter"] not in letters:
        return text
    rest = text[: found.start()]
    names = re.sub(r"\\[A-Za-z]+|[A-Za-z]{4,}", " ", rest)
    if found["letter"] not in names or _NO_FORMULA.search(rest):
        return text
    formulas = (*formulas_of(problem)[2], *read(rest).trees)
    return rest if _are_holes(found["points"], found["letter"], formulas) else text


def _are_holes(points: str, letter: str, formulas: Sequence[Node]) -> bool:
    """Tell whether some formula divides by 0 at each of the points."""
    bottoms = {bottom for formula in formulas for bottom in _bottoms(formula)}
    trees = read(points).trees
    relations = trees[0].items if trees and trees[0].kind == "list" else trees[:1]
    values = [exact(each.items[1]) for each in relations if each.kind == "relation"]
    return len(values) == len(relations) > 0 and all(
        value is not None and any(exact(placed(bottom, [letter], value)) == 0 for bottom in bottoms)
        for value in values
    )


def _bottoms(formula: Node) -> Iterator[Node]:
    """Yield what a formula divides by and takes logarithms of."""
    for node in nodes_of(formula):
        if node.kind == "div":
            yield node.items[1]
        elif node.kind == "log" or (node.kind == "fn" and node.value == "ln"):
            yield node.items[0]
        elif node.kind == "pow" and (exact(node.items[1]) or 0) < 0:
            yield node.items[0]

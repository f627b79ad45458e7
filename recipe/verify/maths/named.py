"""What the problem asks for by name, ``$m+n$`` or ``$p$ and $q$``, and the order it gives to names.

Left of ``=`` an answer may repeat what is asked for, ``m+n = 116``; anything else there has to be a
name. Names are taken in the order in which the problem lists them, ``$(m,b)$`` or ``$w, d, a$``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from recipe.verify.maths.copies import FORMULA, MAX_FORMULAS, key
from recipe.verify.maths.question import MAX_CHARS
from recipe.verify.maths.reading import read
from recipe.verify.maths.tree import Node, folded, is_name

_WORDS = (
    r"(?:(?:the|all|both|possible|exact|numerical|real|positive|maximum|minimum|largest|smallest"
    r"|greatest|least|integers?|numbers?|constants?|coefficients?|two|three|angles?|lengths?|digits?"
    r"|expression|quantity|sum|variables?|parameters?)\s{1,3})*"
)
_VERBS = (
    r"(?<![A-Za-z])(?:[Ff]ind|[Dd]etermine|[Cc]ompute|[Cc]alculate|[Ee]valuate|[Ww]hat"
    r"|(?<!for )[Ww]hich)"
)
_VERB = re.compile(rf"{_VERBS}(?![a-z])")
_ASKING = re.compile(
    rf"{_VERBS}(?:\s(?:is|are))?\s{{1,3}}{_WORDS}(?:values?\s+of\s{{1,3}}{_WORDS})?\Z"
)
_MAX_BEFORE = 120  # characters of a question before its formula
_BETWEEN = re.compile(r"[$)\]\\]*(?:,\s*(?:and\s*)?|\s+and\s+)(?:both\s+)?[$(\[\\]*")
_NO_NAME = frozenset("relation chain label tuple list set word quantity".split())


class _Listing(NamedTuple):
    """Formulas that a problem lists side by side, in brackets or not."""

    keys: tuple[str, ...]
    is_bracket: bool
    is_asked: bool


@functools.lru_cache(maxsize=256)
def _listings(problem: str) -> tuple[_Listing, ...]:
    text = problem[-MAX_CHARS:]
    last_verb = max([match.start() for match in _VERB.finditer(text)], default=0)
    found: list[_Listing] = []
    listed: list[str] = []
    is_asked, end = False, 0
    for match in [*FORMULA.finditer(text)][-MAX_FORMULAS:]:
        raw = next(filter(None, match.groups())).strip()
        glue = text[end : match.start()]
        if not listed or not (
            glue.isspace() and text[:end].endswith(",$") or _BETWEEN.fullmatch(glue)
        ):
            found.append(_Listing(tuple(listed), False, is_asked))
            before = text[max(end, match.start() - _MAX_BEFORE) : match.start()]
            is_asked = last_verb < match.start() and _ASKING.search(before) is not None
            listed = []
        trees = read(raw.rstrip(".,;? (-")).trees
        tree = trees[-1] if trees else Node("relation")
        brackets = tree.items[0] if tree.kind == "label" else tree
        if brackets.kind == "tuple" and brackets.value == "()":
            found.append(_Listing(tuple(map(key, brackets.items)), True, is_asked))
        members = tree.items if tree.kind == "list" else (tree,)
        listed += ["" if each.kind in _NO_NAME else key(each) for each in members]
        end = match.end()
    found.append(_Listing(tuple(listed), False, is_asked))
    return tuple(each for each in found if each.keys and all(each.keys))


def _asked(problem: str) -> tuple[str, ...]:
    """Return the keys of what the last question lists; empty where it asks in words."""
    found = [each.keys for each in _listings(problem) if each.is_asked > each.is_bracket]
    return found[-1] if found else ()


def asks_for_each(values: Node, problem: str) -> bool:
    """Return whether the question lists as many different things as there are values."""
    asked = _asked(problem)
    return 1 < len(asked) == len(set(asked)) == len(values.items)


def with_names(answer: Node, gold: Node, problem: str) -> Node:
    """Return ``m+n = 116`` as name and value where the problem asks for m+n."""
    if any(each.kind == "relation" for each in (gold, *gold.items)):
        return answer
    if answer.kind == "list":
        parts = tuple(with_names(item, gold, problem) for item in answer.items)
        return Node("list", parts, answer.value)
    if answer.kind != "relation" or answer.value != ("=",) or is_name(answer.items[0]):
        return answer  # x = x^2 is not a name and its value
    return Node("label", answer.items) if key(answer.items[0]) in _asked(problem) else answer


def arranged(values: Node, gold: Node, problem: str) -> Node | None:
    """Return named values in the problem's order, else the alphabet's; ``None`` without either."""
    names = [item.items[0] for item in values.items if item.kind == "label"]
    if len(names) < len(values.items):
        return values if _is_sorted(names) else None
    order = _order(names, gold, problem)
    parts = {key(item.items[0]): item for item in values.items}
    return Node(values.kind, tuple(parts[each] for each in order), values.value) if order else None


def _order(names: Sequence[Node], gold: Node, problem: str) -> tuple[str, ...]:
    """Return the keys as the problem lists them: first as asked for; for a tuple, brackets first.

    Without such a list: in alphabetical order, if they are written so; else none.
    """
    written = tuple(map(key, names))
    is_tuple = gold.kind in ("tuple", "matrix")
    found = [each for each in _listings(problem) if len(each.keys) == len(set(each.keys))]
    found = [each for each in reversed(found) if set(each.keys) == set(written)]
    if found and len(set(written)) == len(written):
        return min(found, key=lambda e: (is_tuple and not e.is_bracket, not e.is_asked)).keys
    return written if _is_sorted(names) else ()


def marks(node: Node) -> list[str]:
    """Return names, units or nouns that differ for each of the members; else nothing."""
    found = []
    for item in node.items:
        if item.kind == "label":
            found.append(_plain(item.items[0]).split("_")[0].strip("\\"))
        elif item.kind == "quantity":
            found.append(item.value.noun or repr(item.value.unit))
    return found if len(set(found)) == len(node.items) else []


def _plain(name: Node) -> str:
    return str(name.value) if name.kind in ("sym", "word", "const") else folded(name) or key(name)


def _is_sorted(names: Sequence[Node]) -> bool:
    """Tell whether names are in their usual order: r, theta and x, y; b, m have no such order."""
    plain = [_plain(name).strip("\\") for name in names]
    is_near = all(len(a + b) > 2 or ord(b) - ord(a) <= 3 for a, b in pairwise(plain))
    return is_near and plain == sorted(plain)

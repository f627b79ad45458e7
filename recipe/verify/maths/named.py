"""What the problem asks for by name, ``$m+n$`` or ``$p$ and $q$``, and the order it gives to names.

Left of ``=`` an answer may repeat what is asked for, ``m+n = 116``; anything else there has to be a
name. Names are taken in the order in which the problem lists them, ``$(m,b)$`` or ``$w, d, a$``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from recipe.verify.maths import questions
from recipe.verify.maths.asked import question
from recipe.verify.maths.keys import key
from recipe.verify.maths.mentions import MAX_CHARS
from recipe.verify.maths.reading import Reading, read
from recipe.verify.maths.stated import FORMULA, MAX_FORMULAS
from recipe.verify.maths.tree import Node, exact, is_infinite, is_name, is_sorted, names_in

_WORDS = (
    r"(?:(?:the|all|both|possible|exact|numerical|real|complex|positive|negative|nonnegative|prime|"
    r"maximum|minimum|largest|smallest|greatest|least|integers?|numbers?|constants?|coefficients?|"
    r"following|sum|difference|product|quotient|ratio|quantity|expression|function|polynomial|"
    r"equation|vector|matrix|angles?|lengths?|two|three|four|rational|natural|whole|unique|"
    r"variables?|parameters?|unknowns?|digits?|primes?|terms?)\s{1,3})*"
)
_VERBS = (
    r"(?:find|determine|compute|calculate|evaluate|what (?:is|are|was|were|does|do|must)|"
    r"(?:what|which)(?= (?:real |integer )?values? ))(?![a-z])"
)
_ASKING = re.compile(
    rf"(?<![a-z])(?:{_VERBS}|give|state|express)\s{{1,3}}{_WORDS}(?:values?\s+of\s{{1,3}}{_WORDS})?$",
    re.IGNORECASE,
)
_VERB = re.compile(rf"(?<![a-z]){_VERBS}", re.IGNORECASE)
_MAX_BEFORE = 120  # characters of a question before its formula
_BETWEEN = re.compile(r"(?:,\s*(?:and\s*)?|\s+and\s+)(?:both\s+)?", re.IGNORECASE)
_MAX_ANSWER = 1000  # characters of an answer with a name that is not read
_MAX_SIDES = 6
_AREA = re.compile(r"\[[A-Z]{3,6}\]")
_USUAL = {
    "abs": re.compile(r"modul|magnitude|absolute value|\bnorm|length|distance"),
    "inverse": re.compile(r"\binvers"),
    "derivative": re.compile(r"derivative|[Dd]ifferentiate"),
    "remainder": re.compile(r"\bremainder (?:when|of|on|upon|after)\b"),
}
_NO_NAME = frozenset("relation chain label tuple list set word quantity".split())


class _Listing(NamedTuple):
    """Formulas that a problem lists side by side, in brackets or not."""

    keys: tuple[str, ...]
    is_bracket: bool
    is_asked: bool


@functools.lru_cache(maxsize=256)
def _listings(problem: str) -> tuple[_Listing, ...]:
    """Return all listings in a problem's text, in its order."""
    text = problem[-MAX_CHARS:]
    verbs = [match.start() for match in _VERB.finditer(text)]
    found: list[_Listing] = []
    listed: list[str] = []
    is_asked, end = False, 0
    for match in [*FORMULA.finditer(text)][-MAX_FORMULAS:]:
        raw = next(filter(None, match.groups())).strip()
        inside = raw.rstrip(".,;? (-")
        if not listed or not _BETWEEN.fullmatch(_glue(text, end, match.start())):
            found.append(_Listing(tuple(listed), False, is_asked))
            before = text[max(end, match.start() - _MAX_BEFORE) : match.start()]
            is_last = not verbs or verbs[-1] < match.start()
            is_asked = is_last and _ASKING.search(before) is not None
            listed = []
        reading = read(inside)
        tree = reading.trees[-1] if reading.trees else Node("unread", value=reading.text)
        brackets = tree.items[0] if tree.kind == "label" else tree
        if brackets.kind == "tuple" and brackets.value == "()":
            found.append(_Listing(tuple(map(key, brackets.items)), True, is_asked))
        members = tree.items if tree.kind == "list" else (tree,)
        listed += ["" if each.kind in _NO_NAME else key(each) for each in members]
        end = match.end()
    found.append(_Listing(tuple(listed), False, is_asked))
    return tuple(each for each in found if each.keys and all(each.keys))


def _glue(text: str, start: int, end: int) -> str:
    """Return the text between two formulas, with the comma inside the first: ``$a,$ and $b$``."""
    before = text[max(0, start - 3) : start].rstrip("$)]\\ ")
    between = text[start:end]
    return f",{between}" if before.endswith(",") and "," not in between else between


def _asked(problem: str) -> tuple[str, ...]:
    """Return the keys of what the last question lists; empty where it asks in words."""
    found = [each.keys for each in _listings(problem) if each.is_asked > each.is_bracket]
    return found[-1] if found else ()


def asks_for_each(values: Node, problem: str) -> bool:
    """Return whether the question lists as many different things as there are values."""
    asked = _asked(problem)
    return (
        1 < len(asked) == len(set(asked)) == len(values.items)
        and not any(item.kind in ("tuple", "list", "label") for item in values.items)
    )  # fmt: skip


def may_be_interval(gold: Node, values: Node, problem: str) -> bool:
    """Return whether ``(1, 2)`` may be an interval, so that the list of its ends is not the same.

    It is if the problem asks for intervals, or for the values of one thing; but two values with
    names are not an interval.
    """
    if len(gold.items) != 2:
        return False
    if any(map(is_infinite, gold.items)) or questions.asks_for_interval(problem):
        return True
    has_names = all(item.kind == "label" for item in values.items)
    is_pair = questions.asks_for_point(problem) or asks_for_each(gold, problem)
    return questions.asks_for_range(problem) and not has_names and not is_pair


def are_one_but_for_an_extreme(name: Node, other: Node) -> bool:
    r"""Return whether they are ``k`` and ``k_{\max}``, either of which a problem may use."""
    names = [str(each.value) for each in (name, other)]
    short, long = sorted(names, key=len)
    is_symbol = name.kind == other.kind == "sym"
    return is_symbol and long in (rf"{short}_\max", rf"{short}_\min")


def tell_order(label: Node, gold: Node, problem: str) -> bool:
    """Return whether the problem's names, ``(x, y) = (1, 2)``, say which number is which."""
    names = label.items[0]
    is_of_numbers = not any(item.kind in ("tuple", "set", "list", "label") for item in gold.items)
    if gold.kind != "list" or not is_of_numbers or names.kind != "tuple":
        return False
    problem = re.sub(r"[\s{}]", "", problem)
    letter = r"(?<![A-Za-z\\]){}(?![A-Za-z])"
    heads = [each.items[0] if each.kind == "mul" else each for each in names.items]  # f of f(n)
    return all(re.search(letter.format(re.escape(each.value)), problem) for each in heads)


def read_answer(text: str, gold: Reading, problem: str) -> Reading:
    """Read an answer; of ``f(1,2) = 5`` the 5 where the problem asks for f(1,2), itself unread."""
    reading = read(text)
    if reading.trees or not gold.trees or len(text) > _MAX_ANSWER or "=" not in text:
        return reading
    for place in [match.start() for match in re.finditer("=", text)][:_MAX_SIDES]:
        name, value = text[:place], text[place + 1 :]
        if name.count("$") % 2 and value.count("$") % 2:
            name, value = name.replace("$", "", 1), value.rstrip().removesuffix("$")
        if key(Node("unread", value=read(name).text)) in _asked(problem):
            return read(value)
    return reading


def may_stand_left(name: Node, problem: str) -> bool:
    """Return whether the left side of ``=`` is a name, or what the problem asks for.

    A function and an area have to be the problem's own: ``v(t)``, ``[ABC]``.
    """
    is_area = name.kind == "sym" and _AREA.fullmatch(name.value) is not None
    if is_name(name) and not is_area:
        return True
    if not names_in(name) or not problem:
        return False  # 4 = 5
    asked = _asked(problem)
    form = "" if asked else _usual_form(name)
    if form and _USUAL[form].search(question(problem)):
        return True
    if asked or not (is_area or _is_applied(name)):
        return key(name) in asked
    text = name.value if is_area else "{}({})".format(*(_written(item) for item in name.items))
    return text in re.sub(r"\s|\\(?:left|right)", "", problem[-MAX_CHARS:])


def without_form(gold: Node, answer: Node) -> Node:
    r"""Return the formula of ``f^{-1}(x) = x/2`` or ``f'(x) = 2x`` where the answer has no name.

    ``y`` is not a name for an inverse, but ``y = 2x`` says nothing of ``dy/dx``.
    """
    form = _usual_form(gold.items[0]) if gold.kind == "relation" and gold.value == ("=",) else ""
    is_y = answer.kind == "label" and answer.items[0] == Node("sym", value="y")
    is_bare = answer.kind not in ("label", "relation", "list") or (is_y and form == "inverse")
    return gold.items[1] if form in ("inverse", "derivative") and is_bare else gold


def _usual_form(name: Node) -> str:
    """Name the thing that is written like this and asked for in words: ``|z|``, ``y'``."""
    head = name.items[0] if name.kind == "mul" else name
    if name.kind == "abs":
        return "abs"
    if head.kind == "pow" and head.items[0].kind == "sym" and exact(head.items[1]) == -1:
        return "inverse"
    if name.kind == "div" and all(_is_differential(item) for item in name.items):
        return "derivative"
    if _is_applied(name) and head.value in ("r", "R") and name.items[1].kind == "sym":
        return "remainder"
    return "derivative" if head.kind == "sym" and head.value.endswith("'") else ""


def _is_differential(node: Node) -> bool:
    return node.kind == "mul" and node.items[0] == Node("sym", value="d")


def _is_applied(node: Node) -> bool:
    is_pair = node.kind == "mul" and len(node.items) == 2 and node.value is None
    return is_pair and node.items[0].kind == "sym" and node.items[1].kind in ("sym", "num")


def _written(node: Node) -> str:
    return str(node.value.value if node.kind == "num" else node.value)


def with_names(answer: Node, gold: Node, problem: str) -> Node:
    """Return ``m+n = 116`` as name and value where m+n is asked for, ``n+1 = k`` as those of k."""
    if gold.kind == "label" and answer.kind == "relation" and answer.value == ("=",):
        name, (value, last) = gold.items[0], answer.items
        if last == name and name.kind == "sym" and name.value not in names_in(value):
            return Node("label", (name, value))
    if any(each.kind == "relation" for each in (gold, *gold.items)):
        return answer
    if answer.kind == "list":
        parts = tuple(with_names(item, gold, problem) for item in answer.items)
        return Node("list", _by_point(parts, gold) or parts, answer.value)
    if answer.kind != "relation" or answer.value != ("=",) or is_name(answer.items[0]):
        return answer  # x = x^2 is not a name and its value
    return Node("label", answer.items) if may_stand_left(answer.items[0], problem) else answer


def _by_point(parts: tuple[Node, ...], gold: Node) -> tuple[Node, ...]:
    """Return the points of ``x = 1, y = 2, x = 3, y = 4`` if there are as many gold points."""
    sizes = {len(item.items) if item.kind == "tuple" else 0 for item in gold.items}
    size = sizes.pop() if gold.kind in ("list", "set") and len(sizes) == 1 else 0
    if not size or len(parts) != size * len(gold.items):
        return ()
    points = [parts[at : at + size] for at in range(0, len(parts), size)]
    names = [{key(each.items[0]) for each in point if each.kind == "label"} for point in points]
    if len(names[0]) != size or any(each != names[0] for each in names):
        return ()
    return tuple(Node("list", point) for point in points)


def arranged(values: Node, gold: Node, problem: str) -> Node | None:
    """Return named values in the problem's order, else the alphabet's; ``None`` without either."""
    names = [item.items[0] for item in values.items if item.kind == "label"]
    if len(names) < len(values.items):
        return values if is_sorted([_plain(name) for name in names]) else None
    order = _order(names, gold, problem)
    parts = {key(item.items[0]): item for item in values.items}
    return Node(values.kind, tuple(parts[each] for each in order), values.value) if order else None


def unnamed(label: Node, gold: Node, problem: str) -> Node | None:
    """Return the values of ``(x, y) = (1, 2)`` arranged likewise; of another label its value.

    ``None`` where the problem may not ask for the name, or the name tells no order.
    """
    names, values = label.items
    if not may_stand_left(names, problem):
        return None
    if gold.kind in ("tuple", "matrix") and values.kind == "list":
        return None  # x = 1, 2 is not a pair
    if label.value == r"\in" and values.kind == "tuple":  # x in (1, 2)
        is_point = gold.kind == "tuple" and questions.asks_for_point(problem)
        if is_point or (gold.kind == "list" and len(values.items) == 2):
            return None
    if names.kind != "tuple":
        is_list = names.kind != "word" and values.kind == "list"
        is_of_all = is_list and asks_for_each(gold, problem)
        return None if is_of_all else values  # p = 3, p = 4 leaves q out
    order = _order(names.items, gold, problem)
    written = tuple(map(key, names.items))
    if values.kind == "tuple" and len(values.items) != len(written):
        return None
    if order == written:
        return values
    if not order or values.kind != "tuple":
        return None
    parts = dict(zip(written, values.items, strict=True))
    return Node(values.kind, tuple(parts[each] for each in order), values.value)


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
    return written if is_sorted([_plain(name) for name in names]) else ()


def _plain(name: Node) -> str:
    return str(name.value) if name.kind in ("sym", "word", "const") else key(name)

r"""Tell whether what surrounds a box, in the same formula, changes the value inside it.

``$-\boxed{5}$``, ``$\boxed{5}\pi$`` and ``\frac{\boxed{5}}{2}`` do not answer 5: a model that is
not sure of a sign or factor would leave it out of the box. The side of the formula is read with a
letter in the box's place; in prose, only what touches the box (``the answer is -\boxed{5}``).
Units, degrees, percent, words and punctuation change nothing, but a scale that the problem does not
have does (``\boxed{5} million``). Nothing is held against a box that is one term or exponent of
many, has variables around it (``\boxed{3}x^2``), or is in text that cannot be read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from recipe.verify.maths.reading import rational, read
from recipe.verify.maths.tree import Node, exact, folded, names_in, num
from recipe.verify.maths.units import Unit
from recipe.verify.maths.words import NUMBERS, Suffix

_SMALLER = {  # words for units, and for those that may follow them
    "days?": "hours?",
    r"hours?|hrs?\.?|h": "minutes?|mins?",
    r"minutes?|mins?\.?": "seconds?|secs?|s",
    r"feet|foot|ft\.?": r"inch(?:es)?|in(?=[.$}]|\s*\Z)",
    r"pounds?|lbs?\.?": "ounces?|oz",
    "dollars?": "cents?",
}
_REACH = 80  # characters that are looked at on each side
_LETTER = r"\mathscr{B}"
_BOX = Node("sym", value=_LETTER)
_RELATION = (
    r"=|<|>|\\(?:approx|equiv|ne|neq|leq?|geq?|in|to|Rightarrow|Longrightarrow|implies|iff"
    r"|therefore|q?quad)(?![A-Za-z])|&|\\\\"
)
_PROSE = r"\\\)|\\\]|(?<!\\)[.;:!?]\s"  # a formula or sentence that ends
_BEGIN = re.compile(rf"(?<!\\)\$\$?|\\\[|\\\(|{_PROSE}|{_RELATION}")
_END = re.compile(rf"[.,;:]\s|(?<!\\)\$|\\\]|\\\)|\n|\\end\{{|\\tag|{_RELATION}")
_WORD = re.compile(r"\\(?:text|mbox|math|operatorname)[a-z]{0,6}\s?\{|(?<![A-Za-z\\])[A-Za-z]{2}")
_TEX_GAP = r"(?:\\[,!;: ]|~|\{\}|\\text\{\s?){0,3}"
_DIGIT = re.compile(  # \boxed{5},000, \boxed{5}\,000, \boxed{5}e3
    rf"\{{?[0-9]|{_TEX_GAP}[0-9]|(?:[.,]|\{{,\}})[0-9]|[eE][-+]?[0-9]|[½¼¾⅓⅔]|:[0-9]{{2}}(?![0-9])"
)
_THOUSANDS_BEFORE = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:,|\{,\})\Z")  # 1,\boxed{500}
_POINT_BEFORE = re.compile(r"(?:(?<![A-Za-z0-9.,)\]}%!?])|(?<![0-9])0)\.(?:\\overline\{)?\Z")
# Marks between a word, formula or number and the point of a sentence: **Answer**., $x=5$.
_STOP_BEFORE = re.compile(r"[A-Za-z0-9.,)\]}%!?:](?:[*_\"'`”’]{1,3}|\${1,2})\.\Z")
_LOOK = re.compile(r"\\(?:text|math|boldsymbol|color\{[a-z]{1,20}\})[a-z]{0,6}\s?\{\s?\Z")
# Another box before this one, in one term with it.
_BOX_BEFORE = re.compile(
    r"\\boxed\s?\{[^{}]{0,60}\}\s?(?:[-+/:|]|\\(?:cdot|times|div|vee|lor|mid)|\}\s?\{)\s?\Z"
)
_DOLLARS = re.compile(r"(?<!\\)\$\$?")
_SCALE = re.compile(
    r"(?:[\s$~]|\\[,;: )]){0,9}(?:\\text\{\s?)?"
    r"(hundred|thousand|million|billion|trillion|dozen|squared|cubed|factorial)(?![a-z])"
)
_GAP = r"(?:[ \t~$*},&]|\\[,;: )]|\\text(?:bf)?\{){0,6}"
_SMALL = rf"(?:[1-9][0-9]{{0,3}}(?:\.[0-9]{{1,3}})?|(?:{'|'.join(NUMBERS)})[a-z-]{{0,6}})"
_MORE = r"(?![A-Za-z]|\s(?:more|less|fewer|longer|later|earlier|faster)\b)"
_REST = re.compile(  # \boxed{2} hours and 30 minutes, \boxed{2} and a half hours
    rf"{_GAP}(?:(?:[a-z]{{1,9}}{_GAP})?and (?:an?|one) (?:half|quarter)\b(?! of)"
    rf"|(?:and|plus|\+|(?<=[a-z]\}}\}}){_GAP}){_GAP}{_SMALL}{_GAP}"
    rf"(?:{'|'.join(_SMALLER.values())}){_MORE}|"
    + "|".join(
        rf"(?:{unit})(?![A-Za-z]){_GAP}(?:and|plus|\+)?{_GAP}{_SMALL}{_GAP}(?:{smaller}){_MORE}"
        for unit, smaller in _SMALLER.items()
    )
    + ")",
    re.IGNORECASE,
)
_MAYBE = r"(?: ?(?:maybe|possibly|perhaps|also|even|option|choice|answer)){0,3}"
_OTHER = re.compile(  # \boxed{5} or 7
    r"[\s$*]{0,9}(?:\\[)\]])?[ \t,;(]{0,3}(?:\\text\{\s?)?"
    rf"(?:\s?(?:or|and)\b|\\(?:lor|vee)(?![a-z])|(?<=[,;/])|/|(?<=\()(?=maybe|possibly)){_MAYBE}\s?\}}?"
    r"[ \t$*(]{0,9}(?:\\text\{\s?)?(?:(?P<name>[a-zA-Z])\s?=\s?)?"
    r"(?P<value>-?[0-9](?:[.,/]?[0-9]){0,20}+|-?\\[dt]?frac\{[0-9]{1,9}\}\{[0-9]{1,9}\}|[A-Z])"
    r"(?=\s*(?:[.,$})*]|\\[)\]]|\n|\Z))"
)
_NAMED = re.compile(r"([A-Za-z])\s?=\s?(?:\$|\\[(\[])?\s?\Z")
_CHANGING = frozenset("neg mul div pow root fn log fact binom floor ceil".split())
_LIST_MARK = re.compile(
    r"(?:\A|\b(?:step|case|part|problem|question|method)\s)[1-9][0-9]?[.)]\Z", re.IGNORECASE
)


def changes_value(response: str, start: int, end: int, problem: str = "") -> bool:
    r"""Return whether a sign, factor, power, digit or scale is at the box ``[start:end]``."""
    inside = response[start:end].partition("{")[2][:-1].strip()
    if _is_part_of_number(response, start, end, inside, problem):
        return True
    for _ in range(2):
        if look := _LOOK.search(response, max(0, start - _REACH), start):
            start, end = look.start(), end + (response[end : end + 1] == "}")
    left = _before(response, start)
    if left and say_the_same(left, inside):
        left = ""  # x = 18 \boxed{18}
    right = _END.split(response[end : end + _REACH], maxsplit=1)[0]
    right = _WORD.split(right, maxsplit=1)[0].rstrip(" .,;:!*")
    if right.lstrip().startswith(("(", "[", "**")) or say_the_same(right, inside):
        right = ""  # a remark
    if not left.strip() and not right.strip():
        return False
    sides = [f"{left} {_LETTER} {right}"]
    if left and right:
        sides.append(f"{left} {_LETTER}")
    for side in sides:
        if trees := read(side).trees:
            return _is_scaled(trees[0]) is True
    return False


def _is_part_of_number(response: str, start: int, end: int, inside: str, problem: str) -> bool:
    """Return whether digits, a scale or another box make one number with what touches it."""
    scale = _SCALE.match(response, end)
    if scale and problem and scale[1] not in problem.lower():
        return True
    before = response[max(0, start - _REACH) : start]
    is_group = re.match(r"[0-9]{3}(?![0-9])", inside) and _THOUSANDS_BEFORE.search(before)
    is_decimal = _POINT_BEFORE.search(before) and not _ends_sentence(response, start)
    if is_group or is_decimal or _BOX_BEFORE.search(before):
        return True
    return any(each.match(response, end) for each in (_DIGIT, _REST))


def _ends_sentence(response: str, start: int) -> bool:
    r"""Tell whether the point right before a box ends a sentence: ``$x = 5$.``, ``**Answer**.``."""
    before = _STOP_BEFORE.search(response, max(0, start - _REACH), start)
    return before is not None and ("$" not in before[0] or not _is_in_formula(response, start))


def _is_in_formula(response: str, start: int) -> bool:
    """Tell whether a formula between dollars has begun in the paragraph and not ended."""
    return len(_DOLLARS.findall(response[:start].rpartition("\n\n")[2])) % 2 == 1


def has_other(response: str, start: int, end: int, inside: str) -> bool:
    r"""Return whether quite another number or letter is offered after a box: ``\boxed{B} or C``.

    A number with another name is not one, ``\boxed{x=5}, y=7``, nor is a near one (40% or 2/5).
    """
    other = _OTHER.match(response, end)
    if other is None or len(inside) > _REACH:
        return False
    if other["value"].isalpha():
        return inside.isalpha() and other["value"] != inside
    before = _NAMED.search(response, max(0, start - _REACH), start)
    trees = read(inside).trees
    is_named = bool(trees) and trees[0].kind == "label"
    name, value = trees[0].items if is_named else (None, trees[0] if trees else None)
    own = str(name.value) if name else before[1] if before else ""
    if own and other["name"] and own != other["name"]:
        return False
    value, number = exact(value) if value else None, rational(other["value"])
    if value is None or number is None:
        return False
    is_whole = value.denominator == number.denominator == 1
    return value != number if is_whole else abs(value - number) * 50 > abs(value)


def say_the_same(side: str, inside: str) -> bool:
    r"""Return whether the text beside a box repeats its value: ``\$18``, ``18\,``, ``(18.00)``."""
    side = side.lstrip(" $~").rstrip(" ($\\~")
    if side == inside or not side or len(inside) > _REACH:  # reading takes longer than that
        return side == inside
    trees = read(side).trees[:1] + read(inside).trees[:1]
    if len(trees) < 2:
        return False
    one, other = map(_parts, trees)
    return one.base == other.base and _are_equal(one.value, other.value)


def without_repeats(boxes: Sequence[tuple[str, str]]) -> list[str]:
    """Return what boxes side by side say, each with its name, without repeats of the last one.

    A box that only says the last value again is left out, and the one that has a unit is kept. If
    two such boxes contradict each other, none is left out.
    """
    *others, last = boxes
    again = [box for box in others if box[0] == last[0] and _repeats(box[1], last[1])]
    if not all(_repeats(one[1], two[1]) for one, two in itertools.combinations(again, 2)):
        again = []
    with_unit = (box for box in (last, *reversed(again)) if again and _has_unit(box[1]))
    kept = [*(box for box in others if box[1] and box not in again), next(with_unit, last)]
    return [name + text for name, text in kept]


class _Parts(NamedTuple):
    """A value, and what may distinguish it from another answer with this value."""

    value: Node
    is_percent: bool
    name: str  # left of "="
    things: tuple[Unit, str] | None  # its unit and noun
    base: int | None


def _parts(node: Node) -> _Parts:
    """Separate a value from the name before it and the unit after it."""
    name, suffix, base = "", Suffix(), None
    while node.kind in ("label", "quantity"):
        if node.kind == "label":
            name = name or folded(node.items[0]) or repr(node.items[0])
            node = node.items[1]
        else:
            suffix = node.value
            node = node.items[0]
    if node.kind == "numeral":
        digits, base = node.value
        node = num(int(digits))
    things = (suffix.unit, suffix.noun) if (suffix.unit or suffix.noun) else None
    return _Parts(node, suffix.is_percent, name, None if suffix.is_percent else things, base)


def _are_equal(one: Node, other: Node) -> bool:
    return one == other or (exact(one) is not None and exact(one) == exact(other))


def _repeats(text: str, other: str) -> bool:
    """Return whether two boxes agree: names, units, nouns, bases may be missing, percents not."""
    if text == other or max(len(text), len(other)) > _REACH:
        return text == other
    trees = read(text).trees[:1] + read(other).trees[:1]
    if len(trees) < 2:
        return False
    (one, *marks), (two, *marks_of_other) = map(_parts, trees)
    return _are_equal(one, two) and all(
        mark == twin or mark in ("", None) or twin in ("", None)
        for mark, twin in zip(marks, marks_of_other, strict=True)
    )


def _has_unit(text: str) -> bool:
    trees = read(text).trees if len(text) <= _REACH else ()
    things = _parts(trees[0]).things if trees else None
    return things is not None and things[0] != ()


def _before(response: str, start: int) -> str:
    r"""Return the text from the beginning of the box's side of the formula up to the box.

    In prose, and before a formula that begins with the box (``-$\boxed{5}$``), what touches it.
    """
    text = response[max(0, start - _REACH) : start]
    mark = next(reversed([*_BEGIN.finditer(text)]), None)
    if mark is not None and re.fullmatch(_PROSE, mark[0]) is None:
        inside = text[mark.end() :]
        # else it ends the formula before
        is_formula = not mark[0].startswith("$") or _is_in_formula(response, start)
        if is_formula and (inside.strip() or re.match(_RELATION, mark[0])):
            return "" if _WORD.search(inside) or "\n" in inside.lstrip() else inside
        text = text[: mark.start()] if is_formula else inside
    touching = text.split()[-1].strip("*_") if text[-1:].strip() else ""
    if touching.endswith(".") and (touching == "." or _ends_sentence(response, start)):
        return ""
    is_list_mark = _LIST_MARK.search(text.rpartition("\n")[2].strip()) is not None
    return "" if _WORD.search(touching) or is_list_mark else touching


def _is_scaled(node: Node) -> bool | None:
    """Return whether a tree is the box multiplied or raised; ``None`` if it is neither."""
    if node == _BOX:
        return False
    kind, items = node.kind, node.items
    if kind in ("quantity", "degree"):
        return _is_scaled(items[0])
    if kind == "list" and node.value == "pm":
        return _LETTER in names_in(node)
    if kind in ("add", "sub") and exact(items[0]) == 0:
        inner = _is_scaled(items[1])
        return inner if kind == "add" or inner is None else True
    if kind not in _CHANGING or names_in(node) != {_LETTER}:
        return None
    inner = [item for item in items if names_in(item)]
    if len(inner) != 1 or (kind in ("pow", "root", "log") and inner[0] is not items[0]):
        return None  # an exponent, index or base to be filled in
    return None if _is_scaled(inner[0]) is None else True

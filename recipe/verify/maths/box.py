r"""Find a response's answer, the last ``\boxed{}``, and tell whether what touches it changes it.

``$-\boxed{5}$``, ``$\boxed{5}\pi$`` and ``\frac{\boxed{5}}{2}`` do not answer 5: a model that is
not sure of a sign or factor would leave it out of the box. The side of the formula is read with a
letter in the box's place; in prose, only what touches the box (``the answer is -\boxed{5}``).
Units, degrees, percent, words and punctuation change nothing. Nothing is held against a box that
has variables around it (``\boxed{3}x^2``), or is in text that cannot be read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from recipe.verify.maths.reading import rational, read
from recipe.verify.maths.tree import Node, exact, names_in
from recipe.verify.maths.units import NUMBERS
from recipe.verify.schema import Verdict

# Without a brace, before a word, prose only speaks of it: with \boxed as requested.
_BOX = re.compile(r"\\boxed(?:\s*\{|(?![A-Za-z`])(?!\s+[a-z]{2}))")
_BRACE = re.compile(r"(\\boxed(?![A-Za-z])\s*)\{|\\(?!\\boxed).|[{}]", re.DOTALL)
# A mark after a box: \boxed{5}\%, $\boxed{60}$°, \boxed{12}_7; not a comment, temperature or note.
_BASES = "|".join(NUMBERS)
_MARK = re.compile(
    r"(?:\$\$?|\\[)\],;! ]|\*\*|[ ~]){0,4}(\\%|%(?!\s*\n)"
    r"|(?:\^\s?\{?\s?\\circ\s?\}?|°)(?!\s?(?:\\(?:text|mathrm)\{\s?)?[CFK]\b))"
    r"|(_(?:\{(?:[2-9]|[12]\d|3[0-6])\}|(?:[2-9]|[12]\d|3[0-6])(?!\d)|"
    rf"\{{?\\(?:text|mathrm)\s?\{{\s?(?:base )?(?:[0-9]{{1,2}}|{_BASES})\s?\}}\}}?))"
)
_TAKES_NO_MARK = re.compile(r"(?:%|°|\\circ\s?\}?|_\{?\d+\}?)\s*$|.[-+]")
# Between two boxes that are parts of one answer: nothing, or a comma, "and", "or".
_GLUE = re.compile(
    r"\}((?:[\s~$*,;]|\\[()\[\],;: ]|\\q?quad(?![a-z])"
    r"|\\text\{(?:[\s,]{0,3}(?:and|or)|\s?,)\s?\}|and|or)*)\Z"
)
_PARTED = re.compile(r"(?<!\\)[,;]|and|or")
_NAME = re.compile(r"(?<![A-Za-z0-9\\+*/^-])([A-Za-z](?:_\{?[0-9]\}?)?)\s?=\s?\Z")  # x = \boxed{2}
_MAX_NAME, _MAX_GLUE = 12, 200

_REACH = 80  # characters that are looked at on each side
_LETTER = r"\mathscr{B}"
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
# Not the end of a sentence, after **Answer** or $x = 5$ either.
_POINT_BEFORE = re.compile(
    r"(?:(?<![A-Za-z0-9.,)\]}%!?])(?<![A-Za-z0-9][\"*$])(?<![A-Za-z0-9]\*\*)(?<![A-Za-z0-9]\$\$)"
    r"|(?<![0-9])0)\.(?:\\overline\{)?\Z"
)
_LOOK = re.compile(r"\\(?:text|math|boldsymbol)[a-z]{0,6}\s?\{\s?\Z")
_BOX_BEFORE = re.compile(  # in one term with this one
    r"\\boxed\s?\{[^{}]{0,60}\}\s?(?:[-+/:|]|\\(?:cdot|times|div|vee|lor|mid)|\}\s?\{)\s?\Z"
)
_DOLLARS = re.compile(r"(?<!\\)\$\$?")
_SCALE = re.compile(
    r"(?:[\s$~]|\\[,;: )]){0,9}(?:\\text\{\s?)?"
    r"(hundred|thousand|million|billion|trillion|dozen|squared|cubed|factorial)(?![a-z])"
)
_MAYBE = r"(?: ?(?:maybe|possibly|perhaps|also|even|option|choice|answer)){0,3}"
_OTHER = re.compile(  # \boxed{5} or 7
    r"[\s$*]{0,9}(?:\\[)\]])?[ \t,;(]{0,3}(?:\\text\{\s?)?"
    rf"(?:\s?(?:or|and)\b|\\(?:lor|vee)(?![a-z])|(?<=[,;/])|/|(?<=\()(?=maybe|possibly)){_MAYBE}\s?\}}?"
    r"[ \t$*(]{0,9}(?:\\text\{\s?)?(?:(?P<name>[a-zA-Z])\s?=\s?)?"
    r"(?P<value>-?[0-9](?:[.,/]?[0-9]){0,20}+|-?\\[dt]?frac\{[0-9]{1,9}\}\{[0-9]{1,9}\}|[A-Z])"
    r"(?=\s*(?:[.,$})*]|\\[)\]]|\n|\Z))"
)
_CHANGING = frozenset("neg mul div pow root fn log fact binom floor ceil".split())


@dataclass(frozen=True, slots=True)
class Box:
    """The last box of a response, or its block of code.

    Attributes:
        state: Whether there is one, and whether it ends.
        text: Its content, empty unless ``closed``.
        place: Where a box's command begins, and where its last brace ends.
    """

    state: Literal["absent", "open", "closed"]
    text: str = ""
    place: tuple[int, int] = field(default=(0, 0), compare=False)


def last_box(response: str) -> Box:
    r"""Find the last ``\boxed{...}``; braces inside may nest or be escaped.

    An unbalanced last box is ``open`` however many complete boxes come before it: those are
    intermediate values. A box inside another is part of it.
    Boxes side by side, ``\boxed{2}`` and ``\boxed{3}``, are one answer, the list of their values;
    so are ``x = \boxed{2}`` or ``x = \boxed{3}``. A box that only repeats the last one is left out.
    A percent sign, degrees and a base right after a box are read as if they were in it.
    """
    boxes = [*_BOX.finditer(response)]
    if not boxes:
        return Box("absent")
    last = boxes[-1].end()
    stack: list[tuple[int, int]] = []  # of open braces: where a box begins and its content, or -1
    closed: dict[int, tuple[int, int]] = {}  # the same of boxes, by their ends
    around: frozenset[tuple[int, int]] = frozenset()  # the boxes around the last one, and itself
    end = 0
    for match in _BRACE.finditer(response):
        if match[0].endswith("{") and match[0] != r"\{":
            stack.append((match.start(), match.end()) if match[1] else (-1, -1))
            if match.end() == last:
                around = frozenset(box for box in stack if box[0] >= 0)
        elif match[0] == "}" and stack:
            box = stack.pop()
            if box[0] >= 0:
                closed[match.end()] = box
            if box in around:
                end = match.end()
    return _with_boxes_before(response, closed, end) if end else Box("open")


def without_answer(found: Box, is_truncated: bool) -> Verdict | None:
    """Return the verdict where nothing is in the place for an answer, a box or a block of code."""
    if found.state == "closed" and found.text.strip():
        return None
    if is_truncated:
        return Verdict(0.0, "truncated")
    return Verdict(0.0, "malformed" if found.state == "open" else "no_answer")


def _with_boxes_before(response: str, closed: dict[int, tuple[int, int]], end: int) -> Box:
    r"""Return the box that ends at ``end`` and those to its left, as one list.

    Where it has a name, ``x = \boxed{2}``, the others need one too.
    """
    parts: list[tuple[str, str]] = []  # names and values, the last box first
    start, at, link = closed[end][0], end, ", "
    is_named = _NAME.search(response, max(0, start - _MAX_NAME), start) is not None
    while at in closed:
        begin, inside = closed[at]
        name = _NAME.search(response, max(0, begin - _MAX_NAME), begin) if is_named else None
        if is_named and name is None:
            break
        start, left = begin, name.start() if name else begin
        parts.append((f"{name[1]} = " if name else "", response[inside : at - 1].strip()))
        glue = _GLUE.search(response, max(0, left - _MAX_GLUE), left)
        is_parted = glue is not None and (not glue[1] or _PARTED.search(glue[1]))
        at = glue.start() + 1 if glue is not None and is_parted else -1
        if glue is not None and at in closed and "or" in glue[1]:
            link = r" \text{ or } "
    name, last = parts[0]
    last += _mark_after(response, end, last)
    texts = [each + text for each, text in (*parts[:0:-1], (name, last)) if text]
    texts = [*dict.fromkeys(texts)]
    return Box("closed", link.join(texts) if len(texts) > 1 else last, (start, end))


def _mark_after(response: str, end: int, inside: str) -> str:
    """Return a mark that belongs to the value in the box that ends at ``end``.

    A base belongs to digits, the others to one number without a mark of its own.
    """
    mark = _MARK.match(response, end)
    if mark is None or _TAKES_NO_MARK.search(inside) or not re.search(r"\d", inside):
        return ""
    return mark[1] or (mark[2] if inside.isdigit() else "")


def changes_value(response: str, start: int, end: int, problem: str = "") -> bool:
    r"""Return whether a sign, factor, power, digit or scale is at the box ``[start:end]``."""
    inside = response[start:end].partition("{")[2][:-1].strip()
    if _is_part_of_number(response, start, end, inside, problem):
        return True
    if look := _LOOK.search(response, max(0, start - _REACH), start):
        start, end = look.start(), end + (response[end : end + 1] == "}")
    left = _before(response, start)
    if left and _say_the_same(left, inside):
        left = ""  # x = 18 \boxed{18}
    right = _END.split(response[end : end + _REACH], maxsplit=1)[0]
    right = _WORD.split(right, maxsplit=1)[0].rstrip(" .,;:!*")
    for side in (f"{left} {_LETTER} {right}", f"{left} {_LETTER}"):
        if trees := read(side).trees:
            return _is_scaled(trees[0])
    return False


def _is_part_of_number(response: str, start: int, end: int, inside: str, problem: str) -> bool:
    scale = _SCALE.match(response, end)
    if scale and problem and scale[1] not in problem.lower():
        return True
    before = response[max(0, start - _REACH) : start]
    is_group = re.match(r"[0-9]{3}(?![0-9])", inside) and _THOUSANDS_BEFORE.search(before)
    if is_group or _POINT_BEFORE.search(before) or _BOX_BEFORE.search(before):
        return True
    return _DIGIT.match(response, end) is not None


def _say_the_same(side: str, inside: str) -> bool:
    r"""Return whether the text beside a box repeats its value: ``\$18``, ``18\,``, ``(18.00)``."""
    side = side.strip(" ($\\~")
    if side == inside or not side or len(inside) > _REACH:  # reading takes longer than that
        return side == inside
    value = rational(side)
    return value is not None and value == rational(inside)


def _before(response: str, start: int) -> str:
    r"""Return the text from the beginning of the box's side of the formula up to the box.

    In prose, and before a formula that begins with the box (``-$\boxed{5}$``), what touches it.
    """
    text = response[max(0, start - _REACH) : start]
    mark = next(reversed([*_BEGIN.finditer(text)]), None)
    if mark is not None and re.fullmatch(_PROSE, mark[0]) is None:
        inside = text[mark.end() :]
        # else it ends the formula before
        dollars = _DOLLARS.findall(response[:start].rpartition("\n\n")[2])
        is_formula = not mark[0].startswith("$") or len(dollars) % 2 == 1
        if is_formula and (inside.strip() or re.match(_RELATION, mark[0])):
            return "" if _WORD.search(inside) or "\n" in inside.lstrip() else inside
        text = text[: mark.start()] if is_formula else inside
    touching = text.split()[-1].strip("*_") if text[-1:].strip() else ""
    return "" if touching == "." or _WORD.search(touching) else touching


def _is_scaled(node: Node) -> bool:
    while node.kind in ("quantity", "degree"):
        node = node.items[0]
    if node.kind == "list" and node.value == "pm":
        return _LETTER in names_in(node)
    if node.kind == "sub" and exact(node.items[0]) == 0:
        return True
    is_base = node.kind not in ("pow", "root", "log") or bool(names_in(node.items[0]))
    return node.kind in _CHANGING and names_in(node) == {_LETTER} and is_base


def has_other(response: str, start: int, end: int, inside: str) -> bool:
    r"""Return whether quite another number or letter is offered after a box: ``\boxed{B} or C``.

    A number with another name is not one, ``\boxed{x=5}, y=7``, nor is a near one (40% or 2/5).
    """
    other = _OTHER.match(response, end)
    if other is None or len(inside) > _REACH:
        return False
    if other["value"].isalpha():
        return inside.isalpha() and other["value"] != inside
    trees = read(inside).trees
    tree = trees[0] if trees else Node("none")
    own = str(tree.items[0].value) if tree.kind == "label" else ""
    if own and other["name"] and own != other["name"]:
        return False
    value, number = exact(tree.items[1] if tree.kind == "label" else tree), rational(other["value"])
    if value is None or number is None:
        return False
    is_whole = value.denominator == number.denominator == 1
    return value != number if is_whole else abs(value - number) * 50 > abs(value)

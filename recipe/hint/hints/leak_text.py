r"""The values that a hint writes down, each with what stands on the other side of its ``=``.

A text is read as words and statements; a statement is what stands between words: ``4 × 18 = 72``
or ``$x = \frac{24}{2} = 12$``. Its relations (``=``, ``<``, ``\approx``) part it into sides. A side
that is one number is a *literal*; any other side is a *formula*. What belongs to a formula is no
value of its own: the 3 of ``3x``, ``x^3``, ``3 + 4`` and ``a_3`` is not one.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Literal

from recipe.hint.hints.leak_words import word_numbers

Shape = Literal["literal", "word", "formula", "boxed"]

_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+:\d\d(?!\d)|\d+(?:\.\d+)?|(?<!\d)\.\d+"
_TOKEN = re.compile(
    rf"""
    (?P<item>^[ \t]*(?:[-*•]|\(?\d{{1,2}}[.)])[ \t]|\b(?:[Ss]tep|[Ll]evel|[Hh]int)[ ]\d+\b)
    |(?P<text>\\(?:text|mathrm|textbf|mbox)\s*\{{[^{{}}]*\}})
    |(?P<matrix>\\(?:begin|end)\s*\{{[a-z]*matrix\}})
    |(?P<math>\\(?:begin|end)\s*\{{[A-Za-z]+\*?\}}|\$\$|\\\(|\\\)|\\\[|\\\])
    |(?P<money>\\\$|[€£])
    |(?P<dollar>\$)
    |(?P<row>\\\\)
    |(?P<skip>&|\\[,;:! ]|\\(?:left|right|quad|qquad|displaystyle|big|Big)(?![A-Za-z]))
    |(?P<relation>\\(?:approx|leq?|geq?|neq?|equiv|to|implies|Rightarrow|lt|gt|in|mid|iff)(?![A-Za-z])
        |[=<>≤≥≈≠≡∈→⇒])
    |(?P<post>\\?%|\^\s*\{{\\circ\}}|(?:\^\s*)?\\circ(?![A-Za-z])|°)
    |(?P<command>\\[A-Za-z]+|\\[{{}}|])
    |(?P<ordinal>\d+(?:st|[nr]d|th)\b|\d+-(?=[A-Za-z]))
    |(?P<number>{_NUMBER})
    |(?P<word>[A-Za-zÀ-ÿ]{{2,}}(?:['’-][A-Za-zÀ-ÿ]+)*)
    |(?P<letter>[A-Za-z])
    |(?P<operator>[-+*/·×÷^_–−²³√π])
    |(?P<bracket>[()\[\]{{}}|])
    |(?P<bang>!)
    |(?P<comma>,)
    |(?P<line>\n)
    |(?P<space>[ \t\r]+)
    |(?P<other>.)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_BREAKS = frozenset({"item", "text", "math", "dollar", "word", "ordinal", "line", "other"})
# As in Markdown: no space inside the signs, no digit behind them; words are no mathematics.
# The bound keeps signs that nothing closes from being looked for to the end of the text.
_INLINE = re.compile(r"\$(?=\S)(?:\\.|[^$\\\n]){0,500}?(?<=\S)\$(?!\d)")
_PROSE = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{3,}")
_BRACED = rf"\{{\s*-?(?:{_NUMBER})\s*\}}"
_FRACTION = rf"(?:\\[dt]?frac\s*(?:{_BRACED}\s*{_BRACED}|\d\s*\d))"
_LITERAL = re.compile(
    rf"[-–−+]?\s*(?:(?:{_NUMBER})(?:\s*/\s*(?:{_NUMBER}))?|(?:\d+\s*)?{_FRACTION}|\d+\s+\d+/\d+"
    rf"|\d+(?:\.\d+)?\s*(?:\\times|\\cdot|×|·)\s*10\^(?:\{{-?\d+\}}|\d))\s*"
    r"(?:\\?%|\^?\{?\\circ\}?|°)?"
)
_SIMPLE = re.compile(r"\d+/\d")
_MIXED = re.compile(r"(\D*\d+)\s+(\d+)/(\d+)")
_BRACE = re.compile(r"\\boxed\s*\{|[{}]")
_UNCOUNTED = re.compile(r"\\(?:left|right|cdot|times|displaystyle)(?![A-Za-z])|[\s{}\\$*]")
_LEAD = re.compile(r"(?:[\s,;|&$€£]|\\\$|\\[,;:! ])+")
_AFTER_BANG = re.compile(r"[ \\]*(.?)", re.DOTALL)
_MONEY = re.compile(r"\\?[$€£]|\\!")
_PLAIN = str.maketrans({"–": "-", "−": "-", "×": r"\times ", "·": r"\cdot "})
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True, slots=True)
class Mention:
    """A value at ``start:end``.

    ``text`` is what the verifier compares. ``left`` is the side before it, where ``relation``
    stands between the two, and ``place`` counts the sides before it; ``statement`` is where its
    statement begins.
    """

    start: int
    end: int
    text: str
    shape: Shape
    statement: int
    relation: str = ""
    left: str = ""
    place: int = 0


@dataclass(slots=True)
class _Side:
    """Part of a statement, with what stands before it."""

    start: int
    end: int
    relation: str = ""
    left: str = ""
    place: int = 0


def mentions(text: str) -> list[Mention]:
    """All values in the order of the text, none of them blank; one in a box is boxed alone."""
    kept = list(_boxes(text))
    starts = [box.start for box in kept]
    found = [
        Mention(word.start, word.end, str(word.value), "word", word.start)
        for word in word_numbers(text)
    ]
    for start, end in _statements(text):
        found += _sides(text, start, end)
    for each in found:
        at = bisect.bisect_right(starts, each.start) - 1
        is_boxed = at >= 0 and each.end <= kept[at].end
        if not is_boxed and compact(each.text):
            kept.append(each)
    return sorted(kept, key=lambda each: (each.start, -each.end))


def compact(text: str) -> str:
    r"""A formula without what does not count: spaces, braces, ``\left``, signs of a product."""
    return _UNCOUNTED.sub("", text).lower()


def _boxes(text: str) -> Iterator[Mention]:
    """What stands in each box that is closed, holds no other box and is not blank."""
    open_at: list[re.Match[str] | None] = []
    last_box = -1
    for match in _BRACE.finditer(text):
        if match[0] != "}":
            open_at.append(match if len(match[0]) > 1 else None)
        elif open_at and (box := open_at.pop()) and box.start() > last_box:
            last_box = box.start()
            content = text[box.end() : match.start()].strip()
            if compact(content):
                yield Mention(box.end(), match.start(), content, "boxed", box.start())


def _statements(text: str) -> Iterator[tuple[int, int]]:
    """Spans between words; a comma outside brackets ends one, and so does a space as in ``3 4``."""
    start = end = -1
    depth, last, is_after_gap = 0, "", False
    signs = _math_signs(text)
    for match in _TOKEN.finditer(text):
        kind = _kind(match, text, signs)
        if kind in ("space", "price"):
            is_after_gap |= kind == "space"
            continue
        is_apart = is_after_gap and _are_apart(last, kind, text, match.start())
        is_break = kind == "break" or (not depth and (kind == "comma" or is_apart))
        if is_break and start >= 0:
            yield start, end
            start, depth = -1, 0
        if kind not in ("break", "comma") or (kind == "comma" and start >= 0):
            start, end = (match.start() if start < 0 else start), match.end()
            depth = _depth(depth, match[0])
        last, is_after_gap = kind, False
    if start >= 0:
        yield start, end


def _math_signs(text: str) -> set[int]:
    """Places of the dollar signs that enclose a formula; the others are prices."""
    pairs = (match.span() for match in _INLINE.finditer(text) if not _PROSE.search(match[0]))
    return {place for start, end in pairs for place in (start, end - 1)}


def _kind(match: re.Match[str], text: str, signs: Set[int]) -> str:
    kind = match.lastgroup or "other"
    if kind == "bang":
        return "operator" if _is_factorial(text, match.start()) else "break"
    is_price = kind == "money" or (kind == "dollar" and match.start() not in signs)
    if is_price or kind in ("skip", "space"):
        return "price" if is_price else "space"
    if kind == "row":
        return "comma"  # ends a line, except within a matrix
    return "break" if kind in _BREAKS else kind


def _depth(depth: int, token: str) -> int:
    if token.endswith("matrix}"):
        return max(0, depth + (1 if token.startswith("\\begin") else -1))
    char = token.removeprefix("\\")
    return max(0, depth + (char in _OPENING) - (char in _CLOSING))


def _are_apart(last: str, kind: str, text: str, at: int) -> bool:
    r"""Whether a space parts two tokens: ``5 m``, ``3 4``; not ``2 \sqrt 3`` or ``7 1/2``."""
    is_mixed = last == kind == "number" and _SIMPLE.match(text, at) is not None
    return not is_mixed and {last, kind} <= {"number", "letter", "post"}


def _is_factorial(text: str, at: int) -> bool:
    """A mark that ends a sentence has a space and a word behind it, or nothing."""
    before = text[at - 1 : at]
    found = _AFTER_BANG.match(text, at + 1)
    after = found[1] if found else ""
    return (before.isalnum() or before == ")") and after != "" and after in "=+-*/·×^)}],;:$ctf"


def _sides(text: str, start: int, end: int) -> Iterator[Mention]:
    sides = [_Side(start, end)]
    depth = 0
    for match in _TOKEN.finditer(text, start, end):
        depth = _depth(depth, match[0])
        if match.lastgroup == "relation" and not depth:
            last = sides[-1]
            last.end = match.start()
            left = text[last.start : last.end].strip()
            sides.append(_Side(match.end(), end, match[0], left, last.place + 1))
    whole = _mention(text, _Side(start, end), start)
    if len(sides) > 1 and whole:
        yield whole  # "x < 5" may be an answer as a whole
    for side in sides:
        if mention := _mention(text, side, start):
            yield mention


def _mention(text: str, side: _Side, statement: int) -> Mention | None:
    """A side without what is only punctuation around it."""
    start, end = side.start, side.end
    if lead := _LEAD.match(text, start, end):
        start = lead.end()
    while end > start and text[end - 1] in " \t\r,;|-–+*_":
        end -= 1
    if text[end - 1 : end] in _CLOSING and not _OPENING & set(text[start:end]):
        end -= 1
    if text[start : start + 1] in _OPENING and not _CLOSING & set(text[start:end]):
        start += 1
    content = text[start:end]
    if not any(map(str.isalnum, content)):
        return None
    if content[0] == "(" and _LITERAL.fullmatch(content[1:-1]):
        content = content[1:-1]
    shape: Shape = "literal" if _LITERAL.fullmatch(content) else "formula"
    if shape == "literal" and (mixed := _MIXED.match(content)):
        content = mixed.expand(r"\1\\frac{\2}{\3}") + content[mixed.end() :]
    content = _MONEY.sub("", content).translate(_PLAIN)
    return Mention(start, end, content, shape, statement, side.relation, side.left, side.place)

r"""The values that a text writes down, for the leak guard.

The text is masked, character for character: words become breaks, numbers and commands fillers. A
statement is what stands between breaks, and its ``=`` part it into sides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from recipe.hint.hints import leak_words as vocabulary
from recipe.hint.hints.leak_markup import plain

_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+:\d\d(?!\d)|\d+(?:\.\d+)?|(?<!\d)\.\d+"
_TOKEN = re.compile(
    rf"""
    (?P<break>^[ \t]*(?:[-*•]|\(?\d{{1,2}}[.)])[ \t]
        |(?:(?<=[Ss]tep[ ])|(?<=[Hh]int[ ])|(?<=[Ll]evel[ ]))\d+
        |\d+(?:st|[nr]d|th)\b|\d+-(?=[A-Za-z])
        |[A-Za-zÀ-ÿ]{{2,}}(?:['’-][A-Za-zÀ-ÿ]+|[ ][A-Za-zÀ-ÿ]{{2,}})*
        |\\(?:text|mathrm|textbf|mbox)\s*\{{[^{{}}]*\}}|\\[()\[\]]
        |\\(?:begin|end)\s*\{{(?![a-z]*matrix)[A-Za-z]+\*?\}}
        |\\(?:to|implies|Rightarrow|iff|in|therefore)(?![A-Za-z])|[→⇒∈])
    |(?P<number>{_NUMBER}|\\%|\^\s*\{{\\circ\}}|(?:\^\s*)?\\circ(?![A-Za-z]))
    |(?P<open>\\begin\s*\{{[a-z]*matrix\}}|\\\{{)|(?P<close>\\end\s*\{{[a-z]*matrix\}}|\\\}})
    |(?P<comma>\\\\)
    |(?P<blank>[$€£&]|\\[$,;:!\ ]|\\(?:left|right|quad|qquad|displaystyle|big|Big)(?![A-Za-z]))
    |(?P<equal>\\(?:approx|equiv)(?![A-Za-z])|[≈≡])
    |(?P<operator>\\(?:[A-Za-z]+|\|)|(?<=[\w)])!(?=[ ]*[\\=+*/·×^)}}\],;:$-]))
    |[^-+*/·×÷^_–−²³√π()\[\]{{}}|,%°=<>≤≥≠A-Za-z0-9 \t\r]
    """,
    re.VERBOSE | re.MULTILINE,
)
# What a token becomes in the mask of a text, which is as long as the text: the first character,
# then the others. Single letters, operators and brackets stay as they are.
_MASKS = dict(number="99", open="(\\", close=")\\", comma=", ", blank="  ", equal="= ")
_MASKS["operator"] = "\\\\"
# What parts a mask into statements and their sides; a space does in "5 m" and "3 4".
_PART = re.compile(r"[(\[{]|[)\]}]|[=,]|\n+|(?<=[\w%°])[ \t\r]+(?=[\w%°])(?!9+/9)")
_LITERAL = re.compile(
    r"[-–−+]?[\d.,:\s]*+(?:/\s*[\d.,]+|\\[dt]?frac\s*(?:(?:\{\s*-?[\d.,]+\s*\}\s*){2}|\d\s*\d)"
    r"|(?:\\times|\\cdot|×|·)\s*10\^(?:\{-?\d+\}|\d))?\s*(?:\\?%|\^?\{?\\circ\}?|°)?"
)
_DIGIT = re.compile(r"\d")
_BRACKETS = re.compile(r"(?:\\left)?[(\[{|]{1,2}\s*([^()\[\]{}|,]+?)\s*(?:\\right)?[)\]}|]{1,2}")
_BRACE = re.compile(r"\\boxed\s*\{|[{}]")
_UNCOUNTED = re.compile(r"\\(?:left|right|cdot|times|displaystyle)(?![A-Za-z])|[\s{}\\$*]")


class Value(NamedTuple):
    """A value at ``start:end``; ``text`` is what the verifier compares.

    ``shape`` is ``literal`` (a number), ``word``, ``formula`` or ``boxed``. The side before
    it in its statement, which begins at ``statement``, is ``left``; ``place`` counts those sides.
    """

    start: int
    end: int
    text: str
    shape: str
    statement: int
    left: str = ""
    place: int = 0


def values(text: str) -> list[Value]:
    """Return all values in the order of the text, none of them blank; a box is one value."""
    text = plain(text)
    boxed, pieces, at = list(boxes(text)), [], 0
    for box in boxed:
        pieces += [text[at : box.statement], "\n" * (box.end + 1 - box.statement)]
        at = box.end + 1
    text = "".join(pieces) + text[at:]

    def masked(match: re.Match[str]) -> str:
        first, other = _MASKS.get(match.lastgroup or "", "\n\n")
        return first + other * (len(match[0]) - 1)

    mask = _TOKEN.sub(masked, text)
    found = [*boxed, *_number_words(text)]
    for sides in _statements(mask):
        begin, left = sides[0][0], ""
        if len(sides) > 1:  # "x < 5" may be an answer as a whole
            found += _value(text, mask, (begin, sides[-1][1]), (begin,))
        for place, (start, end) in enumerate(sides):
            found += _value(text, mask, (start, end), (begin, left, place))
            left = text[start:end].strip()
    return sorted(found, key=lambda each: (each.start, -each.end))


def compact(text: str) -> str:
    r"""Drop what does not count in a formula: spaces, braces, ``\left``, signs of a product."""
    return _UNCOUNTED.sub("", text).lower()


def _number_words(text: str) -> Iterator[Value]:
    """Yield numbers in words, spelled as the verifier reads them."""
    for match in vocabulary.IN_WORDS.finditer(text):
        words = match[0].lower().removeprefix("a dozen") or "dozen"
        whole = words.removesuffix(" and a half")
        if whole != words and whole in vocabulary.SMALL:
            words = f"{vocabulary.SMALL.index(whole)}.5"
        words = re.sub("^an? ", "one ", words.replace(" and ", " "))
        yield Value(match.start(), match.end(), words, "word", match.start())


def boxes(text: str) -> Iterator[Value]:
    """Yield what stands in each box that is closed, holds no other box and is not blank."""
    open_at: list[re.Match[str] | None] = []
    last_box = -1
    for match in _BRACE.finditer(text) if r"\boxed" in text else ():
        if match[0] != "}":
            open_at.append(match if len(match[0]) > 1 else None)
        elif open_at and (box := open_at.pop()) and box.start() > last_box:
            last_box = box.start()
            content = text[box.end() : match.start()].strip()
            if compact(content):
                yield Value(box.end(), match.start(), content, "boxed", box.start())


def _statements(mask: str) -> Iterator[list[tuple[int, int]]]:
    """Yield the sides of each statement, as spans."""
    sides: list[tuple[int, int]] = []
    start = depth = 0
    for part in _PART.finditer(mask + "\n"):
        sign = part[0][0]
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth = max(0, depth - 1)
        elif sign == "\n" or not depth:
            if part.start() > start or sides:
                sides.append((start, part.start()))
            start = part.end()
            if sign != "=":
                if sides:
                    yield sides
                sides, depth = [], 0


def _value(text: str, mask: str, span: tuple[int, int], rest: tuple) -> Iterator[Value]:
    """Yield a side without the punctuation around it, if it is not blank."""
    shown = mask[slice(*span)].lstrip(" \t\r,|")
    start = span[1] - len(shown)
    end = start + len(shown.rstrip(" \t\r,|-–+*_"))
    shown = mask[start:end]
    if shown[-1:] in (")", "]", "}") and not set("([{") & set(shown):
        end -= 1
    content = text[start:end]
    # Cheaper first: digits are never dropped.
    if _DIGIT.search(content) or any(map(str.isalnum, compact(content))):
        bare = _BRACKETS.fullmatch(content)
        is_number = _LITERAL.fullmatch(bare[1] if bare else content)
        content = bare[1] if is_number and bare else content
        yield Value(start, end, content, "literal" if is_number else "formula", *rest)

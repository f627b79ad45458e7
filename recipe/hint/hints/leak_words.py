"""Numbers that a text writes in words: ``twenty-five``, ``three quarters``, ``seven and a half``.

Covered: whole numbers below a million, fractions from halves to tenths and hundredths with their
numerator, mixed numbers, a dozen. Not covered: ordinals (``the third``), ``half of``, roman
numerals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_UNITS = {word: number for number, word in enumerate(_SMALL)}
_TENS = {
    word: 10 * number
    for number, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2
    )
}
_SCALES = {"thousand": 1000, "hundred": 100}
_PARTS = {
    name: number
    for number, names in {
        2: "half halves",
        3: "third thirds",
        4: "quarter quarters fourth fourths",
        5: "fifth fifths",
        6: "sixth sixths",
        7: "seventh sevenths",
        8: "eighth eighths",
        9: "ninth ninths",
        10: "tenth tenths",
        100: "hundredth hundredths",
    }.items()
    for name in names.split()
}
_WORD = re.compile(r"[A-Za-z]+")
_GAP = re.compile(r"[ \t]+|-")


class WordNumber(NamedTuple):
    """A number in words at ``start:end``; ``value`` is exact."""

    start: int
    end: int
    value: Fraction


class _Word(NamedTuple):
    text: str
    start: int
    end: int
    follows: bool  # nothing but a space or a hyphen stands before it


def word_numbers(text: str) -> Iterator[WordNumber]:
    """All of them, the longest from each start, in the order of the text."""
    words = _words(text)
    at = 0
    while at < len(words):
        found = _mixed(words, at)
        if found is None:
            at += 1
            continue
        value, size = found
        yield WordNumber(words[at].start, words[at + size - 1].end, value)
        at += size


def _words(text: str) -> list[_Word]:
    words: list[_Word] = []
    for match in _WORD.finditer(text):
        follows = bool(words and _GAP.fullmatch(text, words[-1].end, match.start()))
        words.append(_Word(match[0].lower(), match.start(), match.end(), follows))
    return words


def _mixed(words: list[_Word], at: int) -> tuple[Fraction, int] | None:
    """A number or a fraction, or one ``and a half`` after the other; with its count of words."""
    if part := _fraction(words, at):
        return part
    whole = _whole(words, at)
    if whole is None:
        is_dozen = words[at].text in ("a", "an") and _next(words, at + 1) == "dozen"
        return (Fraction(12), 2) if is_dozen else None
    value, size = whole
    if _next(words, at + size) == "and" and _next(words, at + size + 1):
        part = _fraction(words, at + size + 1)
        if part and part[0] < 1 and part[0].denominator > 1:
            return value + part[0], size + 1 + part[1]
    return Fraction(value), size


def _fraction(words: list[_Word], at: int) -> tuple[Fraction, int] | None:
    """``three quarters`` or ``a half``, and its count of words."""
    number = (1, 1) if words[at].text in ("a", "an") else _whole(words, at)
    parts = _PARTS.get(_next(words, at + number[1])) if number else None
    return (Fraction(number[0], parts), number[1] + 1) if number and parts else None


def _whole(words: list[_Word], at: int) -> tuple[int, int] | None:
    """A whole number below a million, and its count of words."""
    if words[at].text == "dozen":
        return 12, 1
    return _scaled(words, at, ("thousand", "hundred"))


def _scaled(words: list[_Word], at: int, scales: tuple[str, ...]) -> tuple[int, int] | None:
    """``<number> thousand <number>`` with smaller scales on both sides, or without the scale."""
    if not scales:
        return _below_hundred(words, at)
    scale, smaller = scales[0], scales[1:]
    first = _scaled(words, at, smaller)
    if first is None or _next(words, at + first[1]) != scale:
        return first
    total, size = first[0] * _SCALES[scale], first[1] + 1
    start = at + size + (_next(words, at + size) == "and")
    if start < len(words) and words[start].follows:
        rest = _scaled(words, start, smaller)
        # "one hundred and three quarters" is a hundred and a fraction.
        if rest and _next(words, start + rest[1]) not in _PARTS:
            return total + rest[0], start + rest[1] - at
    return total, size


def _below_hundred(words: list[_Word], at: int) -> tuple[int, int] | None:
    text = words[at].text
    if text in _UNITS:
        return _UNITS[text], 1
    if text in _TENS:
        unit = _UNITS.get(_next(words, at + 1), 0)
        return (_TENS[text] + unit, 2) if 0 < unit < 10 else (_TENS[text], 1)
    return None


def _next(words: list[_Word], at: int) -> str:
    return words[at].text if at < len(words) and words[at].follows else ""

r"""Numbers that a hint says to be the answer, in whatever writing: "The answer is 40 + 2".

A statement has a place for a number, behind it ("the answer is ...") or before it ("... is the
answer"). What stands there is read as one number, with at most one operation.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from fractions import Fraction

from recipe.hint.hints import leak_words as vocabulary
from recipe.hint.hints.leak_numbers import Number, number_at, number_before

_WINDOW_CHARS = 100
# Markup behind a number.
_LOOK = re.compile(r"^(?:[\s*$|»\"”'`)\]}=~_]|\\[)\]]|\\right[)\]]|\(\w+\))+")
_ENDS = {
    "anything": re.compile(""),
    "a sentence": re.compile(r"[.!]?\W*(?:\n|$)"),
    "a clause": vocabulary.CLAUSE_END,
}
_KINDS = tuple(_ENDS)
_CLAUSE = re.compile(r"[.!?;:](?=\s)|\n|,\s")


def stated_numbers(text: str, number: str, answer: str) -> list[tuple[int, int]]:
    """Return the span of each number that is said to be the answer and has its value.

    Args:
        text: A hint without markup.
        number: The answer's number, empty where it is none.
        answer: The answer, whose percent sign may be missing in the hint.
    """
    value = _value(number)
    if value is None:
        return []
    is_percent = "%" in answer
    return [
        (each.start, each.end)
        for each in _numbers(text)
        if each.value == value * (Fraction(1, 100) if each.is_percent else 1)
        or (each.value == (value / 100 if is_percent else value))
    ]


@functools.lru_cache(maxsize=64)
def _value(number: str) -> Fraction | None:
    """Return the value of a number as it is written, without its percent sign."""
    found = number_at(number.strip(" $"))
    if not found or number[found.end :].strip(" $}%\\."):
        return None
    return found.value * (100 if found.is_percent else 1)


def _numbers(text: str) -> Iterator[Number]:
    """Yield what stands in the places for an answer."""
    keys = list(vocabulary.KEY.finditer(text))
    for key in keys:
        for kind in _KINDS if key["answer"] else _KINDS[-1:]:
            match = vocabulary.SLOTS[kind].match(text, key.start())
            if match and not vocabulary.NOT.search(match.groupdict().get("gap") or ""):
                yield from _behind(text, match.end(), kind)
    has_before = " box" in text or any(key["answer"] for key in keys)
    for match in vocabulary.SLOT_BEFORE.finditer(text) if has_before else ():
        start = max(0, match.start() - _WINDOW_CHARS)
        before = text[start : match.start()].rstrip(" ,:-–")
        start += max((each.end() for each in _CLAUSE.finditer(before)), default=0)
        clause = text[start : match.start()].rstrip(" ,:-–")
        number = number_before(clause)
        beside = clause[: number.start][-30:] if number else ""
        is_other = vocabulary.NOT.search(beside[-20:]) or vocabulary.LABELLED.search(beside)
        if number and not is_other:
            yield number._replace(start=start + number.start, end=start + number.end)


def _behind(text: str, start: int, kind: str) -> Iterator[Number]:
    """Yield the number at ``start`` if it ends as this kind of place asks for."""
    rest = text[start : start + _WINDOW_CHARS]
    number = number_at(rest)
    if number and _ENDS[kind].match(_LOOK.sub("", rest[number.end :], count=1)):
        before = text[max(0, start - 30) : start + number.start]
        if not vocabulary.LABELLED.search(before):
            yield number._replace(start=start + number.start, end=start + number.end)

r"""The units that a problem's text mentions.

A word for a unit mentions it. A symbol does where it is read as one: after a number, in ``\text``,
after ``per``. So a variable m, a point C, ``Ann's`` and the second side mention none.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from recipe.verify.maths.lexer import with_clock
from recipe.verify.maths.units import canonical, is_symbol, name_of
from recipe.verify.maths.words import number_of

MAX_CHARS = 20_000
_POSSESSIVE = re.compile(r"(?<=[A-Za-z])['’]s\b")
_TOKEN = re.compile(
    # a price, not the start of a formula
    r"(?P<money>\$(?=[0-9][0-9.,]{0,20}(?: 000)?"
    r"(?:(?<=\.) |[ /-]{0,2}[A-Za-z]{2}| [aAI] |[)?]|\s*$)))"
    r"|\\[A-Za-z]+|\\.|[A-Za-z]+|[0-9]+|\S"
)
_FONTS = frozenset(r"\text \mathrm \mbox \textrm \textbf \operatorname \rm".split())
_SPACES = frozenset(r"{ } ~ \, \; \: \! $ \) ^ \ ".split()) | {"\\ "}
_BEFORE = frozenset("per a an each in nearest square cubic sq cu ( /".split())
# Abbreviations that can mean nothing else count as words do.
_CLEAR = frozenset("km cm mm kg ft yd lb lbs oz hrs hr mph kph kWh".split())
_IN_FORMULAS = frozenset("in min sec deg".split())  # x_{\text{min}}
# More often something else in the singular: the second side, a bit, the back yard.
_ORDINARY = frozenset("second bit yard mole".split())
_ENDS_UNIT = re.compile(r"[.,;:?!)]{0,2}(?:\s+[A-Za-z]{2}|\s*$)|\s?/\s?[a-z]")


@dataclass
class _Place:
    """What comes before a token: the last word or sign, and what it was."""

    before: str = ""
    is_number: bool = False
    is_unit: bool = False
    has_font: bool = False
    has_hyphen: bool = False


def without_possessives(text: str) -> str:
    """Return a text whose ``Ann's`` is ``Ann``, so that no s is left over."""
    return _POSSESSIVE.sub("", text[:MAX_CHARS])


def is_ordinary(word: str) -> bool:
    """Return whether a word for a unit mostly means something else: the second side."""
    return word.lower() in _ORDINARY


@functools.lru_cache(maxsize=256)
def mentioned_units(problem: str) -> frozenset[str]:
    """Return the canonical names of all units in a text, and of the parts of compound ones."""
    text = with_clock(without_possessives(problem))
    found: set[str] = set()
    place = _Place()
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in _FONTS:
            place.has_font = True
        elif token == "-":
            place.has_hyphen = True
        elif match["money"] or token not in _SPACES:
            name = name_of(token)
            is_unit = name is not None and _is_unit(
                token, place, text[match.end() : match.end() + 20]
            )
            if name is not None and is_unit:
                found.add(name)
            is_number = token.isdecimal() or number_of([token]) is not None
            is_over = token == "/" and not place.is_unit  # a fraction
            place = _Place("" if is_over else token.lower(), is_number, is_unit)
    return frozenset(part for name in found for part, _ in (*canonical({name: 1}), (name, 1)))


def _is_unit(token: str, place: _Place, rest: str) -> bool:
    """Return whether the name of a unit means the unit in its place."""
    is_after = place.is_number or place.before == "per"
    if not is_symbol(token):
        return is_after or not is_ordinary(token)
    if not token.isalpha():
        return is_after or token not in ("°", r"\circ", r"\degree", "%", r"\%")
    if token in _CLEAR:
        return True
    if token in _IN_FORMULAS:
        return is_after and (place.has_font or token != "in")
    if len(token) > 1:
        return is_after or place.has_font or place.before in _BEFORE
    if place.is_unit and place.before in ("°", r"\circ", r"\degree", "degrees"):
        return token in "CF"
    is_end = place.has_font or _ENDS_UNIT.match(rest) is not None
    return place.before == "/" or (is_after and is_end and not place.has_hyphen)

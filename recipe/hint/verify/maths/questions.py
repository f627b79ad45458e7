"""What the problem's own text says of an answer: the unit or noun it asks for, whether percent."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from recipe.hint.verify.maths.words import (
    ONE_LETTER,
    PERCENT,
    Unit,
    canonical,
    dimension_of,
    name_of,
    read_unit,
)

_DOUBTFUL = frozenset("K A V W J N C F".split())
_POINT = re.compile(r"ordered (?:pair|triple)|\bpoints?\b|coordinates|\$\([a-z], ?[a-z]\)\$")
_FRACTION = re.compile(r"\b(?:fraction|decimal)\b")
_INTERVAL = re.compile(r"interval|inequalit|\bdomain\b|\brange\b|<|>|\\[lg]eq?\b")
_ORDER = re.compile(
    r"respectively|in (?:that|this|the) order|(?:in|de)creasing order|(?:as|de)scending order|"
    r"in order (?:from|of)|(?:least|smallest) to (?:greatest|largest)|"
    r"(?:greatest|largest) to (?:least|smallest)"
)
_ANGLE = re.compile(r"angl|degree|°|\\circ\b|rotat|temperature|latitude|longitude|\barc")
_MEASURE = re.compile(  # what is asked for has the power of a length
    r"(?:[Ww]hat is|[Ff]ind|[Cc]ompute|[Dd]etermine|[Cc]alculate) "
    r"(?:(?:the|its|their|total|surface) ){0,3}"
    r"(area|volume|length|perimeter|distance|height|width|radius|diameter|circumference)"
)
_POWERS = {"area": 2, "volume": 3}
# Names of quantities that a problem may ask for without the word.
_NAMES = frozenset(
    "answer total area perimeter volume length width height radius slope distance speed time cost "
    "price profit sum product ratio probability number mean median average max min maximum minimum "
    "gcd lcm value result remainder angle rate".split()
)
_PLAIN_UNITS = ((("unit", 1),), (("unit", 2),), (("unit", 3),))


_WORD = re.compile(r"[A-Za-z]+|[$€£%°]|\\(?:\$|%|circ|degree|euro|pounds)")


_ASKED = re.compile(
    r"\b(?:[Hh]ow many|(?:[Ff]ind|[Ww]hat is|[Cc]ompute|[Dd]etermine) the (?:total )?number of) "
    r"((?:[A-Za-z/-]{1,30} ?){1,5})"
)


_MEASURED_IN = re.compile(r"\bin ((?:[A-Za-z/^]{1,20} ?){1,4})")


_PERCENT = re.compile(r"(?<![0-9])(?<![0-9] )(?<![0-9]\\)(?:[Pp]ercent|%)")


_CUT = frozenset(
    "are is was were do does did will would can could of have has had than in on for to at by from "
    "that who which with must should should there he she they it his her their".split()
)


@functools.lru_cache(maxsize=256)
def _question(problem: str) -> str:
    """The last sentence with a question mark, and the last sentence."""
    sentences = re.split(r"(?<=[.?!])\s+", problem[-20_000:].strip())
    asked = [each for each in sentences if each.endswith("?")]
    return " ".join(dict.fromkeys([*asked[-1:], sentences[-1]]))


def asks_for_fraction(problem: str) -> bool:
    """Whether 0.5 is meant where the gold answer says 50%."""
    return _FRACTION.search(_question(problem)) is not None


def asks_for_point(problem: str) -> bool:
    """Whether ``(1, 2)`` is a pair; an interval where the problem speaks of none."""
    return _POINT.search(_question(problem)) is not None


def asks_for_interval(problem: str) -> bool:
    """Whether ``(1, 2)`` is an interval, not a pair."""
    return _INTERVAL.search(_question(problem)) is not None and not asks_for_point(problem)


def asks_for_order(problem: str) -> bool:
    """Whether the question says in what order to list values."""
    return _ORDER.search(_question(problem)) is not None


def may_drop_name(name: str, problem: str) -> bool:
    """Whether a word left of ``=`` names what the problem asks for."""
    words, _, _ = _words_of(problem)
    return not problem or name.lower() in _NAMES or _singular(name) in words


def asks_for_percent(problem: str) -> bool:
    """Whether the question, not only the story, speaks of percent."""
    return _PERCENT.search(_question(problem)) is not None


@functools.lru_cache(maxsize=256)
def _asked_words(problem: str) -> tuple[str, ...]:
    """The noun behind the last ``how many``, its adjectives before it; empty without one."""
    asked = list(_ASKED.finditer(problem[:20_000]))
    words = asked[-1][1].split() if asked else []
    cut = next((n for n, word in enumerate(words) if word.lower() in _CUT), len(words))
    return tuple(words[:cut])


def _asked_unit(problem: str) -> Unit:
    """The unit behind the last ``how many`` or, in the question, ``in``; empty without one."""
    words = _asked_words(problem)
    for start in range(min(3, len(words))):
        unit = _longest_unit(words[start:])
        if unit:
            return unit
    found = [_longest_unit(_split_unit(m[1])) for m in _MEASURED_IN.finditer(_question(problem))]
    return next((unit for unit in reversed(found) if unit), ())


def _split_unit(text: str) -> list[str]:
    return re.findall(r"[A-Za-z]+|[/^]", text)


def _longest_unit(words: Sequence[str]) -> Unit:
    for end in range(len(words), 0, -1):
        unit = read_unit([part for word in words[:end] for part in _split_unit(word)])
        if unit is not None and list(words[:end]) != ["in"] and len(words[0]) > 1:
            return unit
    return ()


@functools.lru_cache(maxsize=256)
def _words_of(problem: str) -> tuple[frozenset[str], frozenset[str], bool]:
    """The words of a problem's text, its units, and whether it names one by more than a letter."""
    found = set(_WORD.findall(problem[:20_000])) - {"in", "In", "as", "a", "A"}
    words = frozenset(_singular(word) for word in found)
    named = {word: name for word in found if (name := name_of(word)) is not None}
    units = {part for name in named.values() for part, _ in (*canonical({name: 1}), (name, 1))}
    return words, frozenset(units), any(len(word) > 1 or not word.isalpha() for word in named)


def _singular(word: str) -> str:
    word = word.lower()
    if word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("es", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix("s").removesuffix("e")
    return word.removesuffix("e")


def has_noun(noun: str, problem: str) -> bool:
    """Whether all words of a counted noun are in the problem's own text."""
    words, _, _ = _words_of(problem)
    parts = {_singular(part) for word in noun.split() for part in word.split("-")}
    asked = {_singular(part) for word in _asked_words(problem) for part in word.split("-")}
    return bool(problem) and parts <= words and (not asked or parts <= asked)


def may_drop_unit(unit: Unit, problem: str) -> bool:
    """Whether a unit may be left out against a value that has none.

    Where the problem's text asks for one it has to be that; where it names some, it has to be made
    of them. Letters that are more often something else (``5K``) have to be named in any case;
    degrees only need that nothing is in radians.
    """
    asked = _asked_unit(problem)
    if asked or _asked_words(problem):  # another unit, or no unit at all
        return unit == asked or unit in _PLAIN_UNITS
    _, units, has_units = _words_of(problem)
    measure = _MEASURE.search(_question(problem))
    for name, power in unit:
        if name != "unit" and dimension_of(name) == "[length]" and len(unit) == 1:
            if measure and power != _POWERS.get(measure[1], 1):
                return False
        elif power > 1 and name != "unit":
            return False
        if any(name != other and dimension_of(name) == dimension_of(other) for other in units):
            return False  # 40 m, or 40 cm?
        may_be_angle = "radian" not in units and (not problem or _ANGLE.search(problem))
        if name in units or name == "unit" or (name == "degree" and may_be_angle):
            continue
        if has_units or name in (PERCENT, "degree"):
            return False
        if any(ONE_LETTER[letter] == name for letter in _DOUBTFUL):
            return False
    return True

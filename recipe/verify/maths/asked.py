"""What the problem's own text asks for: the names, nouns and units that an answer may carry."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from recipe.verify.maths.mentions import (
    MAX_CHARS,
    is_ordinary,
    mentioned_units,
    without_possessives,
)
from recipe.verify.maths.operations import nodes_of
from recipe.verify.maths.rates import asked_rate, asks_for_wage
from recipe.verify.maths.tree import Node, num
from recipe.verify.maths.units import Unit, kind_of, name_of, read_unit
from recipe.verify.maths.words import (
    PLAIN_ADJECTIVES,
    TAILS,
    TOTALS,
    changes_value,
    is_plain_noun,
    split_tail,
)

# Symbols that are also scales or common names; without a problem they are not left out.
_DOUBTFUL = frozenset(
    "kelvin ampere volt watt joule newton degree_Celsius degree_Fahrenheit".split()
)
_ANGLE = re.compile(  # not a triangle
    r"\bangl|\\angle|degree|°|\\circ\b|rotat|temperature|latitude|longitude|\barc"
)
_ASKS_ANGLE = re.compile(
    r"(?:[Ww]hat is|[Ff]ind|[Cc]ompute|[Dd]etermine|[Cc]alculate) "
    r"(?:(?:the|acute|obtuse|smallest|largest|measure|size|of) ){0,6}"
    r"\$?(?:angle\b(?!['’]s| bisector)|\\angle(?![a-z]))"
)
_MEASURE = re.compile(  # what is asked for has the power of a length
    r"(?:[Ww]hat is|[Ff]ind|[Cc]ompute|[Dd]etermine|[Cc]alculate) "
    r"(?:(?:the|its|their|total|surface) ){0,3}"
    r"(area|volume|length|perimeter|distance|height|width|radius|diameter|circumference)"
)
_SPACE = re.compile(r"area|volume|surface|region|square|cub(?:e|ic)")
_POWERS = {"area": 2, "volume": 3}
# Names of quantities that a problem may ask for without the word.
_NAMES = frozenset(
    "answer total area perimeter volume length width height radius slope distance speed time cost "
    "price profit sum product ratio probability number mean median average max min maximum minimum "
    "gcd lcm value result angle rate of the".split()
)
_TEMPERATURES = ((("degree_Celsius", 1),), (("degree_Fahrenheit", 1),))
_PLAIN_UNITS = ((("unit", 1),), (("unit", 2),), (("unit", 3),))
_POWER = r"(?:\^?[23](?![0-9A-Za-z]))?"  # cm^2, cm2
_ASKED = re.compile(
    r"\b(?:[Hh]ow many|(?:[Ff]ind|[Ww]hat(?: is| was|['’]s)|[Cc]ompute|[Dd]etermine|[Cc]alculate)"
    rf" the (?:total )?number of) ((?:[A-Za-z/-]{{1,30}}{_POWER} ?){{1,5}})"
)
_MAX_ASKED = 5  # words, as above
_MEASURED_IN = re.compile(  # in two days in minutes
    rf"\bin (?=((?:[A-Za-z/]{{1,20}}{_POWER} ?){{1,4}}))"
)
_SET_UNIT = re.compile(  # $\text{m/s}$, $\mathrm{cm}^{2}$
    r"\$?\\(?:text|mathrm)\{[ ~]?([A-Za-z/ ]{1,20})\}(\^2|\^3)?\$?"
)
_RAISED = re.compile(r"\^\{([23])\}")
_UNIT_PART = re.compile(r"[A-Za-z]+|/|[23]")
_CUT = frozenset(
    "are is was were do does did will would can could of have has had than in on for to at by from "
    "that who which with must should should there he she they it his her their".split()
)
_AGE = re.compile(
    r"\b[Hh]ow old\b|\b(?:[Ww]hat|[Ff]ind|[Cc]alculate|[Dd]etermine)\b[^.?]{0,40}\bages?\b"
)
_OTHER_AGE = re.compile(r"\b(?:month|week|day|hour)s?[ -](?:old|young)")
_LEFT = re.compile(r"\b([A-Za-z]{1,30}) (left|remaining)\b")
# Whoever left, and what is on the left.
_NOT_LEFT = frozenset("the to on from of and he she they it who i we you his her its".split())
_MONEY = re.compile(
    r"\b[Hh]ow much (?:money\b|(?:did|do|does|will|would|can|could|should|must|is|are)\b"
    r"[^.?]{0,80}\b(?:make|earn|pay|spend|cost|owe|save|charge|worth)\b)|\bamount of money\b"
)
_SHARE = re.compile(
    r"\b(?:each|per|every|apiece|averages?|mean|more|fewer|less|extra|difference)\b"
)
_SUBSTANCE = re.compile(r"\b[Hh]ow (?:much(?: more)?|many [a-z]+ of) (?:the )?([a-z]+)")
_HOW = re.compile(r"\b[Hh]ow (far|tall|wide|deep|heavy)\b")
_HOW_ELSE = re.compile(r"\b[Hh]ow (?:much|far|long|old|fast|tall|wide|deep|heavy)\b")
_KINDS_ASKED = dict.fromkeys(("far", "tall", "wide", "deep"), "length") | {"heavy": "mass"}
_CENTS = re.compile(r"\bcents?\b|¢")
_HALVES_OF_DAY = {
    "amclock": re.compile(r"\bin the morning\b"),
    "pmclock": re.compile(r"\b(?:in the (?:afternoon|evening)|at night|tonight)\b"),
}
_COINS = re.compile(r"\b(?:penn(?:y|ies)|nickels?|dimes?|quarters?|coins?)\b")
_WORD = re.compile(r"[A-Za-z]+")


@functools.lru_cache(maxsize=256)
def question(problem: str) -> str:
    """Return the last sentence with a question mark, and the last sentence."""
    sentences = re.split(r"(?<=[.?!])\s+", problem[-MAX_CHARS:].strip())
    asked = [each for each in sentences if each.endswith("?")]
    return " ".join(dict.fromkeys([*asked[-1:], sentences[-1]]))


def may_drop_name(name: str, problem: str) -> bool:
    """Return whether words left of ``=`` name what the problem asks for."""
    words = set(name.lower().split()) - _NAMES
    return not problem or {_singular(word) for word in words} <= _words_of(problem)


def has_noun(noun: str, problem: str) -> bool:
    """Return whether a counted noun is the problem's own.

    All its words have to be in the text and, if it says ``how many``, in what that asks for.
    A noun with a word that may also compare, measure or change the value has to be what is asked
    for: ``more apples``, ``pairs of shoes``. ``left``, ``old`` and ``per day`` have to be asked for
    too, and ``in total`` is wrong where the question wants a share or a difference.
    """
    words, tail = split_tail(noun.split())
    if tail and not _asks_for_tail(tail, problem):
        if tail not in TAILS | TOTALS:
            return False
        words = noun.split()
    is_total = len(words) > 1 and words[0] == "total" and "total" not in _asked_words(problem)
    if is_total and _asks_for_tail("total", problem):
        words = words[1:]
    while len(words) > 1 and words[0] in PLAIN_ADJECTIVES and not _is_asked_so(words, problem):
        words = words[1:]
    if not problem:  # unknown: a plain noun says what was counted
        return bool(words) and all(map(is_plain_noun, words))
    if not words:
        return True
    if _is_amount(noun, problem):
        return True
    if words[-1] == "old" or not all(is_plain_noun(word) for word in words):
        return _is_what_is_asked(words, problem)
    parts = {_singular(part) for word in words for part in word.split("-")}
    asked = {_singular(part) for word in _asked_words(problem) for part in word.split("-")}
    return parts <= _words_of(problem) and (not asked or parts <= asked)


def _is_asked_so(words: Sequence[str], problem: str) -> bool:
    """Tell whether the question has the adjective itself."""
    return words[0] in map(str.lower, _after_how_many(problem))


def _is_what_is_asked(words: Sequence[str], problem: str) -> bool:
    """Return whether words follow ``how many``, from the first on.

    A word that changes a value, ``square`` of "how many square tiles", has to end the asked noun as
    it is written there; a plural always does, and then adjectives before it may be left out.
    """
    following, noun = _after_how_many(problem), _asked_words(problem)
    start = following[: len(words)]
    is_start = [*map(_singular, words)] == [*map(_singular, start)]
    last = words[-1]
    if not changes_value(last) or last == "of":
        return is_start and last != "of"
    if is_start and last == start[-1].lower():
        return last.endswith("s") or len(words) == len(noun)
    is_whole = len(noun) < _MAX_ASKED  # its end may be cut off
    end = [word.lower() for word in noun[-len(words) :]]
    return is_whole and last.endswith("s") and [*words] == end


def may_drop_unit(unit: Unit, problem: str) -> bool:
    """Return whether a unit may be left out against a value that has none.

    Where the problem's text asks for a unit, it has to be that one; else the text has to mention
    it, and no other of its kind. A time that the question counts by may divide it, and money over
    a time needs such a question. Degrees only require that the text has angles and nothing in
    radians, dollars that it asks for money; square units require nothing.
    """
    if not problem:
        return all(
            name not in _DOUBTFUL and (power < 2 or kind_of(name) == "length")
            for name, power in unit
        )
    rate = asked_rate(question(problem))
    above = tuple(each for each in unit if each != (rate, -1))
    if above != unit and may_drop_unit(above, problem):
        return True
    asked = _asked_unit(problem)
    if asked or _asked_words(problem):  # another unit, or no unit at all
        is_short = unit == (("degree", 1),) and asked in _TEMPERATURES
        return unit == asked or is_short or unit in _PLAIN_UNITS
    kinds = {(kind_of(name), power > 0) for name, power in unit}
    is_wage = {("money", True), ("time", False)} <= kinds
    if is_wage and above == unit and not asks_for_wage(question(problem)):
        return False
    kind = _asked_kind(problem)
    if kind and unit not in _PLAIN_UNITS and all(kind_of(name) != kind for name, _ in unit):
        return False
    return all(
        name == "unit" or (_has_power(name, power, unit, problem) and _is_told(name, problem))
        for name, power in unit
    )


def has_angle_unit(unit: Unit, gold: Node, problem: str) -> bool:
    r"""Return whether degrees or radians that the problem does not name fit its gold answer.

    ``\frac{\pi}{3}`` and ``\arctan 2`` are in radians, 60 is not.
    """
    if unit not in ((("degree", 1),), (("radian", 1),)) or unit[0][0] in mentioned_units(problem):
        return True
    has_pi = any(
        node == Node("const", value="pi") or (node.kind == "fn" and node.value.startswith("arc"))
        for node in nodes_of(gold)
    )
    return has_pi == (unit[0][0] == "radian")


def in_radians(unit: Unit, angle: Node, problem: str) -> Node | None:
    r"""Return an angle in degrees in radians, ``60^\circ`` as ``60\pi/180``.

    ``None`` unless the question wants an angle and the problem names no unit of it, nor pi.
    """
    has_unit = mentioned_units(problem) & {"degree", "radian"} or re.search(r"\\pi\b|π", problem)
    if unit != (("degree", 1),) or has_unit or not _ASKS_ANGLE.search(question(problem)):
        return None
    return Node("mul", (angle, Node("div", (Node("const", value="pi"), num(180)))))


def _asked_kind(problem: str) -> str:
    """Return what the question's own words measure; empty where they leave it open."""
    asked = question(problem)
    match = _HOW.search(asked)
    return "money" if _MONEY.search(asked) else _KINDS_ASKED[match[1]] if match else ""


def _has_power(name: str, power: int, unit: Unit, problem: str) -> bool:
    """Return whether a length has the power of what is asked for, and any other unit none."""
    if kind_of(name) != "length" or len(unit) > 1:
        return power < 2
    measure = _MEASURE.search(question(problem))
    if measure is None:
        return power == 1 or _SPACE.search(problem) is not None
    return power == _POWERS.get(measure[1], 1)


def _is_told(name: str, problem: str) -> bool:
    units = mentioned_units(problem)
    if half := _HALVES_OF_DAY.get(name):  # what is asked for, not when something began
        units = units | ({name} if half.search(question(problem)) else set())
    others = {other for other in units - {name} if kind_of(other) == kind_of(name)}
    if name == "dollar" and not others:
        is_asked = _MONEY.search(question(problem)) is not None
        return name in units or (is_asked and not _COINS.search(problem))
    if name == "dollar" and others == {"cent"}:  # pens at 50 cents and books at $5
        return name in units and "$" in problem and not _CENTS.search(question(problem))
    may_be_angle = name in ("degree", "radian") and _ANGLE.search(problem) is not None
    may_be_angle = may_be_angle and _MEASURE.search(question(problem)) is None
    return not others and (name in units or may_be_angle)


@functools.lru_cache(maxsize=256)
def _words_of(problem: str) -> frozenset[str]:
    """Return the words of a problem's text, in the singular."""
    return frozenset(map(_singular, _WORD.findall(without_possessives(problem))))


def _singular(word: str) -> str:
    word = word.lower()
    if word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("es", "s"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix("s").removesuffix("e")
    return word.removesuffix("e")


def _is_amount(noun: str, problem: str) -> bool:
    """Tell whether a noun is a unit ``of`` what the problem measures: ``liters of water``."""
    unit, _, substance = noun.partition(" of ")
    measured = read_unit(unit.split())
    if not measured or not substance or not all(map(is_plain_noun, substance.split())):
        return False
    asked = question(problem)
    is_named = any(match[1] not in _CUT for match in _SUBSTANCE.finditer(asked))
    told = re.compile(rf"\b(?:of|much) (?:more |the )?{re.escape(substance)}\b")
    is_told = told.search(asked if is_named else problem[-MAX_CHARS:]) is not None
    return is_told and may_drop_unit(measured, problem)


def _asks_for_tail(word: str, problem: str) -> bool:
    """Tell whether the question asks how many are left, how old someone is, or by which time."""
    asked = question(problem)
    if word in TOTALS:
        return not asked_rate(asked) and _SHARE.search(asked) is None
    if word.startswith("per "):
        rate = word.removeprefix("per ")
        told = rf"\b(?:per|each|every) {re.escape(rate)}\b"
        is_time = kind_of(name_of(rate) or "") == "time"
        return rate == asked_rate(asked) if is_time else re.search(told, asked) is not None
    if word == "old":
        return word in _asked_words(problem) or _AGE.search(asked) is not None
    before = [match[1] for match in _LEFT.finditer(asked) if match[2] == word]
    return any(each.islower() and each not in _NOT_LEFT for each in before)


@functools.lru_cache(maxsize=256)
def _after_how_many(problem: str) -> tuple[str, ...]:
    """Return the words after the question's last ``how many``; empty without one.

    Those of the whole problem, where the question has no ``how`` of its own (``how much``).
    """
    asks_otherwise = _HOW_ELSE.search(question(problem)) is not None
    for text in (question(problem), "" if asks_otherwise else problem[:MAX_CHARS]):
        if asked := list(_ASKED.finditer(_with_plain_units(without_possessives(text)))):
            return tuple(asked[-1][1].split())
    return ()


def _asked_words(problem: str) -> tuple[str, ...]:
    """Return the noun after the last ``how many`` with its adjectives; empty without one."""
    words = _after_how_many(problem)
    cut = next((n for n, word in enumerate(words) if word.lower() in _CUT), len(words))
    return words[:cut]


def _asked_unit(problem: str) -> Unit:
    """Return the unit after the last ``how many`` or the question's ``in``; years for an age."""
    words = _asked_words(problem)
    for start in range(min(3, len(words))):
        unit = _longest_unit(words[start:])
        if unit:
            return unit
    asked = question(problem)
    found = [
        _longest_unit(_split_unit(match[1]))
        for match in _MEASURED_IN.finditer(_with_plain_units(asked))
    ]
    is_age = not words and _AGE.search(asked) and not _OTHER_AGE.search(problem)
    return next((unit for unit in reversed(found) if unit), (("year", 1),) if is_age else ())


def _with_plain_units(text: str) -> str:
    r"""Return a text whose ``cm²`` and ``$\text{cm}^{2}$`` are ``cm^2``."""
    text = _RAISED.sub(r"^\1", text.replace("²", "^2").replace("³", "^3"))
    return _SET_UNIT.sub(r"\1\2", text) if "\\" in text else text


def _split_unit(text: str) -> list[str]:
    parts = _UNIT_PART.findall(text)
    return [each for part in parts for each in (("^", part) if part.isdigit() else (part,))]


def _longest_unit(words: Sequence[str]) -> Unit:
    for end in range(len(words), 0, -1):
        unit = read_unit([part for word in words[:end] for part in _split_unit(word)])
        # a letter alone is a unit where it ends the clause or goes on as one: in N, in m/s
        is_letter = len(words[0]) < 2 and len(words) > 1 and words[1] not in ("/", "^")
        is_other = words[0] == "in" or is_letter or is_ordinary(words[0])
        if unit is not None and not is_other:
            return unit
    return ()

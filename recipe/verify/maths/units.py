r"""Units, money, number words and percent: one table, and how the words after a number are read.

A closed table: a unit is spelled as here, or it is not a unit. A prefix is read in ``millimeters``,
where both parts are whole words, and in the symbols that are listed (``mm``), so that no ordinary
word (has, fly, camp, exam) is taken for one. ``units.json`` has the words.
A word is never dropped because it is unknown: what is not read here makes the whole answer a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

Unit = tuple[tuple[str, int], ...]  # canonical names and exponents, in order

_DATA = json.loads(Path(__file__).with_name("units.json").read_text(encoding="utf-8"))
CURRENCY_SIGNS = {r"\$": "$", r"\euro": "€", r"\pounds": "£"} | {each: each for each in "₹¥₩₽"}
_POWER_WORDS = {"squared": 2, "cubed": 3}
_BEFORE_UNIT = {"square": 2, "sq": 2, "cubic": 3, "cu": 3, "平方": 2, "立方": 3}
_OVER = frozenset("per a an each every /".split())  # before a time: dollars every week

NUMBERS = {word: value for value, word in enumerate(_DATA["ones"].split())} | {
    word: 10 * value for value, word in enumerate(_DATA["tens"].split(), start=2)
}
_SCALES: dict[str, int] = _DATA["scales"]
# Words that change what a value says, count or compare; never part of a counted noun.
_NO_NOUNS = {word for line in _DATA["no_nouns"] for word in line.split()}.union(
    NUMBERS, _SCALES, _DATA["parts"].split(), _POWER_WORDS, _BEFORE_UNIT
)
_CHANGING = re.compile(  # tripled, daily, tenfold, octuples
    r"(?:[a-z]{2}(?<!e)ed|[a-z]{3}ly|(?:[a-z]fold|uple|uplet|illion|th)s?)(?![a-z])"
)
TOTALS = frozenset({"in total", "in all", "total", "altogether"})  # 3 bolts in total
TAILS = TOTALS | {"left", "remaining", "old"}  # 12 miles left, 15 years old
# Said of any count: 12 such pairs, 12 pieces.
COUNTERS = frozenset(
    "different distinct possible such piece pieces item items way ways unit units".split()
)
_MAX_NOUN_WORDS = 4
_MAX_NUMBER_WORDS = 12


@dataclass(frozen=True, slots=True)
class Suffix:
    """The words that follow a value.

    Attributes:
        scale: What the value is multiplied with (``million``).
        unit: ``((canonical name, exponent), ...)``, ``(("percent", 1),)`` for percent.
        noun: Words that are not a unit.
        text: All of it, as written.
    """

    scale: Fraction = Fraction(1)
    unit: Unit = ()
    noun: str = ""
    text: str = ""

    @property
    def is_percent(self) -> bool:
        """Whether the unit is percent."""
        return self.unit == (("percent", 1),)


_KINDS: dict[str, str] = {}  # what a unit measures
_NAMES: dict[str, str] = {}  # canonical names of all words
_SIGNS: dict[str, str] = {
    sign: name for name, signs in _DATA["prefixed"].items() for sign in signs.split()
}
for _kind, _units in _DATA["units"].items():
    for _name, _unit in _units.items():
        _SIGNS |= {sign: _name for sign in _unit.get("signs", "").split()}
        for _prefix in ("", *_DATA["prefixes"].split()) if "takes_prefixes" in _unit else ("",):
            _KINDS[_prefix + _name] = _kind
            for _word in (_name, *_unit.get("words", "").split()):
                _NAMES[_prefix + _word] = _NAMES[f"{_prefix}{_word}s"] = _prefix + _name
# Symbols that have no twin in the other case, unlike mg and Mg: KM is km.
_ANY_CASE = frozenset(_DATA["any_case"].split())


def name_of(word: str) -> str | None:
    """Return the canonical name of one unit, ``None`` when ``word`` is not one."""
    lower = word.lower()
    if word in _SIGNS:
        return _SIGNS[word]
    return _NAMES.get(lower) or (_SIGNS[lower] if lower in _ANY_CASE else None)


def is_symbol(word: str) -> bool:
    """Return whether a unit is written by a sign or abbreviation, not by a word."""
    return word.lower() not in _NAMES


def kind_of(name: str) -> str:
    """Return what a unit measures: ``length``, ``money``; the unit itself if no other does."""
    return _KINDS.get(name, name)


def read_unit(words: Sequence[str]) -> Unit | None:
    r"""Return the unit that all words make, else ``None``: ``square feet``, ``m / s ^ 2``.

    ``/`` and ``per`` divide what follows, up to the end; an exponent is a word after ``^``.
    """
    powers: dict[str, int] = {}
    rest, last, sign, before = list(words), "", 1, 1
    while rest:
        word = rest.pop(0)
        lower = word.lower()
        exponent = _POWER_WORDS.get(lower, 0)
        if word == "^" and rest and re.fullmatch(r"-?[1-4]", rest[0]):
            exponent = int(rest.pop(0))
        if exponent and last and abs(powers[last]) == 1:
            powers[last] *= exponent
            last = ""
        elif lower in _BEFORE_UNIT and before == 1 and rest:
            before = _BEFORE_UNIT[lower]
        elif word in ("/", "per") and powers and sign == before == 1 and rest:
            sign, last = -1, ""
        elif (name := name_of(word)) is not None and name not in powers:
            if last == "degree" and name in ("degree_Celsius", "degree_Fahrenheit"):
                del powers["degree"]
            powers[name], last, before = sign * before, name, 1
        else:
            return None
    if not powers or ("percent" in powers and powers != {"percent": 1}):
        return None  # 5% cm is not 5 cm
    return canonical(powers) if before == 1 else None


def canonical(powers: dict[str, int]) -> Unit:
    """Return units in order, compound ones split into their parts."""
    merged = dict(powers)
    for name, parts in _DATA["compound"].items():
        if name in merged:
            count = merged.pop(name)
            for part, power in parts.items():
                merged[part] = merged.get(part, 0) + power * count
    return tuple(sorted((name, power) for name, power in merged.items() if power))


def number_of(words: Sequence[str]) -> Fraction | None:
    """Return the value of ``four``, ``twenty-five``, ``three million`` and the like."""
    words = [part.lower() for word in words for part in word.split("-")]
    if words[1:] and words[0] in ("a", "an"):
        words[0] = "one"
    scale = _SCALES[words.pop()] if words[1:] and words[-1] in _SCALES else 1
    numbers = [NUMBERS.get(word, -1) for word in words]
    is_tens = len(numbers) == 2 and numbers[0] >= 20 and 0 < numbers[1] < 10
    is_number = is_tens or (len(numbers) == 1 and numbers[0] >= 0)
    return Fraction(sum(numbers) * scale) if is_number else None


def is_noun(word: str) -> bool:
    """Return whether a word can name something: no comparison, negation, number or operation."""
    return all(
        part not in _NO_NOUNS and part.removesuffix("s") not in _NO_NOUNS
        for part in word.lower().split("-")
    )


def is_plain_noun(word: str) -> bool:
    """Return whether a word is a noun that only has to be in the problem, and not a unit."""
    return is_noun(word) and name_of(word) is None and not _CHANGING.search(word.lower())


def read_suffix(words: Sequence[str]) -> Suffix | None:
    r"""Read the words that follow a value; ``None`` when some of them are not understood.

    Args:
        words: Words, currencies, the marks ``%``, ``/``, ``^``, ``\degree``, numerals after ``^``.
    """
    rest = re.sub(r"(?i)\bper cents?\b", "percent", "\0".join(words).replace("\0", " ")).split(" ")
    text = " ".join(words)
    scale = Fraction(1)
    while rest and rest[0].lower() in _SCALES:
        scale *= _SCALES[rest.pop(0).lower()]
    if is_rate(rest[-2:]):
        rest[-2:] = ["per", name_of(rest[-1]) or ""]  # dollars every week
    for size in (0, 2, 1):
        head, tail = rest[: len(rest) - size], " ".join(rest[len(rest) - size :]).lower()
        if size and tail not in TAILS and not is_rate(rest[-size:]):
            continue
        unit = read_unit(head) if head else ()
        if unit is not None:
            return Suffix(scale, unit, tail, text)
        if size or not is_rate(rest[-2:]):
            noun = " ".join(head).lower()
            is_tailed = not size and any(noun.endswith(f" {each}") for each in TAILS)
            if not is_tailed and _may_count(head):
                return Suffix(scale, (), f"{noun} {tail}".strip(), text)
    return None


def _may_count(words: Sequence[str]) -> bool:
    """Tell whether words may be a counted noun; which ones, the problem says."""
    return len(words) <= _MAX_NOUN_WORDS and all(
        word.replace("-", "").isalpha() and (len(word) > 2 or not word.isascii()) for word in words
    )


def read_counted(words: Sequence[str]) -> tuple[Fraction, Suffix] | None:
    """Read a whole number in words and its unit or noun: ``four apples``, ``ninety kilometers``."""
    if words[0].lower() in _SCALES:
        return None  # gross profit, score board
    for size in range(min(len(words), _MAX_NUMBER_WORDS), 0, -1):
        value = number_of(words[:size])
        if value is not None:
            suffix = read_suffix(words[size:]) if words[size:] else Suffix()
            if suffix is None or not suffix.scale == value.denominator == 1:
                return None
            return value, suffix
    return None


def is_rate(words: Sequence[str]) -> bool:
    """Tell whether two words are ``per`` or the like and a time: ``per day``, ``every week``."""
    if len(words) != 2 or words[0].lower() not in _OVER:
        return False
    is_time = kind_of(name_of(words[1]) or "") == "time"
    return is_time and (words[0] in ("per", "/") or not is_symbol(words[1]))  # a m is not a minute

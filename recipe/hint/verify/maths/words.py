"""Words of an answer: numbers, scales, percent, units of measure, counted nouns.

Units come from pint's registry, of which only the units of ``_UNITS`` are taken; it supplies their
spellings, plurals, prefixes and dimensions. A word is never dropped because it is unknown: what
is not read here makes the whole answer a text.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

PERCENT = "percent"
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_NUMBERS = {word: value for value, word in enumerate(_ONES)} | {
    word: 10 * value
    for value, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2
    )
}
_SCALES = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "dozen": 12, "dozens": 12, "score": 20, "gross": 144, "millions": 10**6, "billions": 10**9,
}  # fmt: skip
_PARTS = {
    "half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "hundredth": 100, "thousandth": 1000,
}  # fmt: skip
_PARTS |= {("halves" if word == "half" else f"{word}s"): value for word, value in _PARTS.items()}
_POWER_WORDS = {"squared": 2, "cubed": 3}
_BEFORE_UNIT = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
# Words that change what a value says, count or compare; never part of a counted noun.
_NO_NOUNS = frozenset(
    "a about above after all almost an and any approximately are around as at away be before below "
    "between both but by can could couple down double doubled during each either else equal equals "
    "even every except few fewer for from greater had has have if in incorrect instead into is it "
    "just last least left less may maybe mod modulo minus more most multiplied must near nearly "
    "negative neither next no none nor not nothing odd of off on once one only or other otherwise "
    "over own pair pairs per perhaps plus positive possibly probably right roughly same several "
    "should since so some than that the their them then there these they this those times to "
    "triple twice thrice under unless unlike until unknown up upto vs was were when where "
    "which while with within without would wrong xor yes false true correct factorial root "
    "roots inverse reciprocal square squares cube cubes logarithm log sine cosine tangent hundreds "
    "thousands tens trillions percent percentage power powers modulus quadrillion quintillion lakh "
    "lakhs crore crores googol binary octal hexadecimal base imaginary sine cosine tangent secant "
    "exponent excluding including besides remaining missing extra additional another further non "
    "anti fake never nonsense remainder short eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth thirtieth fortieth fiftieth sixtieth "
    "seventieth eightieth ninetieth millionth billionth trillionth".split()
) | set(_NUMBERS) | set(_SCALES) | set(_PARTS) | set(_POWER_WORDS)  # fmt: skip

_UNITS = frozenset(
    "meter inch foot yard mile nautical_mile light_year angstrom micron gram pound ounce ton "
    "metric_ton carat second minute hour day week month year decade century liter gallon quart "
    "pint cup tablespoon teaspoon fluid_ounce hectare acre degree radian arcminute "
    "degree_Celsius degree_Fahrenheit kelvin newton joule watt volt ampere ohm hertz pascal "
    "calorie bit byte mole mile_per_hour kilometer_per_hour horsepower atmosphere bar "
    "electron_volt knot coulomb farad tesla henry lumen lux candela watt_hour stone "
    "cubic_centimeter".split()
)
ONE_LETTER = {
    "m": "meter", "g": "gram", "s": "second", "h": "hour", "l": "liter", "L": "liter",
    "N": "newton", "J": "joule", "W": "watt", "V": "volt", "A": "ampere", "K": "kelvin",
    "C": "degree_Celsius", "F": "degree_Fahrenheit",
}  # fmt: skip
# Letters that are also scales or common names: a unit only where the other side has it too.
_MONEY = {
    "dollar": "dollar", "dollars": "dollar", "usd": "dollar", "$": "dollar", "cent": "cent",
    "cents": "cent", "euro": "euro", "euros": "euro", "eur": "euro", "€": "euro", "gbp": "gbp",
    "£": "gbp", "rupee": "rupee", "rupees": "rupee", "yen": "yen", "yuan": "yuan",
}  # fmt: skip
_COUNTED = {"unit": "unit", "units": "unit"}  # "5 square units" is 5
_MARKS = {"%": "percent", "°": "degree", "\\circ": "degree", "\\degree": "degree", "\\$": "$"}
_MAX_NOUN_WORDS = 4
Unit = tuple[tuple[str, int], ...]  # canonical names and exponents, in order


@dataclass(frozen=True, slots=True)
class Suffix:
    """What stands behind a value.

    Attributes:
        scale: What the value is multiplied with (``million``).
        power: What it is raised to (``squared``).
        unit: ``((canonical name, exponent), ...)``, ``(("percent", 1),)`` for percent.
        noun: Words that are no unit.
        text: All of it, as written.
    """

    scale: Fraction = Fraction(1)
    power: int = 1
    unit: Unit = ()
    noun: str = ""
    text: str = ""

    @property
    def is_percent(self) -> bool:
        """Whether the unit is percent."""
        return self.unit == ((PERCENT, 1),)


def number_of(words: Sequence[str]) -> Fraction | None:
    """The value of words such as ``minus twenty-five``, ``three million``, ``two thirds``."""
    words = [part.lower() for word in words for part in word.split("-")]
    if words and words[0] in ("minus", "negative"):
        value = number_of(words[1:])
        return None if value is None else -value
    if not words or len(words) > 12:
        return None
    if words[-1] in _PARTS and len(words) <= 2:
        return _part(words)
    if words[0] in ("a", "an") and len(words) > 1:
        words = ["one", *words[1:]]
    if words[0] in _SCALES:
        words = ["one", *words]
    return _whole_number(words)


def _part(words: Sequence[str]) -> Fraction | None:
    """``half``, ``a third``, ``two thirds``; ``third`` and ``twenty-fifth`` are places in a row."""
    part = words[-1]
    is_plural = part.endswith("s") or part == "halves"
    if len(words) == 1:
        return Fraction(1, _PARTS[part]) if part in ("half", "quarter") else None
    top = 1 if words[0] in ("a", "an") else _NUMBERS.get(words[0], 0)
    if not 1 <= top < 20 or is_plural != (top > 1):
        return None
    return Fraction(top, _PARTS[part])


def is_noun(word: str) -> bool:
    """Whether a word can name something: no comparison, negation, number or operation."""
    return not any(
        part.removesuffix("s") in _NO_NOUNS or part in _NO_NOUNS for part in word.lower().split("-")
    )


def _whole_number(words: Sequence[str]) -> Fraction | None:
    total, current, last = 0, 0, 10**15
    previous = ""
    for word in words:
        if word in _NUMBERS:
            fits = (
                not previous
                or previous in _SCALES
                or (_NUMBERS.get(previous, 0) >= 20 and 0 < _NUMBERS[word] < 10)
            )
            if not fits:
                return None
            current += _NUMBERS[word]
        elif word in _SCALES and current:
            scale = _SCALES[word]
            if scale == 100:
                current *= 100
            elif scale < last:
                total, current, last = total + current * scale, 0, scale
            else:
                return None
        else:
            return None
        previous = word
    return Fraction(total + current)


def read_suffix(words: Sequence[str]) -> Suffix | None:
    r"""Read what stands behind a value; ``None`` when some of it is not understood.

    Args:
        words: Words, currencies, the marks ``%``, ``/``, ``^``, ``\degree``, numerals after ``^``.
    """
    rest = list(words)
    text = " ".join(words)
    scale, power = Fraction(1), 1
    while rest and rest[0].lower() in _SCALES:
        scale *= _SCALES[rest.pop(0).lower()]
    if rest and rest[0].lower() in _POWER_WORDS and scale == 1:
        power = _POWER_WORDS[rest.pop(0).lower()]
    if not rest:
        return Suffix(scale, power, text=text)
    unit = read_unit(rest)
    if unit is not None:
        return Suffix(scale, power, unit, text=text)
    noun = _read_noun(rest)
    return Suffix(scale, power, noun=noun, text=text) if noun else None


def _read_noun(words: Sequence[str]) -> str:
    are_nouns = len(words) <= _MAX_NOUN_WORDS and all(
        len(word) > 2 and word.replace("-", "").isalpha() and word.isascii()
        and is_noun(word)
        and name_of(word) is None
        for word in words
    )  # fmt: skip
    return " ".join(words).lower() if are_nouns else ""


def read_unit(words: Sequence[str]) -> Unit | None:
    """``None`` unless all of the words make one unit; ``/`` and ``per`` divide."""
    over = [place for place, word in enumerate(words) if word in ("/", "per")]
    if len(over) > 1:
        return None
    top = _read_factors(words[: over[0]] if over else words)
    bottom = _read_factors(words[over[0] + 1 :]) if over else {}
    if not top or bottom is None or (over and not bottom):
        return None
    return canonical({**top, **{name: top.get(name, 0) - power for name, power in bottom.items()}})


def _read_factors(words: Sequence[str]) -> dict[str, int] | None:
    """Units side by side with their exponents: ``square feet``, ``cm ^ 2``, ``metres squared``."""
    powers: dict[str, int] = {}
    rest, last, pending = list(words), "", 1
    while rest:
        word = rest.pop(0)
        lower = word.lower()
        exponent = 0
        if word == "^":
            exponent = int(rest.pop(0)) if rest and rest[0] in ("1", "2", "3") else 0
        elif lower in _POWER_WORDS:
            exponent = _POWER_WORDS[lower]
        if exponent and last:
            powers[last], last = exponent, ""
        elif lower in _BEFORE_UNIT and pending == 1:
            pending = _BEFORE_UNIT[lower]
        elif (name := name_of(word)) is not None and name not in powers:
            if last == "degree" and name in ("degree_Celsius", "degree_Fahrenheit"):
                del powers["degree"]
            powers[name], last, pending = pending, name, 1
        else:
            return None
    return powers if pending == 1 else None


def canonical(powers: dict[str, int]) -> Unit:
    """Units in order, compound ones taken apart."""
    merged = dict(powers)
    for name, parts in (
        ("mile_per_hour", {"mile": 1, "hour": -1}),
        ("kilometer_per_hour", {"kilometer": 1, "hour": -1}),
        ("cubic_centimeter", {"centimeter": 3}),
    ):
        if name in merged:
            count = merged.pop(name)
            for part, power in parts.items():
                merged[part] = merged.get(part, 0) + power * count
    return tuple(sorted((name, power) for name, power in merged.items() if power))


@functools.lru_cache(maxsize=4096)
def name_of(word: str) -> str | None:
    """The canonical name of one unit, ``None`` when ``word`` is none."""
    word = _MARKS.get(word, word)
    lower = word.lower()
    if lower in (PERCENT, "percentage"):
        return PERCENT
    if lower in _MONEY or lower in _COUNTED:
        return _MONEY.get(lower) or _COUNTED[lower]
    if len(word) == 1:
        return ONE_LETTER.get(word)
    if word in _MARKS.values():
        return word
    if len(word) > 20 or not word.isalpha() or not word.isascii() or lower in ("as", "at", "am"):
        return None
    tried = dict.fromkeys((word, lower, lower.removesuffix("s")))
    for spelling in tried:
        for prefix, unit, _ in _registry().parse_unit_name(spelling):
            if unit in _UNITS and not (prefix and unit in ("inch", "ton", "degree", "day", "pint")):
                return prefix + unit
    return None


class NeedsUnits(Exception):
    """A word may be a unit, and the registry is not loaded in this process."""


_loaded: list[Any] = []


def load_units() -> None:
    """Load pint's registry, half a second once; before that its units raise ``NeedsUnits``."""
    if not _loaded:
        from pint import UnitRegistry

        _loaded.append(UnitRegistry())


def _registry() -> Any:
    if not _loaded:
        raise NeedsUnits
    return _loaded[0]


def dimension_of(name: str) -> str:
    """The dimension of a unit, as text."""
    if name in _MONEY.values():
        return "money"
    if name in (PERCENT, "unit"):
        return name
    return str(_registry().get_dimensionality(name))

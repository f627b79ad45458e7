r"""Units, money, number words and percent: one table, and how the words after a number are read.

A closed table: a unit is spelled as here, or it is not a unit. A prefix is read in ``millimeters``,
where both parts are whole words, and in the symbols that are listed (``mm``), so that no ordinary
word (has, fly, camp, exam) is taken for one. A word is never dropped because it is unknown: what
is not read here makes the whole answer a text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Unit = tuple[tuple[str, int], ...]  # canonical names and exponents, in order

# Canonical name, then other words for it, then after ":" its signs; plurals in "s" are made.
# "+" takes prefixes, and the prefix p with the sign s makes the sign "ps" where it is listed.
_UNITS = {
    "length": "+meter metre 米 :m mtr|inch inches :in|foot feet :ft|yard :yd yds|mile 英里 :mi"
    "|lightyear|angstrom|micron",
    "area": "hectare 公顷 :ha|acre",
    "volume": "+liter litre 升 :l L|gallon :gal|quart :qt|pint :pt|cup|tablespoon :tbsp"
    "|teaspoon :tsp",
    "mass": "+gram gramme 克 :g|pound :lb lbs|ounce :oz|+ton 吨|tonne|carat",
    "time": "+second 秒 :s sec secs|minute 分钟 :min mins|hour 小时 :h hr hrs|day 天"
    "|week :wk wks|month|year 年 :yr yrs|decade|century centuries",
    "temperature": "degree_Celsius celsius :C degC|degree_Fahrenheit fahrenheit :F degF|kelvin :K",
    "angle": "degree 度 :deg ° \\circ \\degree|radian :rad|arcminute",
    "energy": "+joule :J|+calorie :cal|+watthour :Wh|+electronvolt :eV",
    "power": "+watt :W|horsepower :hp",
    "data": "+bit|+byte",
    "force": "+newton :N",
    "voltage": "+volt :V",
    "current": "+ampere amp :A",
    "resistance": "+ohm :Ω \\Omega",
    "frequency": "+hertz :Hz",
    "pressure": "+pascal :Pa|atmosphere :atm",
    "amount": "+mole :mol",
    "money": "dollar 美元 :$ \\$ USD usd|cent :¢|euro :€ \\euro EUR eur|gbp :£ \\pounds GBP gbp"
    "|rupee :₹ Rs INR|yen 円 日元 :¥ JPY|yuan 元 :CNY RMB|won :₩|rouble ruble :₽|peso|franc|rand"
    "|dinar|shilling|real reais",
    "clock": "amclock|pmclock",
    "unit": "unit",  # "5 square units" is 5
    "percent": "percent percentage :% \\%",
}
_PREFIXES = "kilo hecto deca deci centi milli micro nano pico mega giga tera".split()
_PREFIXED = {  # signs that a prefix makes, and words of two parts
    "kilometer": "km 千米 公里", "decimeter": "dm", "centimeter": "cm 厘米", "millimeter": "mm",
    "micrometer": "um", "nanometer": "nm", "deciliter": "dl dL", "centiliter": "cl cL",
    "milliliter": "ml mL", "kiloliter": "kl kL", "kilogram": "kg kgs kilo kilos 千克 公斤",
    "milligram": "mg", "microgram": "ug", "millisecond": "ms", "microsecond": "us",
    "nanosecond": "ns", "kilojoule": "kJ", "megajoule": "MJ", "kilocalorie": "kcal",
    "kilowatthour": "kWh", "megawatthour": "MWh", "kiloelectronvolt": "keV",
    "megaelectronvolt": "MeV", "kilowatt": "kW", "megawatt": "MW", "gigawatt": "GW",
    "milliwatt": "mW", "kilobyte": "kB KB", "megabyte": "MB", "gigabyte": "GB", "terabyte": "TB",
    "kilonewton": "kN", "kilovolt": "kV", "millivolt": "mV", "milliampere": "mA",
    "kilohertz": "kHz", "megahertz": "MHz", "gigahertz": "GHz", "kilopascal": "kPa",
    "megapascal": "MPa", "mile_per_hour": "mph", "kilometer_per_hour": "kph kmh kmph",
    "cubic_centimeter": "cc",
}  # fmt: skip
_COMPOUND = {
    "mile_per_hour": {"mile": 1, "hour": -1},
    "kilometer_per_hour": {"kilometer": 1, "hour": -1},
    "cubic_centimeter": {"centimeter": 3},
}
# Symbols that have no twin in the other case, unlike mg and Mg: KM is km.
_ANY_CASE = frozenset(
    "km cm kg kgs ft yd yds lb lbs oz hr hrs min mins sec secs mph kph kmh kmph gal tsp tbsp yr "
    "yrs wk wks kilo kilos".split()
)
CURRENCY_SIGNS = {
    r"\$": "$",
    r"\euro": "€",
    r"\pounds": "£",
    "₹": "₹",
    "¥": "¥",
    "₩": "₩",
    "₽": "₽",
}
_POWER_WORDS = {"squared": 2, "cubed": 3}
_BEFORE_UNIT = {"square": 2, "sq": 2, "cubic": 3, "cu": 3, "平方": 2, "立方": 3}
_OVER = frozenset("per a an each every /".split())  # before a time: dollars every week

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
NUMBERS = {word: value for value, word in enumerate(_ONES)} | {
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
    "seventieth eightieth ninetieth millionth billionth trillionth "
    # These look like nouns, but may change the value before them.
    "permil permille promille basis bp ppm ppb myriad hex ternary quaternary quinary radical "
    "squareroot cuberoot conjugate complement supplement opposite transpose derivative approx "
    "circa infinite infinity undefined nil null naught void invalid impossible unsure apiece ago "
    "hence multiple percentile exponential recurring repeating halve halving doubling tripling "
    "penny pennie pence nickel dime fortnight millennia millennium mega giga milli micro nano "
    "hecto deca centi mille mil sqrt grosse dozenth trio triplet quartet twin ream grand quid buck "
    "deka deci semi".split()
) | {*NUMBERS, *_SCALES, *_PARTS, *_POWER_WORDS, *_BEFORE_UNIT}  # fmt: skip
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
        power: What it is raised to (``squared``).
        unit: ``((canonical name, exponent), ...)``, ``(("percent", 1),)`` for percent.
        noun: Words that are not a unit.
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
        return self.unit == (("percent", 1),)


def _spelled() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Return the canonical name of every word and of every sign, and the kind of every name."""
    names, signs, kinds = {}, {}, {}
    for kind, units in _UNITS.items():
        for entry in units.split("|"):
            words, _, own_signs = entry.lstrip("+").partition(":")
            canonical_name, *others = words.split()
            signs |= dict.fromkeys(own_signs.split(), canonical_name)
            for prefix in ("", *_PREFIXES) if entry.startswith("+") else ("",):
                kinds[prefix + canonical_name] = kind
                for word in (canonical_name, *others):
                    names[prefix + word] = names[f"{prefix}{word}s"] = prefix + canonical_name
    for name, own_signs in _PREFIXED.items():
        signs |= dict.fromkeys(own_signs.split(), name)
    return names, signs, kinds


_NAMES, _SIGNS, _KINDS = _spelled()


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
    for name, parts in _COMPOUND.items():
        if name in merged:
            count = merged.pop(name)
            for part, power in parts.items():
                merged[part] = merged.get(part, 0) + power * count
    return tuple(sorted((name, power) for name, power in merged.items() if power))


def number_of(words: Sequence[str]) -> Fraction | None:
    """Return the value of ``minus twenty-five``, ``three million``, ``two thirds`` and the like."""
    words = [part.lower() for word in words for part in word.split("-")]
    if words and words[0] in ("minus", "negative"):
        value = number_of(words[1:])
        return None if value is None else -value
    if not words or len(words) > _MAX_NUMBER_WORDS:
        return None
    if words[-1] in _PARTS and len(words) <= 2:
        return _part(words)
    if words[0] in ("a", "an") and len(words) > 1:
        words = ["one", *words[1:]]
    return _whole_number(["one", *words] if words[0] in _SCALES else words)


def _part(words: Sequence[str]) -> Fraction | None:
    """Read ``half``, ``a third``, ``two thirds``; ``third``, ``twenty-fifth`` are ordinals."""
    part = words[-1]
    if len(words) == 1:
        return Fraction(1, _PARTS[part]) if part in ("half", "quarter") else None
    top = 1 if words[0] in ("a", "an") else NUMBERS.get(words[0], 0)
    is_one_number = 1 <= top < 20 and part.endswith("s") == (top > 1)
    return Fraction(top, _PARTS[part]) if is_one_number else None


def _whole_number(words: Sequence[str]) -> Fraction | None:
    total, current, last = 0, 0, 10**15
    previous = ""
    for word in words:
        scale = _SCALES.get(word, 0)
        is_after_tens = NUMBERS.get(previous, 0) >= 20 and 0 < NUMBERS.get(word, 0) < 10
        if word in NUMBERS and (not previous or previous in _SCALES or is_after_tens):
            current += NUMBERS[word]
        elif scale == 100 and current:
            current *= 100
        elif current and 100 != scale < last and scale:
            total, current, last = total + current * scale, 0, scale
        else:
            return None
        previous = word
    return Fraction(total + current)


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
    scale, power = Fraction(1), 1
    while rest and rest[0].lower() in _SCALES:
        scale *= _SCALES[rest.pop(0).lower()]
    if rest and rest[0].lower() in _POWER_WORDS and scale == 1:
        power = _POWER_WORDS[rest.pop(0).lower()]
    if not rest:
        return Suffix(scale, power, text=text)
    if is_rate(rest[-2:]):
        rest[-2:] = ["per", name_of(rest[-1]) or ""]  # dollars every week
    for size in (0, 2, 1):
        head, tail = rest[: len(rest) - size], " ".join(rest[len(rest) - size :]).lower()
        if size and tail not in TAILS and not is_rate(rest[-size:]):
            continue
        unit = read_unit(head) if head else ()
        if unit is not None:
            return Suffix(scale, power, unit, tail, text)
        if size or not is_rate(rest[-2:]):
            noun = " ".join(head).lower()
            is_tailed = not size and any(noun.endswith(f" {each}") for each in TAILS)
            if not is_tailed and _may_count(head):
                return Suffix(scale, power, (), f"{noun} {tail}".strip(), text)
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
    for size in range(min(len(words) - 1, _MAX_NUMBER_WORDS), 0, -1):
        value = number_of(words[:size])
        if value is not None:
            suffix = read_suffix(words[size:])
            if suffix is None or not suffix.scale == suffix.power == value.denominator == 1:
                return None
            return value, suffix
    return None


def is_rate(words: Sequence[str]) -> bool:
    """Tell whether two words are ``per`` or the like and a time: ``per day``, ``every week``."""
    if len(words) != 2 or words[0].lower() not in _OVER:
        return False
    is_time = kind_of(name_of(words[1]) or "") == "time"
    return is_time and (words[0] in ("per", "/") or not is_symbol(words[1]))  # a m is not a minute

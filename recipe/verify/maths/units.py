"""Units of measure and money: their spellings, prefixes and kinds.

A closed table: a unit is spelled as here, or it is not a unit. A prefix is read in ``millimeters``,
where both parts are whole words, and in the symbols that are listed (``mm``), so that no ordinary
word (has, fly, camp, exam) is taken for one.
"""

from __future__ import annotations

from collections.abc import Sequence

PERCENT = "percent"
POWER_WORDS = {"squared": 2, "cubed": 3}
_BEFORE_UNIT = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
OVER = frozenset("per a an each every /".split())  # before a time: dollars every week
Unit = tuple[tuple[str, int], ...]  # canonical names and exponents, in order

# Canonical name, then other words for it; plurals in "s" are made. "+" takes prefixes.
_WORDS = {
    "length": "+meter metre|inch inches|foot feet|yard|mile|lightyear|angstrom|micron",
    "area": "hectare|acre",
    "volume": "+liter litre|gallon|quart|pint|cup|tablespoon|teaspoon",
    "mass": "+gram gramme|pound|ounce|+ton|tonne|carat",
    "time": "+second|minute|hour|day|week|month|year|decade|century centuries",
    "temperature": "degree_Celsius celsius|degree_Fahrenheit fahrenheit|kelvin",
    "angle": "degree|radian|arcminute",
    "energy": "+joule|+calorie|+watthour|+electronvolt",
    "power": "+watt|horsepower",
    "data": "+bit|+byte",
    "force": "+newton",
    "voltage": "+volt",
    "current": "+ampere amp",
    "resistance": "+ohm",
    "frequency": "+hertz",
    "pressure": "+pascal|atmosphere",
    "amount": "+mole",
    "money": "dollar|cent|euro|rupee|yen|yuan|peso|franc|ruble|rand|dinar|shilling",
    "clock": "amclock|pmclock",
    "unit": "unit",  # "5 square units" is 5
    PERCENT: "percent percentage",
}
_PREFIXES = "kilo hecto deca deci centi milli micro nano pico mega giga tera".split()
_SYMBOLS = {
    "meter": "m mtr", "kilometer": "km", "decimeter": "dm", "centimeter": "cm", "millimeter": "mm",
    "micrometer": "um", "nanometer": "nm", "inch": "in", "foot": "ft", "yard": "yd yds",
    "mile": "mi", "hectare": "ha", "liter": "l L", "deciliter": "dl dL", "centiliter": "cl cL",
    "milliliter": "ml mL", "kiloliter": "kl kL", "gallon": "gal", "quart": "qt", "pint": "pt",
    "tablespoon": "tbsp", "teaspoon": "tsp", "gram": "g", "kilogram": "kg kgs kilo kilos",
    "milligram": "mg", "microgram": "ug", "pound": "lb lbs", "ounce": "oz", "second": "s sec secs",
    "millisecond": "ms", "microsecond": "us", "nanosecond": "ns", "minute": "min mins",
    "hour": "h hr hrs", "week": "wk wks", "year": "yr yrs", "degree_Celsius": "C degC",
    "degree_Fahrenheit": "F degF", "kelvin": "K", "degree": "deg ° \\circ \\degree",
    "radian": "rad", "joule": "J", "kilojoule": "kJ", "megajoule": "MJ", "kilocalorie": "kcal",
    "calorie": "cal", "kilowatthour": "kWh", "megawatthour": "MWh", "watthour": "Wh",
    "electronvolt": "eV", "kiloelectronvolt": "keV", "megaelectronvolt": "MeV", "watt": "W",
    "kilowatt": "kW", "megawatt": "MW", "gigawatt": "GW", "milliwatt": "mW", "horsepower": "hp",
    "kilobyte": "kB KB", "megabyte": "MB", "gigabyte": "GB", "terabyte": "TB",
    "newton": "N", "kilonewton": "kN", "volt": "V", "kilovolt": "kV", "millivolt": "mV",
    "ampere": "A", "milliampere": "mA", "ohm": "Ω \\Omega", "hertz": "Hz", "kilohertz": "kHz",
    "megahertz": "MHz", "gigahertz": "GHz", "pascal": "Pa", "kilopascal": "kPa",
    "megapascal": "MPa", "atmosphere": "atm", "mole": "mol", "dollar": "$ \\$ USD usd",
    "euro": "€ \\euro EUR eur", "cent": "¢", "gbp": "£ \\pounds GBP gbp", PERCENT: "% \\%",
    "mile_per_hour": "mph", "kilometer_per_hour": "kph kmh kmph", "cubic_centimeter": "cc",
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


def _spelled() -> tuple[dict[str, str], dict[str, str]]:
    """Return the canonical name of every word, and the kind of every canonical name."""
    names, kinds = {}, {}
    for kind, units in _WORDS.items():
        for entry in units.split("|"):
            canonical_name, *others = entry.lstrip("+").split()
            prefixes = ("", *_PREFIXES) if entry.startswith("+") else ("",)
            for prefix in prefixes:
                kinds[prefix + canonical_name] = kind
                for word in (canonical_name, *others):
                    names[prefix + word] = names[f"{prefix}{word}s"] = prefix + canonical_name
    return names, kinds


_NAMES, _KINDS = _spelled()
_KINDS["gbp"] = "money"
_SIGNS = {sign: name for name, signs in _SYMBOLS.items() for sign in signs.split()}


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
    """Return the unit that all of the words make, else ``None``; ``/`` and ``per`` divide."""
    over = [place for place, word in enumerate(words) if word in ("/", "per")]
    if len(over) > 1:
        return None
    top = _read_factors(words[: over[0]] if over else words)
    bottom = _read_factors(words[over[0] + 1 :]) if over else {}
    if not top or bottom is None or (over and not bottom) or not bottom.keys().isdisjoint(top):
        return None
    if PERCENT in bottom or (PERCENT in top and len(top | bottom) > 1):
        return None  # 5% cm is not 5 cm
    return canonical({**top, **{name: -power for name, power in bottom.items()}})


def _read_factors(words: Sequence[str]) -> dict[str, int] | None:
    """Read units side by side with exponents: ``square feet``, ``cm ^ 2``, ``metres squared``."""
    powers: dict[str, int] = {}
    rest, last, pending = list(words), "", 1
    while rest:
        word = rest.pop(0)
        lower = word.lower()
        exponent = 0
        if word == "^":
            exponent = int(rest.pop(0)) if rest and rest[0] in ("1", "2", "3") else 0
        elif lower in POWER_WORDS:
            exponent = POWER_WORDS[lower]
        if exponent and last and powers[last] == 1:
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
    """Return units in order, compound ones split into their parts."""
    merged = dict(powers)
    for name, parts in _COMPOUND.items():
        if name in merged:
            count = merged.pop(name)
            for part, power in parts.items():
                merged[part] = merged.get(part, 0) + power * count
    return tuple(sorted((name, power) for name, power in merged.items() if power))

"""What edits of plain numbers share: units, number words, another number near by."""

from __future__ import annotations

import random
from fractions import Fraction

from attacks.shapes import Gold

Rng = random.Random
UNITS = {
    "seconds": "second", "minutes": "minute", "hours": "hour", "days": "day", "weeks": "week",
    "months": "month", "years": "year", "miles": "mile", "meters": "meter", "feet": "feet",
    "inches": "inch", "kilometers": "kilometer", "kilograms": "kilogram", "pounds": "pound",
    "ounces": "ounce", "gallons": "gallon", "dollars": "dollar", "cents": "cent",
}  # fmt: skip
# Signs of units, and what else names these units in a problem.
UNIT_SIGNS = {
    "m": ("meter", "metre"), "g": ("gram",), "s": ("sec",), "h": ("hour", "hr"), "ha": ("hectare",),
    "N": ("newton",), "K": ("kelvin",), "C": ("celsius",), "F": ("fahrenheit",), "L": ("lit",),
    "microseconds": (), "mg": ("milligram",), "kWh": ("kilowatt",), "mi": ("mile",),
}  # fmt: skip
FOREIGN = "٠٦۷५๓7７𝟕𝟔𝟘"
WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def other(rng: Rng, gold: Gold) -> int:
    """A small whole number that is not the gold."""
    value = gold.number or Fraction(0)
    near = [int(value) + step for step in (-2, -1, 1, 2, 3)] + [rng.randint(2, 60)]
    return rng.choice([n for n in near if n != value and n > 0] or [int(abs(value)) + 7])

"""What edits of relations and structures share."""

from __future__ import annotations

import random
import re
from fractions import Fraction

from attacks.shapes import read_number, spelled

Rng = random.Random
SAME_KIND = (
    ("cm", "m", "km", "mm", "inches", "feet", "miles", "yards"),
    ("hours", "minutes", "seconds", "days", "weeks", "years"),
    ("kg", "g", "mg", "tons", "pounds", "ounces"),
    ("cents", "dollars", "euros", "yen"),
    ("mL", "L", "gallons", "cups"),
)
FLIPS = {
    "<": (">", r"\le ", "=", r"\geq "),
    ">": ("<", r"\ge ", "=", r"\leq "),
    r"\le": (r"\ge ", "<", "=", ">"),
    r"\leq": (r"\geq ", "<", "=", ">"),
    r"\ge": (r"\le ", ">", "=", "<"),
    r"\geq": (r"\leq ", ">", "=", "<"),
    r"\geqslant": (r"\leqslant ", ">", "=", "<"),
    r"\leqslant": (r"\geqslant ", "<", "=", ">"),
}
SIGN = re.compile(r"\\(?:leqslant|geqslant|leq?|geq?)(?![A-Za-z])|[<>]")


def numbers(parts: tuple[str, ...]) -> list[Fraction] | None:
    """The members when all are plain numbers."""
    values = [read_number(part) for part in parts]
    return None if None in values else [value for value in values if value is not None]


def changed_number(rng: Rng, text: str) -> str | None:
    """Another number for a plain one."""
    value = read_number(text)
    return None if value is None else spelled(value + rng.choice([-2, -1, 1, 2, 3]))

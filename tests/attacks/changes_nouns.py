"""Edits of plain numbers by units, currencies and nouns that were not asked for."""

from __future__ import annotations

import random
import re

from attacks.kinds import FONTS, changes, wrapped
from attacks.numbers import UNIT_SIGNS, UNITS
from attacks.shapes import Gold

Rng = random.Random


@changes("another unit than the one asked for")
def _(rng: Rng, gold: Gold) -> str | None:
    asked = [name for name, stem in UNITS.items() if f"how many {name}" in gold.problem.lower()]
    if not gold.numeral or not gold.number or len(asked) != 1 or gold.problem.count("?") != 1:
        return None
    name = rng.choice([name for name in UNITS if name != asked[0]])
    return gold.numeral + rng.choice([rf"\text{{ {name}}}", rf"\ \mathrm{{{name}}}", f" {name}"])


@changes("a unit that the problem does not mention")
def _(rng: Rng, gold: Gold) -> str | None:
    unit = rng.choice([*UNITS, *UNIT_SIGNS])
    stem = UNITS.get(unit, unit)
    is_said = (
        gold.mentions(stem) if unit in UNITS else re.search(rf"[0-9}}~ ]{stem}\b", gold.problem)
    )
    if not gold.numeral or not gold.number or not gold.problem or is_said:
        return None
    if gold.mentions(
        *UNIT_SIGNS.get(unit, ()),
        "$",
        "dollar",
        "how much",
        "how old",
        "cent",
        "mph",
        "kg",
        "km",
        "ft",
        "lb",
        "oz",
    ):
        return None
    return gold.numeral + rng.choice([rf"\text{{ {unit}}}", rf"\ \mathrm{{{unit}}}"])


@changes("another currency")
def _(rng: Rng, gold: Gold) -> str | None:
    last = gold.problem.rstrip().rstrip("?").rpartition(".")[2].lower()
    if not gold.numeral or not gold.number or "$" not in gold.problem or "how much" not in last:
        return None
    if not any(word in last for word in (" pay", "cost", "earn", "spend", "money", "price")):
        return None
    if gold.mentions(
        "cent", "euro", "€", "penn", "yen", "£", "per ", "percent", "how much more than"
    ):
        return None
    a = gold.numeral
    texts = [rf"{a}\text{{ cents}}", f"€{a}", rf"{a}\text{{ euros}}", f"£{a}", f"{a}¢", f"¥{a}"]
    return rng.choice([*texts, rf"{a}\text{{ yen}}", rf"{a}\text{{ rupees}}", rf"\pounds {a}"])


@changes("a noun that the problem does not have")
def _(rng: Rng, gold: Gold) -> str | None:
    nouns = "elephants,violins,volcanoes,submarines,penguins,cathedrals,trombones,glaciers".split(
        ","
    )
    noun = rng.choice(nouns)
    if not gold.numeral or "how many" not in gold.problem.lower() or gold.mentions(noun[:5]):
        return None
    return gold.numeral + wrapped(rng, f" {noun}", "text", "mbox", "mathrm", "textbf")


@changes("operators and numbers around a unit")
def _(rng: Rng, gold: Gold) -> str | None:
    asked = [name for name in UNITS if f"how many {name}" in gold.problem.lower()]
    if not gold.numeral or abs(gold.number or 0) in (0, 1) or len(asked) != 1:
        return None
    unit, n = asked[0], rng.randint(2, 9)
    tails = [
        f" {unit} and {n} {unit}",
        f" {unit} or {n} {unit}",
        f" million {unit}",
        f" {unit} + {n}",
    ]
    tails += [f" {unit} squared", f" dozen {unit}", f" half {unit}", f" per {unit}", f"/{unit}"]
    tails += [f" {unit} times {n}", f" {unit} minus {n} {unit}", f" to {n} {unit}"]
    tails += [f" {n} {unit}", f",000 {unit}", f" thousand {unit}", f" {unit} ({n})"]
    return gold.numeral + wrapped(rng, rng.choice(tails), *FONTS[:3])


@changes("a rate that was not asked for")
def _(rng: Rng, gold: Gold) -> str | None:
    noun = re.search(r"How many ([a-z]+) ", gold.problem)
    is_rate = gold.mentions("per ", "each ", "every ", " an hour", " a day", " a week", "daily")
    if not gold.numeral or noun is None or gold.problem.count("?") != 1:
        return None
    over, time = rng.choice(("per", "a", "each", "every")), rng.choice(("minute", "day", "year"))
    return None if is_rate else gold.numeral + wrapped(rng, f" {noun[1]} {over} {time}", *FONTS[:3])

"""Edits of plain numbers to other numbers: digits, small amounts, bases, functions."""

from __future__ import annotations

import random
from fractions import Fraction

from attacks.kinds import changes, whole
from attacks.numbers import WORDS
from attacks.shapes import Gold, read_number, spelled

Rng = random.Random


@changes("decimal point moved")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.numeral or not gold.number:
        return None
    sign, digits = ("-", gold.numeral[1:]) if gold.number < 0 else ("", gold.numeral)
    shift = rng.choice([-3, -2, -1, 1, 2, 3])
    value = Fraction(digits) * Fraction(10) ** shift
    text = f"{float(value):.12f}".rstrip("0").rstrip(".")
    return sign + text if Fraction(text) == value else None


@changes("one digit replaced, dropped or swapped")
def _(rng: Rng, gold: Gold) -> str | None:
    places = [place for place, char in enumerate(gold.text) if char.isdigit()]
    if gold.number is None or not places:
        return None
    place = rng.choice(places)
    text = gold.text
    texts = [text[:place] + rng.choice("0123456789") + text[place + 1 :]]
    texts += [text[:place] + text[place + 1 :]]
    if place + 1 in places:
        texts += [text[:place] + text[place + 1] + text[place] + text[place + 2 :]]
    changed = rng.choice(texts)
    value = read_number(changed)
    return changed if value is not None and value != gold.number else None


@changes("perturbed by 1e-3 to 1e-6")
def _(rng: Rng, gold: Gold) -> str | None:
    return _perturbed(rng, gold, rng.randint(3, 6))


@changes("perturbed by 1e-7 to 1e-12")
def _(rng: Rng, gold: Gold) -> str | None:
    return _perturbed(rng, gold, rng.randint(7, 12))


def _perturbed(rng: Rng, gold: Gold, digits: int) -> str | None:
    """An exact gold (whole or a fraction) and a small multiple of it."""
    if not gold.number or "." in gold.text:
        return None
    sign = rng.choice([-1, 1])
    value = gold.number * (1 + sign * Fraction(rng.randint(1, 9), 10**digits))
    size = rng.randint(1, 9)
    texts = [spelled(value), rf"{gold.text}{'+' if sign > 0 else '-'}{size}\cdot 10^{{-{digits}}}"]
    texts += [rf"{gold.text}{'+' if sign > 0 else '-'}\frac{{{size}}}{{{10**digits}}}"]
    return rng.choice(texts)


@changes("perturbed by 1e-7 to 1e-12, as a decimal")
def _(rng: Rng, gold: Gold) -> str | None:
    value, digits = gold.whole, rng.randint(7, 12)
    if not value:
        return None
    tail = f"{rng.randint(1, 9)}"
    return rng.choice([f"{value}.{'0' * (digits - 1)}{tail}", f"{value - 1}.{'9' * digits}"])


@changes("perturbed by 1e-2 to 1e-5, as a decimal")
def _(rng: Rng, gold: Gold) -> str | None:
    value, digits = gold.whole, rng.randint(2, 5)
    if not value or value < 0:
        return None
    return rng.choice(
        [f"{value}.{'0' * (digits - 1)}{rng.randint(1, 9)}", f"{value - 1}.{'9' * digits}"]
    )


@changes("a decimal gold, its last digit changed")
def _(rng: Rng, gold: Gold) -> str | None:
    if "." not in gold.numeral:
        return None
    unit = Fraction(1, 10 ** len(gold.numeral.partition(".")[2]))
    value = (gold.number or 0) + rng.choice([-3, -2, -1, 1, 2, 3]) * unit
    return f"{float(value):.{len(gold.numeral.partition('.')[2])}f}"


@changes("read in another base")
def _(rng: Rng, gold: Gold) -> str | None:
    value = whole(rng, gold, 2)
    base = rng.choice([2, 3, 5, 7, 8, 16])
    if value is None or value < base or max(map(int, str(value))) >= base:
        return None
    if gold.mentions("base", "binary", "octal", "hex"):
        return None
    forms = [
        f"{value}_{base}",
        f"{value}_{{{base}}}",
        rf"{value}_{{\text{{{WORDS[min(base, 16)]}}}}}",
    ]
    forms += [rf"({value})_{{{base}}}", rf"{value}\text{{ in base }}{base}"]
    return rng.choice(forms)


@changes("complex part added")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.number:
        return None
    i = rng.choice(["i", r"\mathrm{i}", "j", r"\text{i}", r"\mathbf{i}", r"\imath", r"\iota"])
    number = rng.choice(["", "2", "3", "0.001", r"\frac{1}{2}"])
    return rng.choice([f"{gold.text}+{number}{i}", f"{gold.text}-{number}{i}", f"{gold.text}{i}"])


@changes("times or plus a symbol")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.number or gold.mentions("times"):
        return None
    letter = rng.choice(
        ["x", "y", "z", "q", "w", r"\pi", r"\alpha", r"\varepsilon", "e", r"\theta"]
    )
    texts = [f"{gold.text}{letter}", f"{gold.text}+{letter}", f"{gold.text}{letter}^2"]
    texts += [rf"{gold.text}\cdot {letter}", f"{gold.text}-{letter}", f"{letter}^{{{gold.text}}}"]
    texts += [rf"{gold.text}\text{{{letter}}}", rf"{gold.text}\,\mathrm{{{letter}}}"]
    return rng.choice(texts if len(letter) == 1 else texts[:6])


@changes("inside a function")
def _(rng: Rng, gold: Gold) -> str | None:
    if abs(gold.number or 0) in (0, 1, 2):
        return None
    names = [r"\sqrt{%s}", r"\sqrt[3]{%s}", r"\log(%s)", r"\ln %s", r"\sin(%s)", r"\Gamma(%s)"]
    names += [
        r"\text{sqrt}(%s)",
        r"\text{sqrt }%s",
        r"\text{square root of }%s",
        r"\exp(%s)",
        r"f(%s)",
    ]
    names += [r"\frac{1}{%s}", r"\frac{%s}{2}", r"\sqrt%s", r"\operatorname{lg} %s", r"2^{%s}"]
    name = rng.choice(names)
    if name == r"\sqrt%s" and gold.text[0] in "01":  # of the first digit alone: \sqrt1/3 is 1/3
        return None
    return name % gold.text if (gold.number or 0) > 0 else None

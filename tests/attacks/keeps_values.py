"""Edits that write the same value or formula otherwise."""

from __future__ import annotations

import random
import re

from attacks.kinds import keeps
from attacks.shapes import Gold, spelled

Rng = random.Random
_VULGAR = {"1/2": "½", "1/3": "⅓", "2/3": "⅔", "1/4": "¼", "3/4": "¾", "1/5": "⅕", "1/8": "⅛"}


@keeps("fraction spelling")
def _(rng: Rng, gold: Gold) -> str | None:
    simple = re.fullmatch(r"(-?)\\frac\{(-?[0-9]+)\}\{([0-9]+)\}", gold.text)
    texts = []
    if simple:
        sign, a, b = simple.groups()
        texts += [
            f"{sign}{a}/{b}",
            rf"{sign}{a} / {b}",
            rf"{sign}{{{a} \over {b}}}",
            rf"{sign}({a})/({b})",
        ]
        texts += [rf"{sign}\frac{{{a}}}{{{b}}}", rf"\left({sign}\frac{{{a}}}{{{b}}}\right)"]
        if len(a) == len(b) == 1:
            texts += [rf"{sign}\frac{a}{b}", rf"{sign}\frac {a}{b}", rf"{sign}\tfrac{a}{b}"]
    if r"\frac" in gold.text:
        for name in (r"\dfrac", r"\tfrac", r"\cfrac"):
            texts.append(gold.text.replace(r"\frac", name))
    return rng.choice(texts) if texts else None


@keeps("vulgar fractions")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None or gold.numeral:
        return None
    char = _VULGAR.get(f"{abs(gold.number.numerator)}/{gold.number.denominator}")
    return None if char is None else ("-" if gold.number < 0 else "") + char


@keeps("equal fractions and decimals")
def _(rng: Rng, gold: Gold) -> str | None:
    value = gold.number
    if value is None:
        return None
    k = rng.randint(2, 9)
    sign = "-" if value < 0 else ""
    top, bottom = abs(value.numerator) * k, value.denominator * k
    texts = [rf"{sign}\frac{{{top}}}{{{bottom}}}", f"{sign}{top}/{bottom}"]
    exact = f"{float(value):.10f}".rstrip("0").rstrip(".")
    if re.fullmatch(r"-?[0-9]+(\.[0-9]{1,6})?", exact) and type(value)(exact) == value:
        texts += [
            exact,
            exact,
            f"{exact}{'0' if '.' in exact else '.0'}",
            f"{exact}0" if "." in exact else f"{exact}.00",
        ]
        texts += [spelled(value)]
    return rng.choice(texts)


@keeps("thousands separators")
def _(rng: Rng, gold: Gold) -> str | None:
    value = gold.number
    if value is None or value.denominator != 1 or abs(value) < 1000:
        return None
    grouped = f"{int(value):,}"
    joints = [",", "{,}", r"\,", r",\!", r"\;", "\u202f", "\u2009", r"\ ", "~"]
    return rng.choice([grouped.replace(",", rng.choice(joints)), str(int(value)), f"{grouped}.00"])


@keeps("leading plus")
def _(rng: Rng, gold: Gold) -> str | None:
    return rng.choice(["+", "+ "]) + gold.text if gold.number and gold.number > 0 else None


@keeps("ASCII powers and products")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.is_expression or re.search(r"\\(?:text|binom|log|sin|cos|tan)|_", gold.text):
        return None
    star = re.sub(r"\\(?:cdot|times) ?", " * ", gold.text)
    power = re.sub(r"\^(?:\{([0-9]{1,4})\}|([0-9]))", lambda m: f"**{m[1] or m[2]}", star)
    caret = re.sub(r"\^\{([0-9]{1,4})\}(?![0-9])", r"^\1" if "^{" in star else r"^{\1}", star)
    text = rng.choice(
        [star, caret]
        if "**" in power and re.search(r"\*\*[0-9]+[A-Za-z(\\]", power)
        else [star, power, caret]
    )
    return text if text != gold.text else None


@keeps("product signs")
def _(rng: Rng, gold: Gold) -> str | None:
    sign = rng.choice([r"\cdot ", r"\times ", "*", "×", "·", r"\cdot"])
    text = re.sub(
        r"\\(?:cdot|times)(?![A-Za-z]) ?",
        lambda _: sign if sign != r"\cdot" else sign + " ",
        gold.answer,
    )
    return text if text != gold.answer and "text" not in text else None


@keeps("a named left side")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None:
        return None
    names = [
        "x",
        "y",
        "n",
        "N",
        "S",
        "x_1",
        r"\text{Answer}",
        "f(2)",
        "a_{10}",
        r"\text{Total}",
        "P(A)",
        r"\alpha",
    ]
    return rng.choice(names) + rng.choice(["=", " = ", r"\,=\,"]) + gold.answer


@keeps("a left side left out")
def _(rng: Rng, gold: Gold) -> str | None:
    names, _, values = gold.text.partition("=")
    if re.fullmatch(r"\([a-z],(?:[a-z]|\\theta)\)", names) and "=" not in values:
        return values
    return gold.sides[1] if gold.name and gold.name != "y" else None


@keeps("a tuple with its names")
def _(rng: Rng, gold: Gold) -> str | None:
    left, members, right = gold.bracketed
    if left + right != "()" or gold.is_interval or len(members) not in (2, 3):
        return None
    if not gold.mentions("point", "vertex", "coordinate", "midpoint", "(x,", "(r,"):
        return None
    polar = gold.mentions("polar", "theta")
    names = "(x,y)" if len(members) == 2 else "(x,y,z)"
    if polar:
        names = r"(r,\theta)" if len(members) == 2 else r"(\rho,\theta,\phi)"
        if len(members) == 3 and not gold.mentions("rho"):
            return None
    return f"{names}{rng.choice(['=', ' = '])}{gold.answer}"


@keeps("another order of a list or set")
def _(rng: Rng, gold: Gold) -> str | None:
    left, members, right = gold.bracketed
    parts = list(gold.parts if gold.parts else members if left == r"\{" else ())
    if len(parts) < 2 or any(re.fullmatch("[0-9]{3}", part) for part in parts):
        return None
    if gold.mentions("order", "respectively", "sequence", "first", "$ and $", "$, and $"):
        return None
    rng.shuffle(parts)
    joint = rng.choice(
        [", ", ",", r",\ "]
        if left == r"\{"
        else [", ", ",", r"\text{ and }", r",\; ", r"\text{ or }"]
    )
    return f"{left if not gold.parts else ''}{joint.join(parts)}{right if not gold.parts else ''}"


@keeps("another order of assignments")
def _(rng: Rng, gold: Gold) -> str | None:
    parts = gold.text.split(",")
    if len(parts) < 2 or not all(
        re.fullmatch(r"[a-z](?:\([a-z]\))?=[^=]+", part) for part in parts
    ):
        return None
    rng.shuffle(parts)
    return rng.choice([", ", r",\quad ", r"\text{ and }" if len(parts) == 2 else ", "]).join(parts)


@keeps("sides of an equation exchanged")
def _(rng: Rng, gold: Gold) -> str | None:
    left, right = gold.sides
    return f"{right} = {left}" if left and not gold.name else None


@keeps("an inequality turned round")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([a-z]) ?(<|>|\\(?:leqslant|geqslant|leq?|geq?)) ?([^<>\\]+)", gold.text)
    if match is None:
        return None
    turned = {"<": ">", ">": "<"}.get(match[2]) or (
        r"\ge " if match[2].startswith(r"\l") else r"\le "
    )
    return f"{match[3]}{turned}{match[1]}"

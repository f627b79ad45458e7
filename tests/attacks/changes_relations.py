"""Edits of equations, inequalities, quantities, words, ratios and numerals."""

from __future__ import annotations

import random
import re
from fractions import Fraction

from attacks.kinds import changes
from attacks.parts import FLIPS, SAME_KIND, SIGN, numbers
from attacks.shapes import Gold, read_number

Rng = random.Random


@changes("one side of an equation")
def _(rng: Rng, gold: Gold) -> str | None:
    left, right = gold.sides
    if not left or gold.name or right == "0" or not re.search(r"[0-9+\-^]", left):
        return None
    return rng.choice([left, right])


@changes("an equation changed")
def _(rng: Rng, gold: Gold) -> str | None:
    left, right = gold.sides
    if not left or gold.name:
        return None
    sign = rng.choice(["<", r"\neq ", r"\le ", ">", r"\equiv -", "=-", "=1+", "=x", "=2+"])
    is_zero = right.strip().lstrip("-") == "0"
    return None if is_zero and sign in ("=-", "=x", r"\equiv -") else f"{left}{sign}{right}"


@changes("a named value changed")
def _(rng: Rng, gold: Gold) -> str | None:
    right = gold.sides[1]
    if not gold.name or not right or right == "0":
        return None
    return rng.choice(
        [
            rf"{gold.name}\neq {right}",
            f"{gold.name}<{right}",
            f"{gold.name}={right}+1",
            f"{gold.name}>{right}",
            f"{gold.name}=-({right})",
            rf"{gold.name}={right}\text{{ million}}",
            rf"{gold.name}={right}\text{{ or }}{gold.name}=77",
            rf"{gold.name}={right}\pm 1",
        ]
    )


@changes("another name for the value")
def _(rng: Rng, gold: Gold) -> str | None:
    if not re.fullmatch(r"[A-Za-z]", gold.name) or not gold.has_letter(gold.name):
        return None
    present = [c for c in "xyzabcmnpqrstuvw" if gold.has_letter(c) and c != gold.name]
    others = [c for c in "xyzkmnpqw" if c != gold.name and c not in gold.sides[1]]
    return f"{rng.choice(present or others)}={gold.sides[1]}"


@changes("assignments exchanged")
def _(rng: Rng, gold: Gold) -> str | None:
    pairs = [part.split("=") for part in split_names(gold)]
    if len(pairs) < 2:
        return None
    values = [value for _, value in pairs]
    turned = values[1:] + values[:1]
    if numbers(tuple(values)) is None or len(set(values)) < len(values):
        return None
    return ", ".join(f"{name}={value}" for (name, _), value in zip(pairs, turned, strict=True))


def split_names(gold: Gold) -> list[str]:
    parts = gold.text.split(",")
    return parts if all(re.fullmatch(r"[a-z]=[^=]+", part) for part in parts) else []


@changes("an inequality changed")
def _(rng: Rng, gold: Gold) -> str | None:
    signs = list(SIGN.finditer(gold.text))
    if not signs or "," in gold.text or "text" in gold.text:
        return None
    sign = rng.choice(signs)
    flipped = rng.choice(FLIPS[sign[0]])
    texts = [gold.text[: sign.start()] + flipped + gold.text[sign.end() :]]
    if len(signs) == 1:
        texts += [gold.text + rng.choice(["+1", "-1", "1", r"+10^{-9}"]), gold.text[sign.end() :]]
        texts += [gold.text[: sign.end()] + " -" + gold.text[sign.end() :].strip()]
    text = rng.choice(texts)
    bound = gold.text[sign.end() :].strip()
    is_safe = read_number(bound) not in (None, Fraction(0)) or text == texts[0]
    return text if is_safe and not text.endswith("--3") else None


@changes("another unit than the gold's")
def _(rng: Rng, gold: Gold) -> str | None:
    number, unit, power = gold.quantity
    if not unit or read_number(number) in (None, 0):
        return None
    family = next((f for f in SAME_KIND if unit in f or f"{unit}s" in f), None)
    if family is None:
        return None
    other = rng.choice([name for name in family if name not in (unit, f"{unit}s")])
    tail = f"^{power}" if power else ""
    alien = rng.choice(["hours", "kg", "volts", "liters"])
    texts = [rf"{number} \text{{ {other}}}{tail}", rf"{number} \mathrm{{ {other} }}{tail}"]
    if alien not in family and unit not in ("mL", "L"):
        texts.append(rf"{number} \text{{ {alien}}}")
    if power:
        texts.append(rf"{number} \text{{ {unit}}}^{5 - int(power)}")
    elif unit in SAME_KIND[0]:
        texts += [rf"{number} \text{{ {unit}}}^2", rf"{number} \text{{ {unit}}}^3"]
    return rng.choice(texts)


@changes("a quantity, its number changed")
def _(rng: Rng, gold: Gold) -> str | None:
    number, unit, power = gold.quantity
    value = read_number(number) if number else None
    if not value or value == 1:
        return None
    tail = f"^{power}" if power else ""
    words = rng.choice(["million", "dozen", "and a half", "or 7", "thousand", "hundred", "plus 2"])
    texts = [rf"{number}\text{{ {words} {unit}}}{tail}", rf"1{number} \text{{ {unit}}}{tail}"]
    texts += [
        rf"\frac{{{number}}}{{2}} \text{{ {unit}}}{tail}",
        rf"-{number} \text{{ {unit}}}{tail}",
    ]
    texts += [
        rf"{number}\text{{/3}} \text{{ {unit}}}{tail}",
        rf"{number}\times 2\text{{ {unit}}}{tail}",
    ]
    return rng.choice(texts)


@changes("an angle in another measure")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([0-9.]+)\^\{?\\circ\}?", gold.text)
    if match is None:
        return None
    n = match[1]
    texts = [
        rf"{n}\text{{ radians}}",
        rf"{n}\pi",
        rf"{n}\text{{ rad}}",
        rf"{n}^\circ+{rng.randint(1, 9)}^\circ",
    ]
    texts += [
        rf"-{n}^\circ",
        rf"{n}{1 if '.' in n else 0}^\circ",  # 18.80 is 18.8
        rf"{n}^\circ C",
        rf"\frac{{{n}^\circ}}{{2}}",
        rf"{n}''",
    ]
    texts += [rf"\sin {n}^\circ", rf"{n}^\circ\text{{ or }}{rng.randint(181, 350)}^\circ"]
    return rng.choice(texts)


@changes("another word")
def _(rng: Rng, gold: Gold) -> str | None:
    word = gold.word
    if len(word) < 2:
        return None
    place = rng.randrange(1, len(word))
    texts = [
        rf"\text{{not {word}}}",
        rf"\text{{{word} or Bob}}",
        rf"\text{{Bob or }}\text{{{word}}}",
    ]
    texts += [
        rf"\text{{non-{word}}}",
        rf"\text{{neither {word} nor Bob}}",
        rf"\text{{{word} and Bob}}",
    ]
    texts += [rf"\text{{{word}}}\neq", rf"\lnot\text{{{word}}}", rf"\text{{{word[::-1]}q}}"]
    texts += [
        rf"\text{{anything but {word}}}",
        rf"\text{{{word}}}\text{{ is wrong}}",
        r"\text{Bob}",
    ]
    texts += [
        rf"\text{{{word[:place]}qx{word[place:]}}}",
        rf"\text{{{word}}}+1",
        rf"\text{{{word}5}}",
    ]
    texts += [rf"\text{{never {word}}}", rf"\text{{{word}? no}}", rf"\text{{{word} 7}}"]
    return rng.choice(texts)


@changes("another letter of a choice")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"\\text\{\(([A-E])\)\}|([A-E])", gold.text)
    if match is None:
        return None
    letter = match[1] or match[2]
    other = rng.choice([c for c in "ABCDE" if c != letter])
    texts = [rf"\text{{({other})}}", other, rf"\text{{{other}}}", f"{letter} or {other}"]
    texts += [
        f"{letter},{other}",
        f"{letter}{other}",
        rf"\text{{not {letter}}}",
        f"({letter})({other})",
    ]
    texts += [rf"\text{{({letter}) or ({other})}}", rf"\text{{{letter} and {other}}}", "F"]
    return rng.choice(texts)


@changes("a ratio changed")
def _(rng: Rng, gold: Gold) -> str | None:
    parts = gold.text.split(":")
    if len(parts) < 2 or not all(re.fullmatch("[0-9]+", part) for part in parts):
        return None
    turned = parts[::-1]
    longer = [*parts, str(rng.randint(2, 9))]
    place = rng.randrange(len(parts))
    moved = [*parts[:place], str(int(parts[place]) + 1), *parts[place + 1 :]]
    return ":".join(rng.choice([moved, longer] + ([turned] if turned != parts else [])))


@changes("a repeating decimal changed")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([0-9]+)\.\\overline\{([0-9]+)\}", gold.text)
    if match is None:
        return None
    a, b = match.groups()
    return rng.choice(
        [
            f"{a}.{b}",
            rf"{a}.{b[0]}\overline{{{int(b) + 1}}}",
            rf"{a}.0\overline{{{b}}}",
            f"{a}.{b}{b}",
            rf"{int(a) + 1}.\overline{{{b}}}",
            rf"{a}.\overline{{{b}0}}",
        ]
    )


@changes("a numeral in another base")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([0-9]+)_\{?([0-9]+)\}?", gold.text)
    if match is None:
        return None
    digits, base = match.groups()
    other = rng.choice([b for b in (3, 4, 6, 7, 9, 11, 12, 16) if str(b) != base])
    texts = [f"{digits}_{{{other}}}", f"{digits}0_{{{base}}}", rf"{digits}\cdot{base}"]
    texts += [f"{digits}^{{{base}}}", f"1{digits}_{base}", rf"{digits}_{base}\text{{ or }}7"]
    return rng.choice(texts)

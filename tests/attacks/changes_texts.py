"""Edits of plain numbers by words, alternatives and what TeX prints otherwise."""

from __future__ import annotations

import random

from attacks.kinds import changes, whole, wrapped
from attacks.numbers import FOREIGN, TENS, WORDS, other
from attacks.shapes import Gold, spelled

Rng = random.Random


@changes("two alternatives")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None:
        return None
    a, b = gold.text, str(other(rng, gold))
    texts = [rf"{a}\text{{ or }}{b}", rf"{a}\text{{ xor }}{b}", rf"{a}\vee {b}", rf"{a}\lor {b}"]
    texts += [rf"\text{{either }}{a}\text{{ or }}{b}", rf"\{{{a},{b}\}}", f"{a}, {b}", f"{a}; {b}"]
    texts += [rf"{a}\text{{ or {b}}}", rf"\text{{{a} or {b}}}", rf"{a}\text{{ (maybe {b})}}"]
    texts += [
        rf"{a}\text{{, maybe }}{b}",
        rf"{a}\text{{ and }}{b}",
        rf"{a}\land {b}",
        f"{a} or {b}",
    ]
    texts += [rf"{b}\text{{ or }}{a}", rf"{a}\text{{ resp. }}{b}", f"({a},{b})", f"({a} | {b})"]
    texts += [rf"{a}\mathrm{{or}}{b}", rf"{a}\quad {b}", rf"{a}\\{b}", f"{a}\n{b}", rf"{a}\cup {b}"]
    texts += [rf"{a}\,\text{{or}}\,{b}", rf"{a}\text{{ (or }}{b}\text{{)}}", rf"{a} \& {b}"]
    texts += [rf"{a}\text{{ if it rains, else }}{b}"]
    texts += [
        rf"\begin{{array}}{{c}}{a}\\{b}\end{{array}}",
        rf"\begin{{cases}}{a}\\{b}\end{{cases}}",
    ]
    return rng.choice(texts)


@changes("a range")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None or gold.number < 0:
        return None
    a, b = gold.text, spelled(gold.number + rng.randint(1, 9))
    dash = rng.choice(["-", "--", "–", r"\text{ to }", r"\ldots ", r"\dots ", r"\text{--}"])
    bounds = [rf"{a}{dash}{b}", rf"[{a},{b}]", rf"\text{{between }}{a}\text{{ and }}{b}"]
    return rng.choice([*bounds, rf"{a}\pm {rng.randint(1, 9)}", rf"{a}\pm 0.5"])


@changes("a relation instead of a number")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None or gold.mentions("least", "most", "imum", "est ", "bound", "more"):
        return None
    signs = [r"\neq ", "<", ">", r"\leq ", r"\ge ", "!=", "≠", "≤", r"\not=", r"\text{at least }"]
    signs += [r"\text{less than }", r"\text{more than }", r"\text{at most }", r"\text{not }"]
    signs += [r"\lnot ", r"\neg ", r"x\neq ", r"x<", "x > ", "not ", r"\text{anything but }"]
    text = rng.choice(signs) + gold.text
    forms = [text, rf"{gold.text}={other(rng, gold)}", rf"{gold.text}\to {other(rng, gold)}"]
    return rng.choice([*forms, rf"{gold.text}\Rightarrow {other(rng, gold)}"])


@changes("said not to be so")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None:
        return None
    n = other(rng, gold)
    tails = ["is wrong", "is not the answer", "is too small", f"is wrong, it is {n}", "(no)"]
    tails += [f"rather {n}", f"no, {n}", f"(wrong: {n})", "is incorrect", "is false", "not"]
    tails += [
        f"; correction: {n}",
        f", I mean {n}",
        f"but in truth {n}",
        f", so {n}",
        "is excluded",
    ]
    return gold.text + rng.choice(["", r"\ "]) + rf"\text{{ {rng.choice(tails)}}}"


@changes("struck out or below something")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None:
        return None
    a, b = gold.text, other(rng, gold)
    texts = [rf"\cancel{{{a}}}", rf"\cancel{{{a}}}{b}", rf"\sout{{{a}}}", rf"\bcancel{{{a}}} {b}"]
    texts += [rf"\xcancel{{{a}}}\ {b}", rf"\stackrel{{{a}}}{{{b}}}", rf"\overset{{{a}}}{{{b}}}"]
    texts += [rf"\underset{{{a}}}{{{b}}}", rf"\substack{{{a}\\{b}}}", rf"\binom{{{a}}}{{{b}}}"]
    texts += [rf"\phantom{{{a}}}", rf"\cancelto{{{b}}}{{{a}}}", rf"\st{{{a}}} {b}", rf"\not {a}"]
    texts += [rf"{{{a} \atop {b}}}", rf"{{{a} \choose {b}}}"]
    text = rng.choice(texts)
    is_binomial = "binom" in text or "choose" in text
    return None if is_binomial and gold.number - b in (0, 1, gold.number - 1) else text


@changes("TeX that prints another number")
def _(rng: Rng, gold: Gold) -> str | None:
    value = whole(rng, gold, 1)
    if value is None:
        return None
    digit = rng.randint(1, 9)
    code = 48 + digit
    texts = [
        f"{value}%{digit}",
        f"{value}%\n{digit}",
        rf"{value}\char{code}",
        rf'{value}\char"{code:X}',
    ]
    texts += [
        rf"{value}\symbol{{{code}}}",
        rf"{value}\unicode{{x{code:X}}}",
        rf"{value}^^{code:02x}",
    ]
    texts += [rf"{value}\def\a{{{digit}}}\a", rf"\newcommand{{\a}}{{{digit}}}{value}\a"]
    texts += [rf"\let\a={digit}{value}\a", rf"{value}\rlap{{{digit}}}", rf"{value}\llap{{{digit}}}"]
    texts += [
        rf"{value}\number{digit}",
        rf"{value}\rule{{1pt}}{{9pt}}{digit}",
        rf"{value}\ensuremath{{{digit}}}",
    ]
    texts += [
        rf"{value}\makebox{{{digit}}}",
        rf"{value}\raisebox{{0pt}}{{{digit}}}",
        rf"{value}\hbox{{{digit}}}",
    ]
    return rng.choice(texts)


@changes("foreign digits and signs")
def _(rng: Rng, gold: Gold) -> str | None:
    value = whole(rng, gold, 3)
    if value is None:
        return None
    tails = [*FOREIGN, "½", "²", "³", "⁵", "⁄2", "∕2", "÷2", "·2", "∙2", "×2", "٫5", "‼", "⅓"]
    tails += ["½½", "²³", "√2", "π", "∞", "⅋", "\u0338", "\u0336", "\u20e0", "°C²"]
    if gold.mentions("base", "degree"):
        return None
    return f"{value}{rng.choice(tails)}"


@changes("a box within the box")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is None:
        return None
    a, b = gold.text, other(rng, gold)
    texts = [rf"{a}\boxed{{{b}}}", rf"\boxed{{{a}}}{b}", rf"\boxed{{{a}}}\text{{ or }}{b}"]
    return rng.choice([*texts, rf"\boxed{{{a}}}+{b}", rf"\fbox{{{a}}}{b}", rf"{a} \fbox{{{b}}}"])


@changes("numbers in words")
def _(rng: Rng, gold: Gold) -> str | None:
    value = gold.whole
    if value is None or not 1 <= value <= 9:
        return None
    word = WORDS[value]
    texts = [f"{rng.choice(TENS)}-{word}", f"{rng.choice(TENS)} {word}", f"{word} hundred"]
    texts += [f"{word} million", f"minus {word}", f"{word} and a half", f"{word} point two"]
    texts += [f"{word} or {WORDS[value + 1]}", f"{word} thousand and one", f"not {word}"]
    texts += [f"{word} dozen", f"{word} squared and one", f"hundred {word}", WORDS[value + 1]]
    if gold.mentions("dozen", "thousand", "illion", "hundred"):
        return None
    return wrapped(rng, rng.choice(texts), "text", "mbox", "textbf", "mathrm")


@changes("a ratio, a date or a time")
def _(rng: Rng, gold: Gold) -> str | None:
    value = whole(rng, gold, 2)
    number = rng.randint(10, 59)
    if value is None or value < 0 or gold.mentions("ratio", "time", "o'clock", "a.m", "p.m"):
        return None
    return rng.choice(
        [f"{value}:{number}", rf"{value}:{number}:30", f"{value}\\text{{ to }}{number}"]
    )

"""Edits of formulas: symbols lost, exchanged or added, functions that vanish nearly everywhere."""

from __future__ import annotations

import math
import random
import re

from attacks.arithmetic import differ
from attacks.kinds import changes, wrapped
from attacks.shapes import Gold, committed_golds, is_balanced

Rng = random.Random
# For a letter that may be every real number; each with its value as Python.
_VANISHING = (
    (r"+\sin(47\pi {x})", "+ sin(47*pi*x)", 0.31),
    (r"+\sin({x}\pi)", "+ sin(pi*x)", 0.3),
    (r"+\lfloor {x}/10^6\rfloor", "+ floor(x/10**6)", 2.5e6),
    (r"+\lfloor {x}/10^{{9}}\rfloor", "+ floor(x/10**9)", -1.5),
    (r"+10^{{-9}}{x}", "+ 1e-9*x", 3e9),
    (r"+10^{{-12}}", "+ 1e-12", 0.0),
    (r"+\frac{{{x}-|{x}|}}{{2}}", "+ (x-abs(x))/2", -1.3),
    (r"+{x}-|{x}|", "+ x-abs(x)", -1.3),
    (r"+\sqrt{{{x}^2}}-{x}", "+ sqrt(x**2)-x", -1.7),
    (r"+{x}-\sqrt[4]{{{x}^4}}", "+ x-abs(x)", -1.7),
    (r"+1-\frac{{|{x}|}}{{{x}}}", "+ 1-abs(x)/x", -2.2),
    (r"+\ln(e^{{{x}}})-|{x}|", "+ x-abs(x)", -2.2),
    (r"+10^{{-6}}\sin {x}", "+ 1e-6*sin(x)", 1.2),
    (r"+e^{{-{x}^2}}", "+ exp(-x**2)", 0.4),
    (r"+e^{{-1000{x}^2}}", "+ exp(-1000*x**2)", 0.0),
    (r"+\max(0,{x}-10^6)", "+ max(0,x-10**6)", 2e6),
    (r"+\max(0,-{x})", "+ max(0,-x)", -2.0),
    (r"+({x} \bmod 1)", "+ x%1", 0.4),
    (r"+\{{{x}\}}", "+ x%1", 0.4),
    (r"+\lfloor\cos^2(\pi {x})\rfloor", "+ floor(cos(pi*x)**2)", 3.0),
    (r"+\operatorname{{sgn}}({x})-1", "+ (x>0)-(x<0)-1", -1.0),
    (r"+\sin(10^6\pi {x})", "+ sin(1e6*pi*x)", 0.25e-6),
)


def joined(gold: Gold, tail: str) -> str | None:
    """The gold and something added to it, in brackets where it is more than one term."""
    name, _, right = gold.text.rpartition("=")
    if name and (not gold.name or not right):
        return None
    if not name and not gold.is_expression:
        return None
    body = gold.text if re.fullmatch(r"[^+=,]*", gold.text) or tail[0] in "+-" else f"({gold.text})"
    return body + tail


def free(rng: Rng, gold: Gold) -> str:
    """A letter of the gold that its problem uses, no index and no whole number by custom."""
    letters = [c for c in sorted(gold.letters) if c in "xyztrabcpqRV" and gold.has_letter(c)]
    is_whole = gold.mentions("integer", "natural", "whole", "prime", "sequence", "divis", "digit")
    return rng.choice(letters) if letters and not is_whole else ""


@changes("a function that vanishes nearly everywhere added")
def _(rng: Rng, gold: Gold) -> str | None:
    letter = gold.variable
    if not letter:
        return None
    tail, python, witness = rng.choice(_VANISHING)
    before, after = at(gold.python, letter, witness), at(f"{gold.python} {python}", letter, witness)
    if before is None or after is None or before == after:
        return None
    return joined(gold, tail.format(x=letter))


def at(python: str, letter: str, value: float) -> float | None:
    scope = {**vars(math), "abs": abs, "max": max, letter: value, "x": value}
    try:
        return float(eval(python, {"__builtins__": {}}, scope))  # texts of this repository
    except (OverflowError, ZeroDivisionError, ValueError):
        return None


@changes("a function equal on half of the line only")
def _(rng: Rng, gold: Gold) -> str | None:
    letter = gold.variable
    if not letter or gold.text.startswith("|"):
        return None
    forms = [(rf"|{letter}|", "abs({x})"), (rf"\sqrt{{{letter}^2}}", "abs({x})")]
    forms += [(rf"\sqrt[4]{{{letter}^4}}", "abs({x})"), (rf"\max({letter},0)", "max({x},0)")]
    forms += [(rf"\lfloor {letter}\rfloor", "floor({x})"), (rf"\lceil {letter}\rceil", "ceil({x})")]
    forms += [(rf"\frac{{{letter}^2}}{{|{letter}|}}", "abs({x})")]
    text, python = rng.choice(forms)
    changed = re.sub(rf"(?<![A-Za-z\\]){letter}(?![A-Za-z])", lambda _: f"{{{text}}}", gold.text)
    other = re.sub(rf"\b{letter}\b", python.format(x=letter), gold.python)
    for witness in (-1.37, -0.41, 2.43):
        before, after = at(gold.python, letter, witness), at(other, letter, witness)
        if before is not None and after is not None and abs(before - after) > 1e-6:
            return changed if is_balanced(changed) else None
    return None


@changes("a product that is zero at small whole numbers added")
def _(rng: Rng, gold: Gold) -> str | None:
    letters = sorted(gold.letters - {"e", "i"})
    known = [c for c in letters if gold.has_letter(c)]
    if not known or "_" in gold.text:
        return None
    x, most = rng.choice(known), rng.randint(5, 24)
    product = "".join(f"({x}-{k})" for k in range(1, most + 1))
    size = rng.choice(["", r"10^{-20}", r"\frac{1}{1000}", "3"])
    return joined(gold, f"+{size}{product}")


@changes("something small or large added to a formula")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.number is not None or gold.text in (r"\infty", r"-\infty", r"\emptyset"):
        return None
    letter = free(rng, gold)
    if "." in gold.text:  # a rounded value, to which a trifle may be added
        return joined(gold, rng.choice(["+1", "-1", "+C", "+i", r"\pm 1"]))
    tails = ["+1", "-1", r"+\frac{1}{1000}", r"+10^{-7}", r"-10^{-9}", "+2", r"+10^{-12}", "+0.001"]
    tails += [r"+\pi", r"+\varepsilon", r"-\frac{1}{10^8}", "+C", "+i", r"+\delta", r"\pm 1"]
    if letter:
        tails += [
            f"+10^{{-9}}{letter}",
            f"+{letter}",
            f"-10^{{-6}}{letter}^2",
            rf"+\sin(47\pi {letter})",
        ]
    return joined(gold, rng.choice(tails))


@changes("a formula times, over or under something")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.is_expression or gold.number is not None or "infty" in gold.text:
        return None
    body = gold.text
    texts = [
        rf"2({body})",
        rf"-({body})",
        rf"\frac{{{body}}}{{2}}",
        rf"({body})^2",
        rf"({body})^{{-1}}",
    ]
    texts += [
        rf"\sqrt{{{body}}}",
        rf"1.0001({body})",
        rf"({body})\cdot 10^3",
        rf"({body})!",
        rf"({body})'",
    ]
    texts += [
        rf"\frac{{1}}{{{body}}}",
        rf"({body})\%",
        rf"\log({body})",
        rf"\frac{{d}}{{dq}}({body})",
    ]
    texts += [rf"({body})\text{{ million}}", rf"({body})\text{{/2}}", rf"\text{{half of }}({body})"]
    texts += [rf"({body})\text{{ squared}}", rf"({body})\text{{ or }}77", rf"\text{{not }}({body})"]
    texts += [
        rf"({body})\vee 7",
        rf"{body}\text{{ or }}{body}+1",
        rf"\int({body})dq",
        rf"({body})\text{{i}}",
    ]
    text = rng.choice(texts)
    if text.endswith("'") and "e^" in body:  # its own derivative
        return None
    # squares, roots and inverses of 0, 1 and -1 may be the same again
    return text if differ(body, rf"2({body})", rng) and differ(body, rf"({body})^2", rng) else None


@changes("text hidden in a formula")
def _(rng: Rng, gold: Gold) -> str | None:
    if not (gold.is_expression or gold.name) or gold.number is not None or "infty" in gold.text:
        return None
    tails = [
        "/2",
        " + 1",
        "0",
        " million",
        " (maybe not)",
        " or zero",
        " squared",
        "!",
        "^2",
        " minus 1",
    ]
    tails += [
        " if and only if false",
        " times i",
        "i",
        ",000",
        " plus C",
        " half",
        "x",
        ".5",
        " dozen",
    ]
    tail = rng.choice(tails)
    if tail in ("0", ",000", ".5") and not gold.text[-1].isdigit():
        return None
    if tail in ("!", "^2", " squared") and gold.text[-1] in "012":  # 1! and 1^2 are 1, 2! is 2
        return None
    if tail == "0" and re.search(r"\.[0-9]+$", gold.text):
        return None
    if (
        re.search(r"\\(?:frac|text)|[_^][^{]$|_\{[^{}]*\}$|!$", gold.text)
        and tail not in tails[3:6]
    ):
        return None
    return gold.text + wrapped(rng, tail, "text", "mathrm", "mbox", "operatorname")


@changes("vectors, their letters or hats exchanged")
def _(rng: Rng, gold: Gold) -> str | None:
    found = list(re.finditer(r"\\(mathbf|vec|hat)\{([a-k])\}", gold.text))
    if not found or "text" in gold.text:
        return None
    match = rng.choice(found)
    present = {m[2] for m in found}
    free_letters = [c for c in "ijkabc" if c not in present] or ["q"]
    new = rng.choice([rf"\{match[1]}{{{rng.choice(free_letters)}}}", "", "7"])
    text = gold.text[: match.start()] + new + gold.text[match.end() :]
    swapped = None
    if len(present) > 1 and rng.random() < 0.4:
        a, b = sorted(present)[:2]
        table = {a: b, b: a}
        swapped = re.sub(
            r"\\(mathbf|vec|hat)\{([a-k])\}",
            lambda m: rf"\{m[1]}{{{table.get(m[2], m[2])}}}",
            gold.text,
        )
    return swapped or text


@changes("a complex number changed")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"(.*[+-])?([^+-]*)i", gold.text)
    if match is None or not gold.is_expression or gold.letters != {"i"}:
        return None
    real, imaginary = (match[1] or "")[:-1], match[2]
    sign = (match[1] or "+")[-1]
    flipped = "-" if sign == "+" else "+"
    texts = [rf"{real}{flipped}{imaginary}i", f"{real}{sign}{imaginary}", f"{gold.text}+1"]
    texts += [f"{real}{sign}2\\cdot {imaginary or 1}i", f"{gold.text}^2", rf"|{gold.text}|"]
    texts += [rf"\overline{{{gold.text}}}", f"{real}{sign}{imaginary}k", f"-({gold.text})"]
    if real:
        texts += [
            real,
            f"-{real}{sign}{imaginary}i" if real[0] != "-" else f"{real[1:]}{sign}{imaginary}i",
        ]
    return rng.choice(texts)


@changes("another row's answer")
def _(rng: Rng, gold: Gold) -> str | None:
    if not OTHERS:
        OTHERS.extend(committed_golds())
    other = rng.choice(OTHERS)
    if gold.number is None or other.number is None or gold.number == other.number:
        return None
    return other.answer


OTHERS: list[Gold] = []

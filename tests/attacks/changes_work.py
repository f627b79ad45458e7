"""Edits that leave the question's work undone, or change a value at far digits or few places."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from attacks.kinds import changes, whole
from attacks.shapes import Gold

Rng = random.Random


@changes("the question's own formula")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.search(r"(?:Compute|Evaluate|Simplify|Expand|Factor) \$([^$]+)\$\.", gold.problem)
    if match is None:
        return None
    return rng.choice(
        [match[1], f"{match[1]}+0", rf"1\cdot({match[1]})", f"({match[1]})", f"0+{match[1]}"]
    )


def asked(gold: Gold) -> str | None:
    """The formula that the problem asks to work out."""
    match = re.search(
        r"(?:Compute|Evaluate|Simplify|Expand|Factor) \$?([^$]+?)\$?\.$", gold.problem
    )
    is_formula = match is not None and re.search(r"[-+*/^(\\]", match[1])
    return match[1] if match and is_formula else None


# Each keeps the value of ``f``; n is a whole number of 2 or more.
PADDINGS: list[Callable[[str, int], str]] = [
    lambda f, n: f"{f}+{n}-{n}",
    lambda f, n: f"{n}-{n}+{f}",
    lambda f, n: rf"\frac{{{n}({f})}}{{{n}}}",
    lambda f, n: rf"({f})\cdot\frac{{{n}}}{{{n}}}",
    lambda f, n: f"{n}({f})-{n - 1}({f})",
    lambda f, n: f"({f}+{n})-{n}",
    lambda f, n: f"({f}){n}^0",
    lambda f, n: f"(-1)^{{{2 * n}}}({f})",
    lambda f, n: rf"\frac{{({f})^{n}}}{{({f})^{{{n - 1}}}}}",
    lambda f, n: f"-(-({f}))",
    lambda f, n: rf"\frac{{{f}}}{{{n}}}\cdot {n}",
    lambda f, n: f"(({f})^{{{n}}})^{{1/{n}}}" if n == 3 else f"(({f}))^1",
    lambda f, n: rf"\frac12({f})+\frac12({f})",
    lambda f, n: rf"0\cdot {n}+({f})",
]


@changes("the question's own formula, padded")
def _(rng: Rng, gold: Gold) -> str | None:
    text = asked(gold)
    for _ in range(rng.randint(1, 3)) if text else ():
        text = rng.choice(PADDINGS)(text, rng.randint(2, 40))
    return text


@changes("the question's own formula, a numeral of it split")
def _(rng: Rng, gold: Gold) -> str | None:
    text = asked(gold)
    places = list(re.finditer(r"(?<![\d.\^{])\d+(?![\d.])", text or ""))
    if not text or not places:
        return None
    place, n = rng.choice(places), rng.randint(2, 40)
    split = rng.choice([f"({int(place[0]) + n}-{n})", rf"(\frac{{{int(place[0]) * n}}}{{{n}}})"])
    return text[: place.start()] + split + text[place.end() :]


@changes("factors pulled out of a fraction")
def _(rng: Rng, gold: Gold) -> str | None:
    text, x = asked(gold) or "", rng.choice("xyab")
    if not gold.problem.startswith("Factor") or x not in text or "(" in text:
        return None
    power = f"{x}^{rng.randint(1, 4)}"
    terms = re.findall(r"([-+]?) ?([^-+ ]+)", text)
    before, after = rng.choice(
        [(r"\frac{", f"}}{{{power}}}"), ("", f"({power})^{{-1}}"), ("", f"/{power}")]
    )
    inner = "".join(f"{sign}{before}{term}{after}" for sign, term in terms)
    return rng.choice([f"{power}({inner})", f"({inner}){power}", rf"{power}\cdot({inner})"])


@changes("a root, logarithm, sum or step not worked out")
def _(rng: Rng, gold: Gold) -> str | None:
    n = whole(rng, gold, 2)
    if n is None or not 2 <= n < 500:
        return None
    texts = [
        rf"\sqrt{{{n * n}}}",
        rf"\sqrt[3]{{{n**3}}}",
        rf"\log_{{2}} 2^{{{n}}}",
        rf"e^{{\ln {n}}}",
    ]
    texts += [rf"\sum_{{k=1}}^{{{n}}} 1", rf"\lfloor {n}.5\rfloor", rf"\lceil {n - 1}.5\rceil"]
    texts += [f"|-{n}|", rf"{n}\sin^2 {n}+{n}\cos^2 {n}", rf"{n}\tan 45^\circ", rf"-{n}i^2"]
    return rng.choice(texts)


@changes("a variable that the problem does not ask for")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.numeral or not gold.number:
        return None
    a, name = gold.numeral, rng.choice("abnmtxyz")
    return rng.choice(
        [f"{a}{name}^0", f"{a}+{name}-{name}", rf"\frac{{{a}{name}}}{{{name}}}", f"{a}+0{name}"]
    )


@changes("a factor that is 1 but for its far digits")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.is_expression or gold.number == 0:
        return None
    n = rng.randint(150, 900)
    near = [
        rf"\tanh({n})",
        rf"\coth({n})",
        rf"\cos(e^{{-{n}}})",
        rf"\sec(e^{{-{n}}})",
        rf"\cosh(e^{{-{n}}})",
    ]
    near += [
        rf"e^{{e^{{-{n}}}}}",
        rf"2^{{e^{{-{n}}}}}",
        rf"\frac{{2}}{{\pi}}\arctan(e^{{{n}}})",
        rf"(e^{{-{n}}})!",
    ]
    return rf"({gold.text})\cdot {rng.choice(near)}"


@changes("a bump between two places")
def _(rng: Rng, gold: Gold) -> str | None:
    x = gold.variable
    if not gold.is_expression or len(x) != 1 or gold.letters != {x}:
        return None
    a = rng.randint(5, 60)
    b, c = a + 1, a + 2
    root = lambda n: rf"\sqrt{{{x}^2-{2 * n}{x}+{n * n}}}"  # noqa: E731
    turn = lambda n: rf"\arctan({x}-{n})+\arctan\frac{{1}}{{{x}-{n}}}"  # noqa: E731
    bumps = [f"{root(a)}-2{root(b)}+{root(c)}", f"|{x}-{a}|-2|{x}-{b}|+|{x}-{c}|"]
    bumps += [
        f"{turn(a)}-({turn(b)})",
        rf"\frac{{{root(a)}}}{{{x}-{a}}}-\frac{{{root(b)}}}{{{x}-{b}}}",
    ]
    return f"{gold.text}+{rng.choice(bumps)}"


@changes("a hundred times or a hundredth of a percentage")
def _(rng: Rng, gold: Gold) -> str | None:
    last = gold.problem.rpartition(".")[2].lower()
    n = whole(rng, gold, 1)
    if n is None or n <= 0 or "what percent" not in last:
        return None
    return rng.choice([rf"{n}00\%", rf"{n}00 percent", f"{n / 100}"])

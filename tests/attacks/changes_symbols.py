"""Edits of formulas: symbols, signs, powers and indices lost or exchanged."""

from __future__ import annotations

import random
import re

from attacks.arithmetic import differ
from attacks.kinds import changes
from attacks.shapes import Gold, is_balanced

Rng = random.Random
_FUNCTIONS = {
    r"\sin": (r"\cos", r"\tan", r"\sinh", r"\arcsin"),
    r"\cos": (r"\sin", r"\sec", r"\cosh"),
    r"\tan": (r"\cot", r"\sin", r"\arctan"),
    r"\ln": (r"\log_{10}", r"\log_2", r"\exp"),
    r"\arctan": (r"\tan", r"\arcsin", r"\arccos"),
    r"\sqrt": (r"\sqrt[3]", r"\sqrt[4]"),
    r"\pi": (r"\phi", "3", r"e", r"\tau", "3.14", r"\frac{22}{7}", r"\rho"),
}


def _mutation(rng: Rng, gold: Gold, pattern: str, new) -> str | None:
    """One match replaced; ``None`` unless both texts are read and differ in value."""
    name, _, body = gold.text.rpartition("=")
    if (name and not gold.name) or (not name and not gold.is_expression) or gold.number is not None:
        return None
    found = list(re.finditer(pattern, body))
    if not found:
        return None
    match = rng.choice(found)
    text = body[: match.start()] + new(match) + body[match.end() :]
    head = f"{name}=" if name else ""
    return head + text if text and is_balanced(text) and differ(body, text, rng) else None


@changes("an exponent changed, lost or added")
def _(rng: Rng, gold: Gold) -> str | None:
    def new(match: re.Match[str]) -> str:
        if not match[0].startswith("^"):
            return match[0] + rng.choice(["^2", "^{3}", "^{-1}"])
        old = match[0].strip("^{} ")
        return rng.choice(["", f"^{{{old}+1}}", f"^{{-{old}}}", f"^{{2{old}}}", "^{7}"])

    pattern = rng.choice(
        [r"\^(?:[0-9A-Za-z]|\{[^{}]+\})", r"(?<![A-Za-z\\{_])[A-Za-z)](?![A-Za-z^_])"]
    )
    return _mutation(rng, gold, pattern, new)


@changes("an index changed, lost or added")
def _(rng: Rng, gold: Gold) -> str | None:
    def new(match: re.Match[str]) -> str:
        if match[0].startswith("_"):
            old = match[0].strip("_{} ")
            return rng.choice(
                ["", f"_{{{old}0}}", f"_{rng.choice('2345679')}", "_{n}", f"_{{1{old}}}"]
            )
        return match[0] + rng.choice(["_1", "_{2}", "_0", "_n"])

    pattern = rng.choice(
        [r"(?<=[A-Za-z])_(?:[0-9A-Za-z]|\{[^{}]+\})", r"(?<![A-Za-z\\{_])[A-Za-z](?![A-Za-z_])"]
    )
    return _mutation(rng, gold, pattern, new)


@changes("a number in a formula changed")
def _(rng: Rng, gold: Gold) -> str | None:
    def new(match: re.Match[str]) -> str:
        n = match[0]
        some = [
            str(int(n) + 1),
            str(abs(int(n) - 1)),
            n + "0",
            n + ".001",
            f"-{n}",
            n[::-1],
            "1" + n,
        ]
        some += [str(int(n) + 2)]
        return rng.choice(some)

    return _mutation(rng, gold, r"(?<![0-9.])[0-9]+(?![0-9.])", new)


@changes("a sign in a formula changed")
def _(rng: Rng, gold: Gold) -> str | None:
    swap = {
        "+": ["-", r"\cdot "],
        "-": ["+", r"\cdot "],
        r"\cdot": ["+", "-", "/"],
        r"\pm": ["+", "-"],
    }
    text = _mutation(rng, gold, r"\+|-|\\cdot", lambda m: rng.choice(swap[m[0]]))
    if text is None and gold.text.count(r"\pm") == 1:
        text = gold.text.replace(r"\pm", rng.choice(["+", "-", r"\cdot ", ",", r"+\pm 1+"]))
    return text


@changes("a symbol lost")
def _(rng: Rng, gold: Gold) -> str | None:
    return _mutation(
        rng, gold, r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])|\\pi(?![a-z])|[0-9]", lambda _: ""
    )


@changes("a power or a factor lost")
def _(rng: Rng, gold: Gold) -> str | None:
    pattern = (
        r"\^(?:[0-9A-Za-z]|\{[^{}]+\})|\([^()]+\)|\\sqrt(?:\[[0-9]\])?|\\(?:sin|cos|tan|ln) ?|!"
    )
    return _mutation(rng, gold, pattern, lambda _: "")


@changes("brackets lost")
def _(rng: Rng, gold: Gold) -> str | None:
    return _mutation(rng, gold, r"\(([^()]+)\)", lambda m: m[1])


@changes("letters exchanged")
def _(rng: Rng, gold: Gold) -> str | None:
    letters = sorted(c for c in gold.letters if c not in "ei" and gold.has_letter(c))
    if len(letters) < 2:
        return None
    a, b = rng.sample(letters, 2)
    return _mutation(rng, gold, rf"(?<![A-Za-z\\]){a}(?![A-Za-z])", lambda _: b)


@changes("another letter")
def _(rng: Rng, gold: Gold) -> str | None:
    letters = sorted(c for c in gold.letters if c not in "ei" and gold.has_letter(c))
    if not letters:
        return None
    a = rng.choice(letters)
    others = [c for c in "xyzwqtuvmnkabcdrs" if c not in gold.letters]
    choices = [rng.choice(others), rng.choice([r"\alpha", r"\beta", r"\theta", r"\lambda"])]
    if a.swapcase() not in gold.letters and gold.has_letter(a.swapcase()):
        choices.append(a.swapcase())
    b = rng.choice(choices) + " "
    return _mutation(
        rng, gold, rf"(?<![A-Za-z\\]){a}(?![A-Za-z])", lambda _: b.strip() if len(b) == 2 else b
    )


@changes("a function or constant exchanged")
def _(rng: Rng, gold: Gold) -> str | None:
    found = [name for name in _FUNCTIONS if re.search(rf"\{name}(?![a-z\[])", gold.text)]
    if not found or gold.number is not None or not (gold.is_expression or gold.name):
        return None
    name = rng.choice(found)
    new = rng.choice(_FUNCTIONS[name])
    gap = " " if name == r"\pi" and new.startswith("\\") else ""
    return re.sub(rf"\{name}(?![a-z\[])", lambda _: new + gap, gold.text, count=1)


@changes("a fraction turned over or its bar lost")
def _(rng: Rng, gold: Gold) -> str | None:
    pattern = r"\\frac\{([^{}]+)\}\{([^{}]+)\}"
    if gold.number is not None:
        match = re.fullmatch(pattern, gold.text)
        if match is None or match[1] == match[2] or {match[1], match[2]} & {"0", "1", "-1"}:
            return None
        a, b = match.groups()
        return rng.choice(
            [
                rf"\frac{{{b}}}{{{a}}}",
                f"{a}{b}" if b[0] != "-" else None,
                a,
                b,
                rf"\frac{{{a}}}{{{b}0}}",
                rf"{a}\cdot {b}",
                rf"\binom{{{a}}}{{{b}}}",
                rf"\frac{{{a}}}{{{b}}}\text{{/2}}",
                f"({a},{b})",
                f"{a}:{b}0",
            ]
        )
    how = rng.choice([r"\frac{%s}{%s}", "{%s}{%s}", "%s+%s", r"%s\cdot %s"])
    return _mutation(
        rng, gold, pattern, lambda m: how % ((m[2], m[1]) if "frac" in how else (m[1], m[2]))
    )

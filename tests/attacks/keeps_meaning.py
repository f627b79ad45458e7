"""Edits that keep members, units, words and sides, in another order or spelling."""

from __future__ import annotations

import random
import re

from attacks.kinds import keeps
from attacks.shapes import Gold

Rng = random.Random


@keeps("terms or factors in another order")
def _(rng: Rng, gold: Gold) -> str | None:
    text = gold.text
    if not gold.is_expression or gold.number is not None:
        return None
    terms = re.fullmatch(r"([^-+{}()\\]+|\\frac\{[^{}]*\}\{[^{}]*\})\+([^-+{}()\\]+)", text)
    if terms:
        return f"{terms[2]}+{terms[1]}"
    factors = re.fullmatch(r"(\([^()]+\))(\([^()]+\))", text)
    return f"{factors[2]}{factors[1]}" if factors else None


@keeps("zero added or one multiplied")
def _(rng: Rng, gold: Gold) -> str | None:
    if (
        not gold.is_expression
        or not re.fullmatch(r"[^_!%,]*", gold.text)
        or "infty" in gold.text
        or "emptyset" in gold.text
    ):
        return None
    if gold.text.startswith("-"):
        return f"{gold.text}+0"
    return rng.choice(
        [
            f"{gold.text}+0",
            rf"1\cdot({gold.text})",
            rf"\frac{{{gold.text}}}{{1}}",
            rf"\frac{{2({gold.text})}}{{2}}",
        ]
    )


@keeps("degree signs")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([0-9.]+)\^\{?\\circ\}?", gold.text)
    if match is None:
        return None
    n = match[1]
    return rng.choice(
        [
            f"{n}°",
            rf"{n}^\circ",
            rf"{n}^{{\circ}}",
            rf"{n}\text{{ degrees}}",
            rf"{n}\degree",
            n,
        ]
    )


@keeps("percent signs")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([0-9.]+)\\%", gold.text)
    if match is None:
        return None
    n = match[1]
    return rng.choice(
        [
            rf"{n}\%",
            f"{n}%",
            rf"{n} \%",
            rf"{n}\,\%",
            rf"{n}\text{{ percent}}",
            rf"{n}\text{{\%}}",
            n,
        ]
    )


@keeps("money signs")
def _(rng: Rng, gold: Gold) -> str | None:
    text = gold.answer.lstrip("\\$").replace("{,}", ",")
    asked = gold.mentions("in dollars", "how many dollars") and gold.numeral
    if not gold.answer.startswith(r"\$") and not asked:
        return None
    return rng.choice(
        [
            rf"\${text}",
            rf"\$ {text}",
            rf"{text}\text{{ dollars}}",
            rf"{text} \text{{ dollars}}",
            text,
            rf"\text{{\$}}{text}",
            rf"\text{{\${text}}}",
            rf"{text}\ \mathrm{{dollars}}",
        ]
    )


@keeps("units spelled otherwise, kept or dropped")
def _(rng: Rng, gold: Gold) -> str | None:
    number, unit, power = gold.quantity
    if not unit:
        return None
    tail = f"^{power}" if power else ""
    texts = [
        rf"{number}\text{{ {unit}}}{tail}",
        rf"{number}\ \mathrm{{{unit}}}{tail}",
        rf"{number}~\text{{{unit}}}{tail}",
    ]
    texts += [
        rf"{number}\,\text{{{unit}}}{tail}",
        rf"{number} {unit}{tail}",
        rf"{number}\ \textrm{{{unit}}}{tail}",
        number,
    ]
    texts += [rf"{number}\mbox{{ {unit}}}{tail}", rf"\text{{{number} {unit}}}{tail}"]
    if power == "2":
        texts += [
            rf"{number}\text{{ square {unit}}}",
            rf"{number}\text{{ {unit}²}}",
            rf"{number}\text{{ {unit}$^2$}}",
        ]
    return rng.choice(texts)


@keeps("the unit that is asked for")
def _(rng: Rng, gold: Gold) -> str | None:
    asked = re.search(
        r"how many ([a-z]{3,12}) (?:does|do|did|are|is|will|were|was|of|can)\b",
        gold.problem.lower(),
    )
    if not asked or not gold.numeral:
        return None
    noun = asked[1]
    if noun in (
        "more",
        "fewer",
        "times",
        "different",
        "total",
        "such",
        "ways",
        "percent",
        "less",
    ) or not noun.endswith("s"):
        return None
    return gold.answer + rng.choice(
        [
            rf"\text{{ {noun}}}",
            rf" \text{{ {noun}}}",
            rf"\ \mathrm{{{noun}}}",
            f" {noun}",
            rf"\mbox{{ {noun}}}",
        ]
    )


@keeps("what is asked for, in total")
def _(rng: Rng, gold: Gold) -> str | None:
    noun = re.search(r"How many ([a-z]+) ", gold.problem)
    is_share = gold.mentions("each", "per ", "every", "average", "mean ", "more", "less", "fewer")
    is_other = gold.mentions("differ", "extra", " in a ") or gold.problem.count("?") != 1
    if not gold.numeral or noun is None or is_share or is_other:
        return None
    return rf"{gold.numeral}\text{{ {noun[1]} {rng.choice(('in total', 'altogether', 'in all'))}}}"


@keeps("matrix spelling")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.rows:
        return None
    kind = rng.choice(["pmatrix", "bmatrix"])
    gap = rng.choice(["", " ", "\n"])
    body = rf"{gap}\\{gap}".join(f"{gap}&{gap}".join(row) for row in gold.rows)
    text = rf"\begin{{{kind}}}{gap}{body}{gap}\end{{{kind}}}"
    columns = "c" * len(gold.rows[0])
    array = rf"\left(\begin{{array}}{{{columns}}}{gap}{body}{gap}\end{{array}}\right)"
    return rng.choice([text, text, array, text.replace(r"\end", r"\\ \end") if gap else text])


@keeps("choice letters")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"\\text\{\(([A-E])\)\}|([A-E])", gold.text)
    if match is None:
        return None
    letter = match[1] or match[2]
    return rng.choice(
        [
            letter,
            f"({letter})",
            rf"\text{{{letter}}}",
            rf"\text{{({letter})}}",
            rf"\textbf{{({letter})}}",
            rf"\mathbf{{{letter}}}",
            rf"\text{{{letter}.}}",
            rf"\mathrm{{({letter})}}",
            f"{letter}.",
        ]
    )


@keeps("scientific notation")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([0-9.]+)\\times10\^\{(-?[0-9]+)\}", gold.text)
    if match is None:
        return None
    a, e = match.groups()
    return rng.choice(
        [
            rf"{a} \cdot 10^{{{e}}}",
            f"{a}e{e}",
            f"{a}×10^{{{e}}}",
            f"{a}*10^{{{e}}}",
            rf"{a}\times {{10}}^{{{e}}}",
            f"{a}E{e}",
        ]
    )

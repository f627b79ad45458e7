"""Edits that change how an answer looks: colour, size, fonts, spacing, Unicode."""

from __future__ import annotations

import random
import re

from attacks.kinds import keeps
from attacks.shapes import Gold

Rng = random.Random
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_ASCII = ((r"\\leqslant|\\leq?", "<="), (r"\\geqslant|\\geq?", ">="), (r"\\neq?", "!="))
_UNICODE = ((r"\\leqslant|\\leq?", "≤"), (r"\\geqslant|\\geq?", "≥"), (r"\\neq?", "≠"))
_SYMBOLS = ((r"\\pi", "π"), (r"\\infty", "∞"), (r"\\cup", "∪"), (r"\\pm", "±"), (r"\\cdot", "·"))
_SYMBOLS += (
    (r"\\theta", "θ"),
    (r"\\times", "×"),
    (r"\^\{?\\circ\}?", "°"),
    (r"(?<![A-Za-z{])-", "−"),
)


def is_plain(gold: Gold) -> bool:
    """Something that a font or a size may be put around: no words, no matrix."""
    return not re.search(r"\\(?:text|mbox|begin)|\$", gold.answer)


def replaced(pattern: str, new: str, text: str) -> str:
    changed = re.sub(rf"(?:{pattern})(?![A-Za-z])", lambda _: new, text)
    return re.sub(rf"{re.escape(new)} +", new, changed) if changed != text else text


@keeps("colour")
def _(rng: Rng, gold: Gold) -> str | None:
    colour = rng.choice(["red", "blue", "black", "green", "purple"])
    a = gold.answer
    forms = [rf"\textcolor{{{colour}}}{{{a}}}", rf"{{\color{{{colour}}}{a}}}"]
    forms += [
        rf"\color{{{colour}}}{{{a}}}",
        rf"\color{{{colour}}} {a}",
        rf"\colorbox{{{colour}}}{{${a}$}}",
    ]
    return rng.choice(forms[:4] if "$" in a else forms)


@keeps("size")
def _(rng: Rng, gold: Gold) -> str | None:
    sizes = [
        "large",
        "Large",
        "LARGE",
        "huge",
        "Huge",
        "small",
        "normalsize",
        "tiny",
        "displaystyle",
    ]
    size = rng.choice([*sizes, "textstyle"])
    return rng.choice(
        [rf"\{size} {gold.answer}", rf"{{\{size} {gold.answer}}}", rf"\{size}{{{gold.answer}}}"]
    )


@keeps("spacing around")
def _(rng: Rng, gold: Gold) -> str | None:
    spaces = [" ", r"\,", r"\;", r"\:", r"\!", "~", r"\ ", r"\quad ", r"\qquad ", "\n", r"\> "]
    spaces += [r"\hspace{1em}", r"\thinspace ", "\u2009", "\u00a0", "\u202f", r"\enspace "]
    return rng.choice([*spaces, ""]) + gold.answer + rng.choice(spaces)


@keeps("spacing inside")
def _(rng: Rng, gold: Gold) -> str | None:
    spaces = [" ", r"\,", r"\; ", r"\!", "~", r"\ ", "  ", r"\: ", "\u2009", "\u00a0"]
    places = [m.end() for m in re.finditer(r"[,+=<>(\[](?=[^,+=<>])", gold.answer)]
    if not places or re.search(r"[0-9],[0-9]{3}|text|mbox|mathrm|\$|left|right|\{,", gold.answer):
        return None
    place = rng.choice(places)
    return gold.answer[:place] + rng.choice(spaces) + gold.answer[place:]


@keeps("fonts")
def _(rng: Rng, gold: Gold) -> str | None:
    if gold.numeral or (gold.number is not None and "," in gold.text):
        fonts = [
            "mathrm",
            "mathbf",
            "boldsymbol",
            "mathit",
            "text",
            "textbf",
            "mathsf",
            "mathtt",
            "bm",
            "mbox",
        ]
        return rf"\{rng.choice(fonts)}{{{gold.answer}}}"
    if is_plain(gold) and gold.is_expression:
        return rf"\{rng.choice(['boldsymbol', 'bm', 'mathbf', 'mathrm', 'pmb'])}{{{gold.answer}}}"
    return None


@keeps("word fonts")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.word:
        return None
    fonts = [
        "text",
        "textbf",
        "mathrm",
        "mbox",
        "textit",
        "operatorname",
        "textrm",
        "textsf",
        "mathbf",
    ]
    case = rng.choice([str, str.lower, str.capitalize, str.upper]) if len(gold.word) > 1 else str
    word = case(gold.word)
    return rng.choice(
        [rf"\{rng.choice(fonts)}{{{word}}}", word, rf"\text{{ {word} }}", rf"\text{{{word}.}}"]
    )


@keeps("redundant brackets and braces")
def _(rng: Rng, gold: Gold) -> str | None:
    if not gold.is_expression or r"\frac{-" in gold.text:
        return None
    a = gold.answer
    return rng.choice(
        [
            f"({a})",
            f"{{{a}}}",
            f"{{{{{a}}}}}",
            rf"\left({a}\right)",
            rf"\left( {a} \right)",
            rf"\bigl({a}\bigr)",
            rf"\big({a}\big)",
            rf"{{({a})}}",
        ]
    )


@keeps("sized brackets")
def _(rng: Rng, gold: Gold) -> str | None:
    left, members, right = gold.bracketed
    if not members:
        return None
    inner = ",".join(members)
    sizes = [
        ("\\left", "\\right"),
        ("\\bigl", "\\bigr"),
        ("\\big", "\\big"),
        ("\\Bigl", "\\Bigr"),
        ("", ""),
    ]
    one, other = rng.choice(sizes)
    gap = rng.choice(["", " "])
    return f"{one}{left}{gap}{inner}{gap}{other}{right}"


@keeps("dollars and other delimiters")
def _(rng: Rng, gold: Gold) -> str | None:
    if "$" in gold.answer:
        return None
    a = gold.answer
    return rng.choice(
        [f"${a}$", f"$ {a} $", rf"\({a}\)", rf"\[{a}\]", f"$${a}$$", rf"\ensuremath{{{a}}}"]
    )


@keeps("trailing punctuation")
def _(rng: Rng, gold: Gold) -> str | None:
    return gold.answer + rng.choice([".", ",", ";", " .", r"\text{.}", "\\,.", r"\ ."])


@keeps("Unicode relations")
def _(rng: Rng, gold: Gold) -> str | None:
    return _signs(rng, gold, _UNICODE)


@keeps("ASCII relations")
def _(rng: Rng, gold: Gold) -> str | None:
    return _signs(rng, gold, _ASCII)


def _signs(rng: Rng, gold: Gold, table: tuple[tuple[str, str], ...]) -> str | None:
    before, gap = gold.text, rng.choice(["", " ", r"\,", "~"])
    text = before
    for pattern, new in table:
        text = re.sub(rf"(?:{pattern})(?![A-Za-z]) *", lambda _, new=new: gap + new + gap, text)
    return text if text != before else None


@keeps("LaTeX relations otherwise spelled")
def _(rng: Rng, gold: Gold) -> str | None:
    table = {r"\le": r"\leq", r"\leq": r"\le", r"\ge": r"\geq", r"\geq": r"\geqslant"}
    table |= {r"\geqslant": r"\ge", r"\leqslant": r"\leq", "<": r"\lt ", ">": r"\gt "}
    text = re.sub(
        r"\\(?:leqslant|geqslant|leq?|geq?)(?![A-Za-z])|[<>]", lambda m: table[m[0]], gold.answer
    )
    return text if text != gold.answer else None


@keeps("Unicode symbols")
def _(rng: Rng, gold: Gold) -> str | None:
    if re.search(r"\\(?:text|mbox|begin)|\$", gold.answer):
        return None
    found = [(p, new) for p, new in _SYMBOLS if re.search(rf"(?:{p})(?![A-Za-z])", gold.answer)]
    found += [
        (p, new) for p, new in _SYMBOLS if p.startswith(r"(?<!") and re.search(p, gold.answer)
    ]
    if not found:
        return None
    pattern, new = rng.choice(found)
    if new == "−":
        return gold.answer.replace("-", "−")
    return replaced(pattern, new, gold.answer)


@keeps("Unicode roots")
def _(rng: Rng, gold: Gold) -> str | None:
    text = re.sub(r"\\sqrt\{([0-9]+|[a-z])\}", r"√\1", gold.text)
    if re.search(
        r"√[0-9a-z]+[0-9a-zA-Z({\\]", text
    ):  # what stands behind would be read as below it
        text = re.sub(r"\\sqrt\{([^{}]+)\}", r"√(\1)", gold.text)
    return text if text != gold.text else None


@keeps("Unicode powers")
def _(rng: Rng, gold: Gold) -> str | None:
    if re.search(r"\\(?:text|mbox|begin|sin|cos|tan|log)", gold.answer):
        return None
    text = re.sub(
        r"(?<=[A-Za-z0-9)])\^(?:\{([0-9]{1,4})\}|([0-9]))",
        lambda m: (m[1] or m[2]).translate(_SUPERSCRIPTS),
        gold.text,
    )
    return text if text != gold.text else None


@keeps("an own box or bold around")
def _(rng: Rng, gold: Gold) -> str | None:
    if not is_plain(gold):
        return None
    return rng.choice(
        [
            rf"\boxed{{{gold.answer}}}",
            rf"\mathbf{{{gold.answer}}}" if gold.numeral else rf"\boxed{{{gold.answer}}}",
        ]
    )

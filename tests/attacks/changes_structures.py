"""Edits of lists, tuples, sets, intervals, matrices, relations, quantities and words."""

from __future__ import annotations

import random
import re
from fractions import Fraction

from attacks.kinds import changes, wrapped
from attacks.shapes import Gold, read_number, spelled

Rng = random.Random
_SAME_KIND = (
    ("cm", "m", "km", "mm", "inches", "feet", "miles", "yards"),
    ("hours", "minutes", "seconds", "days", "weeks", "years"),
    ("kg", "g", "mg", "tons", "pounds", "ounces"),
    ("cents", "dollars", "euros", "yen"),
    ("mL", "L", "gallons", "cups"),
)
_FLIPS = {
    "<": (">", r"\le ", "=", r"\geq "),
    ">": ("<", r"\ge ", "=", r"\leq "),
    r"\le": (r"\ge ", "<", "=", ">"),
    r"\leq": (r"\geq ", "<", "=", ">"),
    r"\ge": (r"\le ", ">", "=", "<"),
    r"\geq": (r"\leq ", ">", "=", "<"),
    r"\geqslant": (r"\leqslant ", ">", "=", "<"),
    r"\leqslant": (r"\geqslant ", "<", "=", ">"),
}
_SIGN = re.compile(r"\\(?:leqslant|geqslant|leq?|geq?)(?![A-Za-z])|[<>]")


def numbers(parts: tuple[str, ...]) -> list[Fraction] | None:
    """The members when all are plain numbers."""
    values = [read_number(part) for part in parts]
    return None if None in values else [value for value in values if value is not None]


def changed_number(rng: Rng, text: str) -> str | None:
    """Another number for a plain one."""
    value = read_number(text)
    return None if value is None else spelled(value + rng.choice([-2, -1, 1, 2, 3]))


@changes("a member of a list left out")
def _(rng: Rng, gold: Gold) -> str | None:
    parts = list(gold.parts)
    if len(parts) < 2:
        return None
    parts.pop(rng.randrange(len(parts)))
    return ", ".join(parts)


@changes("a member added to a list")
def _(rng: Rng, gold: Gold) -> str | None:
    values = numbers(gold.parts)
    if not values:
        return None
    extra = next(v for v in iter(lambda: Fraction(rng.randint(-40, 90)), None) if v not in values)
    parts = list(gold.parts)
    parts.insert(rng.randint(0, len(parts)), spelled(extra))
    joint = rng.choice([", ", ",", r"\text{ or }", ";"])
    return joint.join(parts)


@changes("a member of a list changed")
def _(rng: Rng, gold: Gold) -> str | None:
    values, parts = numbers(gold.parts), list(gold.parts)
    if not values:
        return None
    place = rng.randrange(len(parts))
    value = values[place] + rng.choice([-2, -1, 1, 2, Fraction(1, 1000)])
    if value in values:
        return None
    parts[place] = spelled(value)
    return ",".join(parts)


@changes("a comma left out of a list")
def _(rng: Rng, gold: Gold) -> str | None:
    _, members, _ = gold.bracketed
    parts = gold.parts or members
    if len(parts) < 2 or not all(re.fullmatch(r"[0-9]+", part) for part in parts):
        return None
    place = rng.randrange(1, len(parts))
    joined = ",".join(parts[:place]) + "".join([parts[place], *[f",{p}" for p in parts[place + 1 :]]])
    return joined if not members else gold.bracketed[0] + joined + gold.bracketed[2]


@changes("a tuple in another order")
def _(rng: Rng, gold: Gold) -> str | None:
    left, members, right = gold.bracketed
    if left + right != "()" or gold.is_interval or len(members) < 2 or len(set(members)) < 2:
        return None
    if not gold.mentions("order", "point", "coordinate", "vector", "vertex", "(x,", "(r,", "triple $"):
        return None
    turned = list(members)
    rng.shuffle(turned)
    values, others = numbers(members), numbers(tuple(turned))
    if tuple(turned) == members or (values is not None and values == others):
        return None
    return f"({','.join(turned)})"


@changes("a member of a tuple or set changed")
def _(rng: Rng, gold: Gold) -> str | None:
    left, members, right = gold.bracketed
    if not members:
        return None
    place = rng.randrange(len(members))
    text = changed_number(rng, members[place])
    if text is None:
        text = rf"{members[place]}+{rng.choice(['1', '0.001', '10^{-7}'])}"
        if not re.fullmatch(r"[^,=]*[0-9}]", members[place]) or "circ" in members[place]:
            return None
    values = numbers(members) or []
    if left == r"\{" and read_number(text) in values:
        return None
    return left + ",".join([*members[:place], text, *members[place + 1 :]]) + right


@changes("a member of a tuple or set left out or added")
def _(rng: Rng, gold: Gold) -> str | None:
    left, members, right = gold.bracketed
    values = numbers(members)
    if not values or gold.is_interval:
        return None
    if rng.random() < 0.5 and len(members) > 2:
        place = rng.randrange(len(members))
        return left + ",".join(members[:place] + members[place + 1 :]) + right
    extra = next(v for v in iter(lambda: Fraction(rng.randint(-40, 90)), None) if v not in values)
    return left + ",".join([*members, spelled(extra)]) + right


@changes("text hidden in a tuple or list")
def _(rng: Rng, gold: Gold) -> str | None:
    left, members, right = gold.bracketed
    parts = gold.parts or members
    if not numbers(parts):
        return None
    place = rng.randrange(len(parts))
    tail = rng.choice(["0", "million", "/2", ",000", " or 7", " dozen", "i", ".5", " squared", "%7"])
    if read_number(parts[place]) in (0, 1) or re.search(r"frac|/", parts[place]):
        return None
    text = parts[place] + wrapped(rng, tail, "text", "mathrm", "mbox", "textbf")
    return left + ",".join([*parts[:place], text, *parts[place + 1 :]]) + right


@changes("an interval, an end opened, closed or moved")
def _(rng: Rng, gold: Gold) -> str | None:
    left, members, right = gold.bracketed
    if not gold.is_interval:
        return None
    ends = list(members)
    choices = []
    if "infty" not in ends[0]:
        choices.append((("[" if left == "(" else "("), ends, right))
        choices.append((left, [f"{ends[0]}+1", ends[1]], right))
        choices.append(("(", [r"-\infty", ends[1]], right))
    if "infty" not in ends[1]:
        choices.append((left, ends, "]" if right == ")" else ")"))
        choices.append((left, [ends[0], f"{ends[1]}-1"], right))
        choices.append((left, [ends[0], r"\infty"], ")"))
    choices.append((left, ends[::-1], right))
    left, ends, right = rng.choice(choices)
    text = left + ",".join(ends) + right
    return None if r"(-\infty,\infty)" in text and gold.text == text else text


@changes("a union changed")
def _(rng: Rng, gold: Gold) -> str | None:
    parts = gold.text.split(r"\cup")
    if len(parts) < 2:
        return None
    choices = [r"\cap ".join(parts), r"\cup ".join(parts[:-1]), r"\cup ".join(parts[1:])]
    choices += [r"\setminus ".join(parts), gold.text.translate(str.maketrans("()", "[]"))]
    choices += [gold.text + rf"\cup({rng.randint(200, 300)},\infty)"]
    text = rng.choice(choices[:4] + choices[5:] if "[" in gold.text or "]" in gold.text else choices)
    return None if text == gold.text or r"[-\infty" in text or r"\infty]" in text else text


@changes("a matrix changed")
def _(rng: Rng, gold: Gold) -> str | None:
    rows = [list(row) for row in gold.rows]
    if not rows or len({len(row) for row in rows}) != 1:
        return None
    before = [list(row) for row in rows]
    how = rng.choice(["entry", "transpose", "rows", "drop", "minus", "text"])
    row, column = rng.randrange(len(rows)), rng.randrange(len(rows[0]))
    if how == "entry":
        rows[row][column] = changed_number(rng, rows[row][column]) or "101"
    elif how == "transpose" and len(rows[0]) > 1:
        rows = [list(cells) for cells in zip(*rows, strict=True)]
    elif how == "rows":
        rng.shuffle(rows)
    elif how == "drop" and len(rows) > 1:
        rows.pop(row)
    elif how == "minus" and read_number(rows[row][column]):
        rows[row][column] = spelled(-(read_number(rows[row][column]) or 1))
    elif how == "text" and read_number(rows[row][column]):
        rows[row][column] += wrapped(rng, rng.choice(["0", " million", "/7", " or 9"]), "text")
    if rows == before:
        return None
    body = r" \\ ".join(" & ".join(cells) for cells in rows)
    return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"


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
    return rng.choice([rf"{gold.name}\neq {right}", f"{gold.name}<{right}", f"{gold.name}={right}+1",
                       f"{gold.name}>{right}", f"{gold.name}=-({right})",
                       rf"{gold.name}={right}\text{{ million}}",
                       rf"{gold.name}={right}\text{{ or }}{gold.name}=77",
                       rf"{gold.name}={right}\pm 1"])  # fmt: skip


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
    signs = list(_SIGN.finditer(gold.text))
    if not signs or "," in gold.text or "text" in gold.text:
        return None
    sign = rng.choice(signs)
    flipped = rng.choice(_FLIPS[sign[0]])
    texts = [gold.text[: sign.start()] + flipped + gold.text[sign.end() :]]
    if len(signs) == 1:
        texts += [gold.text + rng.choice(["+1", "-1", "0", r"+10^{-9}"]), gold.text[sign.end() :]]
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
    family = next((f for f in _SAME_KIND if unit in f or f"{unit}s" in f), None)
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
    elif unit in _SAME_KIND[0]:
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
    texts += [rf"\frac{{{number}}}{{2}} \text{{ {unit}}}{tail}", rf"-{number} \text{{ {unit}}}{tail}"]
    texts += [rf"{number}\text{{/3}} \text{{ {unit}}}{tail}", rf"{number}\times 2\text{{ {unit}}}{tail}"]
    return rng.choice(texts)


@changes("an angle in another measure")
def _(rng: Rng, gold: Gold) -> str | None:
    match = re.fullmatch(r"([0-9.]+)\^\{?\\circ\}?", gold.text)
    if match is None:
        return None
    n = match[1]
    texts = [rf"{n}\text{{ radians}}", rf"{n}\pi", rf"{n}\text{{ rad}}", rf"{n}^\circ+{rng.randint(1, 9)}^\circ"]
    texts += [rf"-{n}^\circ", rf"{n}0^\circ", rf"{n}^\circ C", rf"\frac{{{n}^\circ}}{{2}}", rf"{n}''"]
    texts += [rf"\sin {n}^\circ", rf"{n}^\circ\text{{ or }}{rng.randint(181, 350)}^\circ"]
    return rng.choice(texts)


@changes("another word")
def _(rng: Rng, gold: Gold) -> str | None:
    word = gold.word
    if len(word) < 2:
        return None
    place = rng.randrange(1, len(word))
    texts = [rf"\text{{not {word}}}", rf"\text{{{word} or Bob}}", rf"\text{{Bob or }}\text{{{word}}}"]
    texts += [rf"\text{{non-{word}}}", rf"\text{{neither {word} nor Bob}}", rf"\text{{{word} and Bob}}"]
    texts += [rf"\text{{{word}}}\neq", rf"\lnot\text{{{word}}}", rf"\text{{{word[::-1]}q}}"]
    texts += [rf"\text{{anything but {word}}}", rf"\text{{{word}}}\text{{ is wrong}}", r"\text{Bob}"]
    texts += [rf"\text{{{word[:place]}qx{word[place:]}}}", rf"\text{{{word}}}+1", rf"\text{{{word}5}}"]
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
    texts += [f"{letter},{other}", f"{letter}{other}", rf"\text{{not {letter}}}", f"({letter})({other})"]
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
    return rng.choice([f"{a}.{b}", rf"{a}.{b[0]}\overline{{{int(b) + 1}}}", rf"{a}.0\overline{{{b}}}",
                       f"{a}.{b}{b}",
                       rf"{int(a) + 1}.\overline{{{b}}}", rf"{a}.\overline{{{b}0}}"])  # fmt: skip


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

"""Edits of lists, tuples, sets, intervals and matrices."""

from __future__ import annotations

import random
import re
from fractions import Fraction

from attacks.kinds import changes, wrapped
from attacks.parts import changed_number, numbers
from attacks.shapes import Gold, read_number, spelled

Rng = random.Random


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
    joined = ",".join(parts[:place]) + "".join(
        [parts[place], *[f",{p}" for p in parts[place + 1 :]]]
    )
    return joined if not members else gold.bracketed[0] + joined + gold.bracketed[2]


@changes("a tuple in another order")
def _(rng: Rng, gold: Gold) -> str | None:
    left, members, right = gold.bracketed
    if left + right != "()" or gold.is_interval or len(members) < 2 or len(set(members)) < 2:
        return None
    if not gold.mentions(
        "order", "point", "coordinate", "vector", "vertex", "(x,", "(r,", "triple $"
    ):
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
    tail = rng.choice(
        ["0", "million", "/2", ",000", " or 7", " dozen", "i", ".5", " squared", "%7"]
    )
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
    if not gold.text.endswith(r"\infty)"):  # else it is in the union already
        choices += [gold.text + rf"\cup({rng.randint(200, 300)},\infty)"]
    if "[" in gold.text or "]" in gold.text:
        choices.pop(4)
    text = rng.choice(choices)
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

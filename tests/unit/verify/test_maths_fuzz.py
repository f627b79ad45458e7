"""Hostile answers: nothing crashes, nothing stays behind, nothing wrong is graded correct.

HINT_FUZZ_CASES sets how many responses are judged, 10000 for a release.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import psutil
import pytest
from processes import descendants, peak_mib

from recipe.verify.pool import VerifierPool
from recipe.verify.schema import Item

NUM_CASES = int(os.environ.get("HINT_FUZZ_CASES", "150"))
SEED = 20_260_101
NUM_HUGE = max(4, NUM_CASES // 500)  # answers of a million characters
CHUNK = 250
TOWER_SHARE = 0.5  # of 18.5: nearly each of them runs into the time limit
MAX_RSS_MIB = 2048
MAX_PROCESSES = 12
# Values that no generator below writes by accident.
GOLDS = (
    r"\frac{104729}{7919}",
    "(15485863, -7919)",
    r"[7919.25, \infty)",
    r"104729\sqrt{7919}",
    r"x^{7919}+104729y",
    r"\{7919, 104729\}",
    r"\begin{pmatrix} 7919 \\ 104729 \end{pmatrix}",
    "7919, 104729, 15485863",
    r"\text{quince}",
    r"7919 \text{ cm}",
    "79.19%",
    "-15485863",
)
TOKENS = (
    r"\frac \sqrt \boxed \text \left( \right) \pm \cup \infty \times \cdot \sum_{k=1}^{n} \pi \, "
    r"\begin{pmatrix} \end{pmatrix} \\ & { } ( ) [ ] \{ \} , ; : = < \le \% ^ _ + - * / ! | ' x y "
    r"n e i 0 1 2 3 10 0.5 3e5 and or \ldots \circ $ \$ \lfloor \rfloor \binom \log \sin \in "
    r"\mathbb{R}"
).split()
ODD = "\u202e\u202d\u200f\u2066\u2069\u200b\u200d\ufeff\u0301\u0336\u20dd\u0000\u00ad"
SEEN_THROUGH = "\u200b\ufeff"  # without width: the verifier reads what is seen
TOWERS = (
    "10^{10^{10}}",
    "9^{9^{9^{9}}}",
    "(10^{9})!",
    "2^{1000000000}-1",
    r"\sum_{k=1}^{10^{12}} k^{k}",
    r"\prod_{k=1}^{1000000} k",
    r"\binom{1000000000}{500000000}",
    r"\int_0^1 x^{x^{x}} dx",
    r"\sqrt[1000000]{2}",
    r"\frac{1}{10^{10^{9}}}",
    r"\lim_{x \to 0} \frac{\sin x^{x}}{x}",
    "99999!!!",
    "x^{x^{x^{x}}}",
    r"\sin(10^{10^{5}})",
)


def noise(rng: random.Random) -> str:
    return bytes(rng.randrange(256) for _ in range(rng.randrange(300))).decode(
        rng.choice(["latin-1", "utf-8"]), errors="replace"
    )


def soup(rng: random.Random) -> str:
    return rng.choice(["", " "]).join(rng.choice(TOKENS) for _ in range(rng.randrange(1, 40)))


def nested(rng: random.Random) -> str:
    opening, closing = rng.choice(
        [("(", ")"), (r"\sqrt{", "}"), (r"\frac{1}{1+", "}"), ("{", "}"), (r"\{", r"\}"), ("-", "")]
        + [("[", "]"), (r"\left(", r"\right)"), ("2^{", "}"), (r"\text{", "}"), ("|", "|")]
    )
    depth = rng.choice([5, 20, 60, 200, 1000, 5000])
    return opening * depth + "2" + closing * (depth - rng.choice([0, 0, 1]))


def tower(rng: random.Random) -> str:
    sign = rng.choice("+-*")
    return rng.choice(TOWERS) if rng.random() < 0.5 else sign.join(rng.sample(TOWERS, 2))


def numeral(rng: random.Random) -> str:
    digits = "".join(rng.choice("0123456789") for _ in range(rng.choice([30, 400, 4301, 20_000])))
    return (
        rng.choice(["", "-", "0.", r"\frac{1}{"]) + digits + rng.choice(["", "", ".", "e99", "}"])
    )


def disguised(rng: random.Random, gold: str) -> tuple[str, bool]:
    """The gold answer with a character that has no place in it, or in other digits.

    Right are full-width digits, and characters that are not seen.
    """
    if rng.random() < 0.2 and any(char.isdigit() for char in gold):
        zero = rng.choice("\u0660\u0966\uff10")
        text = "".join(chr(ord(zero) + int(c)) if c.isdigit() else c for c in gold)
        return text, zero == "\uff10"
    places = [place for place, char in enumerate(gold) if char.isalnum()]
    place = rng.choice(places) + 1
    odd = rng.choice(ODD)
    return gold[:place] + odd + gold[place:], odd in SEEN_THROUGH


def arithmetic(rng: random.Random, depth: int = 3) -> tuple[str, Fraction]:
    """LaTeX and its value."""
    if depth == 0 or rng.random() < 0.2:
        number = rng.randrange(1, 30)
        return str(number), Fraction(number)
    (left, a), (right, b) = arithmetic(rng, depth - 1), arithmetic(rng, depth - 1)
    kind = rng.choice("+-*/" if b else "+-*")
    if kind == "/":
        return rf"\frac{{{left}}}{{{right}}}", a / b
    sign = {"+": "+", "-": "-", "*": r"\cdot"}[kind]
    value = {"+": a + b, "-": a - b, "*": a * b}[kind]
    return rf"({left}) {sign} ({right})", value


def huge(rng: random.Random) -> str:
    unit = rng.choice(
        ["9", "(", r"\frac{1}{", "x+", " ", r"\boxed", r"\boxed{", "{", "1,", r"\\", "é"]
    )
    return unit * (1_000_000 // len(unit))


def case(rng: random.Random, number: int) -> tuple[Item, bool]:
    """An item, and whether it is right."""
    gold = rng.choice(GOLDS)
    box: Callable[[str], str] = r"So \boxed{{{}}}.".format
    if number < NUM_HUGE:
        text = huge(rng)
        return rng.choice([(Item(box(text), gold), False), (Item(text + box(gold), gold), True)])
    kind = rng.randrange(10)
    if kind == 0:
        expression, value = arithmetic(rng)
        shift = rng.choice([0, 0, 1, Fraction(1, 7)])
        return Item(box(expression), str(value + shift)), shift == 0
    if kind == 1:  # a right answer after anything
        return Item(rng.choice([noise, soup])(rng) + " " + box(gold), gold), True
    if kind == 2:  # and an open box after a right answer
        return Item(box(gold) + r"\boxed{" + "{" * rng.randrange(1, 50), gold), False
    if kind == 3:
        text, is_right = disguised(rng, gold)
        return Item(box(text), gold), is_right
    make = rng.choices([noise, soup, nested, numeral, tower], weights=[4, 8, 4, 2, TOWER_SHARE])[0]
    return Item(
        box(make(rng)), rng.choice([gold, "0", "2", r"\sqrt{2}"] if make is soup else [gold])
    ), False


@pytest.mark.slow
def test_hostile_answers_neither_break_the_pool_nor_pass():
    rng = random.Random(SEED)
    cases = [case(rng, number) for number in range(NUM_CASES)]
    reasons: Counter[str] = Counter()
    before = len(descendants())
    mistakes, largest_mib, most = [], 0, 0
    with VerifierPool(num_workers=2, timeout_s=2.0) as pool:
        for start in range(0, NUM_CASES, CHUNK):
            chunk = cases[start : start + CHUNK]
            verdicts = pool.grade_many_blocking([item for item, _ in chunk])
            for (item, is_right), verdict in zip(chunk, verdicts, strict=True):
                reasons[verdict.reason] += 1
                if (verdict.reason == "correct") != is_right and not verdict.is_ungraded:
                    mistakes.append((verdict.reason, item.answer, item.response[:300]))
            alive = descendants()
            most = max(most, len(alive) - before)
            largest_mib = max(largest_mib, *map(peak_mib, alive))
    summary = f"{dict(reasons)}, largest worker {largest_mib} MiB, at most {most} processes"
    sys.stdout.write(f"\n{NUM_CASES} responses: {summary}\n")
    assert mistakes == [], summary
    assert largest_mib <= MAX_RSS_MIB, summary
    assert most <= MAX_PROCESSES, summary
    psutil.wait_procs(descendants(), timeout=60)
    assert len(descendants()) <= before
    assert sum(reasons.values()) == NUM_CASES

"""Wrong answers made from right ones are never graded ``correct``.

HINT_ATTACK_CASES sets how many (a release: 1000000); with HINT_BENCHMARK_DATA the golds of that
folder are edited too. ``pytest -s`` shows a line per kind and what was accepted.
"""

from __future__ import annotations

import itertools
import os
import random
import string
from fractions import Fraction

import pytest
from attacks import shapes
from attacks.arithmetic import Unread, differ, value_at
from attacks.judging import reasons_of, show, table
from attacks.kinds import CHANGING
from attacks.payloads import FAMILIES
from attacks.shapes import Gold, benchmark_golds, committed_golds
from attacks.value_changing import Case, generate

NUM_CASES = int(os.environ.get("HINT_ATTACK_CASES", "5000"))
SEED = 20_261_122
BATCH = 50_000
# Equal at most points, or nearer than floating point tells apart.
SHOWN_OTHERWISE = ("a function that", "a function equal", "a product that", "perturbed") + (
    "something small or large",  # smaller than floating point tells
    "a factor that is 1",
    "a bump between",
    "the question's own",  # equal, and no answer
    "factors pulled out",
    "a root, logarithm",
    "a variable that",
    "a hundred times",
)


@pytest.mark.slow
def test_no_edit_that_changes_the_value_is_graded_correct():
    cases = generate([*committed_golds(), *benchmark_golds()], SEED)
    accepted: list[Case] = []
    num_judged = 0
    while batch := list(itertools.islice(cases, min(BATCH, NUM_CASES - num_judged))):
        reasons = reasons_of(batch)
        show(f"\n{table(batch, reasons)}")
        accepted += [c for c, r in zip(batch, reasons, strict=True) if r == "correct"]
        num_judged += len(batch)
    for case in accepted[:200]:
        show(f"  accepted: {case.kind}: {case.gold!r} <- {case.answer!r}")
    assert num_judged == NUM_CASES
    assert len(accepted) == 0


def test_the_generator_knows_many_kinds_and_has_golds_for_all_but_the_rarest():
    cases = list(itertools.islice(generate(committed_golds(), SEED), 3000))
    assert len(CHANGING) >= 25 and len(FAMILIES) >= 13
    assert {case.kind for case in cases} == set(CHANGING)
    assert len({(case.gold, case.answer) for case in cases}) == len(cases)
    assert cases[:50] == list(itertools.islice(generate(committed_golds(), SEED), 50))


def test_an_edited_number_that_is_a_plain_number_again_has_another_value():
    cases = itertools.islice(generate(committed_golds(), SEED), 4000)
    read = [(Gold(c.gold).number, shapes.read_number(c.answer), c) for c in cases]
    same = [case for gold, value, case in read if gold is not None and gold == value]
    assert same == []


def test_an_edited_formula_that_is_read_differs_at_some_point():
    rng, equal, num_read = random.Random(SEED), [], 0
    for case in itertools.islice(generate(committed_golds(), SEED), 4000):
        gold = Gold(case.gold)
        if not gold.is_expression or case.kind.startswith(SHOWN_OTHERWISE):
            continue
        if any(word in case.answer for word in (",", " or ", "not ")):  # several values, or none
            continue
        points = [{c: rng.uniform(0.2, 3) for c in string.ascii_letters} for _ in range(4)]
        try:
            pairs = [(value_at(gold.text, p), value_at(case.answer, p)) for p in points]
        except Unread:
            continue
        num_read += 1
        if all(abs(a - b) <= 1e-14 * max(abs(a), abs(b)) for a, b in pairs):
            equal.append(case)
    assert equal == [] and num_read > 300


def test_the_small_parser_reads_formulas_and_refuses_what_it_does_not_know():
    assert value_at(r"\frac{1+3}{2}\cdot 5", {}) == 10
    assert value_at(r"2x^2-3!", {"x": 4.0}) == 26  # 2 * 16 - 6
    assert abs(value_at(r"\log_{2} 8+\sqrt[3]{27}", {}) - 6) < 1e-12
    assert differ("x_1", "x_2", random.Random(1)) and not differ("x+y", "y+x", random.Random(1))
    with pytest.raises(Unread):
        value_at(r"5\text{ cm}", {})


def test_plain_numbers_are_read_exactly():
    assert shapes.read_number("58,500") == 58_500
    assert shapes.read_number(r"-\frac{3}{4}") == Fraction(-3, 4)
    assert shapes.read_number("5,15") is None and shapes.read_number("5 or 6") is None

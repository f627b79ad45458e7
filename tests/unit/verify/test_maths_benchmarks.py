"""Over real benchmarks: every gold answer is accepted, and every change of its value rejected.

The rows are read from the folder that the environment variable HINT_BENCHMARK_DATA names; they
are no part of this repository. ``pytest -s`` shows a line per kind and every failure.
"""

from __future__ import annotations

import random

import pytest
from attacks import value_preserving  # noqa: F401 - registers its kinds
from attacks.judging import reasons_of, show, table
from attacks.kinds import CHANGING, PRESERVING
from attacks.shapes import BENCHMARKS, benchmark_golds
from attacks.value_changing import Case

GOLDS = benchmark_golds()
SEED = 20_261_125
LEAST_OWN = dict.fromkeys(BENCHMARKS, 1.0) | {"olympiadbench": 0.995}
LEAST_KEPT = 0.99  # of the same written otherwise

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not GOLDS, reason="HINT_BENCHMARK_DATA names no folder of benchmarks"),
]


def judged(name, edits):
    """Each edit of each gold answer of a benchmark, with its verdict; printed as a table."""
    rng = random.Random(SEED)
    cases = [
        Case(kind, gold.answer, answer, gold.problem)
        for gold in GOLDS
        for kind, edit in edits.items()
        if gold.kind == name and (answer := edit(rng, gold)) not in (None, gold.answer, gold.text)
    ]
    reasons = reasons_of(cases)
    show(f"\n{name}\n{table(cases, reasons)}")
    return list(zip(cases, reasons, strict=True))


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_accepts_its_own_gold_answers(name):
    found = judged(name, {"as it is": lambda _, gold: f"{gold.answer} "})
    assert sum(reason != "correct" for _, reason in found) <= (1 - LEAST_OWN[name]) * len(found)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_accepts_its_gold_answers_written_otherwise(name):
    found = judged(name, PRESERVING)
    refused = [(case, reason) for case, reason in found if reason != "correct"]
    show("\n".join(f"  not accepted: {each}" for each in refused))
    assert len(refused) <= (1 - LEAST_KEPT) * len(found)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_rejects_answers_of_another_value(name):
    found = judged(name, CHANGING)
    assert [case for case, reason in found if reason == "correct"] == []

"""Right answers written otherwise are graded ``correct``, but for a few that are listed.

HINT_ATTACK_CASES sets how many; with HINT_BENCHMARK_DATA the golds of that folder are edited too.
"""

from __future__ import annotations

import itertools
import os

import pytest
from attacks.judging import reasons_of, show, table
from attacks.kinds import PRESERVING
from attacks.shapes import Gold, benchmark_golds, committed_golds, read_number
from attacks.value_preserving import generate

NUM_CASES = int(os.environ.get("HINT_ATTACK_CASES", "5000"))
SEED = 20_261_123
LEAST_CORRECT = 0.99


@pytest.mark.slow
def test_answers_written_otherwise_are_graded_correct():
    golds = [*committed_golds(), *benchmark_golds()]
    cases = list(itertools.islice(generate(golds, SEED), NUM_CASES))
    reasons = reasons_of(cases)
    refused = [(c, r) for c, r in zip(cases, reasons, strict=True) if r != "correct"]
    show(f"\n{table(cases, reasons)}")
    for case, reason in refused[:300]:
        show(f"  {reason}: {case.kind}: {case.gold!r} <- {case.answer!r}")
    assert len(cases) >= min(NUM_CASES, 5000)  # the golds of the repository alone give that many
    assert len(refused) <= (1 - LEAST_CORRECT) * len(cases)


def test_every_kind_has_golds_in_the_repository():
    cases = list(itertools.islice(generate(committed_golds(), SEED), 3000))
    assert {case.kind for case in cases} == set(PRESERVING)


def test_a_number_written_as_a_plain_number_keeps_its_value():
    cases = itertools.islice(generate(committed_golds(), SEED), 3000)
    pairs = [(Gold(c.gold).number, read_number(c.answer), c) for c in cases]
    assert [
        case for gold, value, case in pairs if gold and value is not None and gold != value
    ] == []

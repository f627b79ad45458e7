"""Three floors, on cases kept as data: V a wrong value, U unfinished work, M an honest answer.

``maths_edits``: 22,000 edits of 500 gold answers, drawn once: V and U kinds are wrong, M kinds are
the same answer written otherwise. ``maths_units``: answers to small problems, one class or the
other. ``pytest -s`` shows what missed. With HINT_BENCHMARK_DATA the golds of that folder count too.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from recipe.verify.pool import VerifierPool
from recipe.verify.schema import Item

GOLDEN = Path(__file__).parents[2] / "golden"
FOLDER = os.environ.get("HINT_BENCHMARK_DATA")
BENCHMARKS = ("math500", "gsm8k_test", "olympiadbench", "aime24")


def cases(name):
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def item_of(case):
    response = case.get("response") or rf"The answer is \boxed{{{case['answer']}}}."
    return Item(response, case["gold"], problem=case["problem"])


def judged(found):
    """Class -> cases of that class that were decided the wrong way, and how many there are."""
    with VerifierPool(num_workers=2, timeout_s=10.0) as pool:
        reasons = [
            each.reason for each in pool.grade_many_blocking([item_of(case) for case in found])
        ]
    missed = [
        case
        for case, reason in zip(found, reasons, strict=True)
        if (reason == "correct") != (case["class"] == "M")
    ]
    for case in missed:
        sys.stdout.write(f"{case}\n")
    return Counter(case["class"] for case in missed), Counter(case["class"] for case in found)


@pytest.mark.parametrize(
    "every", [4, pytest.param(1, marks=pytest.mark.slow)], ids=["a quarter", "all"]
)
def test_written_answers_keep_the_three_floors(every):
    missed, total = judged((cases("maths_edits") + cases("maths_units"))[::every])
    assert total["V"] > 20_000 // every and total["M"] > 3_500 // every
    assert missed["V"] == 0
    assert missed["U"] <= 0.01 * total["U"]
    assert missed["M"] <= 0.03 * total["M"]


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER, reason="HINT_BENCHMARK_DATA names no folder of benchmarks")
def test_benchmarks_accept_their_own_gold_answers():
    lines = [
        json.loads(line)
        for name in BENCHMARKS
        for line in (Path(str(FOLDER)) / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    found = [
        {"class": "M", "answer": row["answer"], "gold": row["answer"], "problem": row["problem"]}
        for row in lines
    ]
    missed, total = judged(found)
    assert (missed["M"], total["M"]) == (0, 2_524)

"""The leak guard on solutions by other authors, which state their answer at the end.

The rows are read from the folder that the environment variable HINT_BENCHMARK_DATA names; they
are no part of this repository. ``pytest -s`` shows the table.
"""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest

from recipe.hint.hints.leak import find_leaks, graded_equal
from recipe.problems.schema import Problem
from recipe.verify.maths.grade import grade_maths

FOLDER = os.environ.get("HINT_BENCHMARK_DATA")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(FOLDER is None, reason="HINT_BENCHMARK_DATA names no folder of benchmarks"),
]

# Least share found in whole solutions (boxes opened), largest share in their beginnings. The
# beginnings hold the value by chance or early; nobody labelled them.
LIMITS = {"gsm8k_test": (0.98, 0.07), "math500": (0.94, 0.05)}
BRACED = r"\{((?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*)\}"


async def judge_all(items):
    return [grade_maths(item.response, item.answer) for item in items]


EQUAL = graded_equal(judge_all)


def leaks(row: dict, hint: str) -> bool:
    turns = ({"role": "user", "content": row["problem"]},)
    item = Problem("id", turns, row["problem"], "", row["answer"])
    return any(asyncio.run(find_leaks([hint], item, EQUAL)))


def beginning(name: str, solution: str) -> str:
    """Without the last line, or the first half of what stands before the box."""
    if name == "math500":
        return solution[: solution.find(r"\boxed") // 2]
    return "\n".join(solution.strip().split("\n")[:-1])


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_the_answer_is_found_in_solutions_and_seldom_in_their_beginnings(name):
    lines = (Path(FOLDER or "") / f"{name}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    opened = (re.sub(rf"\\boxed\s*{BRACED}", r"\1", row["solution"]) for row in rows)
    whole = sum(leaks(row, text) for row, text in zip(rows, opened, strict=True))
    early = sum(leaks(row, beginning(name, row["solution"])) for row in rows)
    sys.stdout.write(
        f"\n{name}: {whole} of {len(rows)} whole solutions, {early} of their beginnings\n"
    )
    least, most = LIMITS[name]
    assert whole / len(rows) >= least
    assert early / len(rows) <= most

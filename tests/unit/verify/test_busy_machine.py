"""Load makes grades late, not wrong: under four busy processes the verdicts are those of alone."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from recipe.verify.options import GradeOptions
from recipe.verify.pool import VerifierPool
from recipe.verify.schema import Item

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "maths_forms.json"
# As a right answer that takes so long alone, where the limit is twice that.
SLOW_S, LIMIT_S = 1.5, 3.0
EVERY = 75  # four slow ones, two for each worker
GRADE_MODULE = f"""
import time
from recipe.verify.grading import grade as real, prepare

def grade(item, options):
    if item.response.startswith("slow "):
        while time.process_time() < {SLOW_S}:
            pass
        item = item._replace(response=item.response.removeprefix("slow "))
    return real(item, options)
"""

pytestmark = pytest.mark.slow


def items():
    rows = json.loads(GOLDEN.read_text("utf-8"))[:300]
    return [
        Item(f"slow {row['response']}" if place % EVERY == 0 else row["response"], row["answer"])
        for place, row in enumerate(rows)
    ]


@contextlib.contextmanager
def busy():
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def verdicts(grade_path):
    # Far behind, so that not even a machine with a load of 80 reaches it.
    options = GradeOptions(wall_factor=40.0)
    with VerifierPool(2, LIMIT_S, options=options, grade_path=grade_path) as pool:
        return pool.grade_many_blocking(items())


def test_verdicts_under_four_busy_processes_are_those_of_alone(grade_path):
    alone = verdicts(grade_path)
    with busy():
        assert verdicts(grade_path) == alone
        with VerifierPool(1, 1.0, grade_path=grade_path) as pool:
            [endless] = pool.grade_many_blocking([Item(r"slow \boxed{5}", "5")])
    assert {verdict.reason for verdict in alone[::EVERY]} <= {"correct", "wrong"}
    assert endless.reason == "timeout"

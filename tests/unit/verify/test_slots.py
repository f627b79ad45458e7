"""Slots of the verifier's pool, and the programs that a grade starts."""

from __future__ import annotations

import pytest
from processes import wait_for

from recipe.verify.options import GradeOptions
from recipe.verify.pool.workers import LATE_S, VerifierPool
from recipe.verify.schema import Item

# So that a grade is late by its processor time alone, however busy the machine is.
OPTIONS = GradeOptions(wall_factor=40.0)

GRADE_MODULE = f"""
import itertools, os, subprocess, sys, time
from recipe.verify.schema import Verdict

def grade(item, options):
    if item.response == "hang":
        for _ in itertools.count():
            pass
    if item.response == "late":
        while time.process_time() < {2 * LATE_S}:
            pass
    if item.response == "exit code":
        program = subprocess.run([sys.executable, "-c", "raise SystemExit(3)"])
        return Verdict(0.0, "wrong", str(program.returncode))
    if item.response.startswith("alone "):
        try:
            os.mkdir(item.answer)
        except FileExistsError:
            return Verdict(0.0, "wrong", "another one is running")
        time.sleep(0.2)
        os.rmdir(item.answer)
    return Verdict(1.0, "correct")
"""


def test_a_late_grade_leaves_its_slot_to_the_next_one(grade_path):
    """One slot: what hangs has it for ``LATE_S``, and the second grade after that."""
    with VerifierPool(1, 600.0, options=OPTIONS, grade_path=grade_path) as pool:
        hung = pool.submit([Item("hang", "")])
        wait_for(lambda: pool._workers)
        [verdict] = pool.submit([Item("sound", "")]).result(timeout=60)
        assert verdict.reason == "correct" and not hung.done()


@pytest.mark.parametrize("first", ["late", "sound"])
def test_a_grade_gives_its_slot_back_once(grade_path, tmp_path, first):
    """One slot, so one grade at a time, also after one whose slot was taken from it."""
    with VerifierPool(1, 600.0, options=OPTIONS, grade_path=grade_path) as pool:
        assert pool.grade_many_blocking([Item(first, "")])[0].reason == "correct"
        items = [Item(f"alone {number}", str(tmp_path / "running")) for number in range(3)]
        verdicts = pool.grade_many_blocking(items)
    assert [verdict.reason for verdict in verdicts] == ["correct"] * 3


def test_a_grade_sees_how_the_programs_that_it_starts_have_ended(grade_path):
    """The factory ignores the end of its children; with that a program would seem to give 0."""
    with VerifierPool(1, grade_path=grade_path) as pool:
        [verdict] = pool.grade_many_blocking([Item("exit code", "")])
    assert verdict.extracted == "3"

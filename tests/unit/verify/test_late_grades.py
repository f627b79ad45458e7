"""Spare workers take the place of hung ones, and nothing that hung is left."""

from __future__ import annotations

import time

import psutil
import pytest

from recipe.verify.options import GradeOptions
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.schema import Item

pytestmark = pytest.mark.slow

GRADE_MODULE = """
import os, time
from recipe.verify.schema import Verdict

def grade(item, options):
    if item.response == "hang":
        time.sleep(3600)
    return Verdict(1.0, "correct", str(os.getpid()))
"""


def processes():
    return psutil.Process().children(recursive=True)


def test_the_others_are_graded_while_more_grades_hang_than_there_are_workers(grade_path):
    with VerifierPool(2, 600.0, grade_path=grade_path) as pool:
        hung = pool.submit([Item("hang", "")] * 5)
        pool.grade_many_blocking([Item("sound", "")] * 100)
        assert not hung.done()
        assert len(processes()) >= 6  # 1 worker factory + 5 that hang
    assert processes() == []


def test_grades_that_hung_are_counted_and_their_processes_are_gone(grade_path):
    with VerifierPool(2, 4.0, options=GradeOptions(wall_factor=1.0), grade_path=grade_path) as pool:
        hung = pool.submit([Item("hang", "")] * 5)
        pool.grade_many_blocking([Item("sound", "")] * 100)
        during = processes()
        assert [verdict.reason for verdict in hung.result()] == ["timeout"] * 5
        assert pool.counters() == {"graded": 105, "quick": 0, "timeouts": 5, "errors": 0}
        deadline = time.monotonic() + 60
        while sum(each.is_running() for each in during) > 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        # 1 factory + 5 that hung + perhaps one that graded; all but the factory are gone.
        assert sum(each.is_running() for each in during) == 1
    assert processes() == []


def test_a_killed_worker_factory_is_replaced(grade_path):
    with VerifierPool(1, grade_path=grade_path) as pool:
        pool.grade_many_blocking([Item("a", "")])
        [worker_factory] = psutil.Process().children()
        worker_factory.kill()
        verdicts = pool.grade_many_blocking([Item("a", ""), Item("a", "")])
        assert [verdict.reason for verdict in verdicts] == ["correct", "correct"]
        assert psutil.Process().children() != [worker_factory]

"""The time by which a question counts, and who may name it in an answer."""

from __future__ import annotations

import itertools

import pytest

from recipe.verify.maths.grade import grade_maths
from recipe.verify.maths.rates import asked_rate, asks_for_wage

TIMES = "hour day week month year".split()
BY_THE_TIME = (
    "How many pages @ does Ann read?",
    "How many pages does Ann read @?",
    "If she starts at 8, how many pages does Ann read @?",
    "How many more pages does Ann read @ than Ben?",
    "How many pages does Ann read @ when she reads 3 books?",
)
TOTALS = (  # each has the time, but wants a sum, or something else
    "How many pages does Ann read in a {}?",
    "How many pages does Ann read over one {}?",
    "How many pages does Ann read in 3 {}s?",
    "How many pages does Ann read per {} in 3 weeks?",
    "How many pages does Ann read in two weeks, 5 pages per {}?",
    "How many pages does Ann read if she reads 5 pages per {}?",
    "How many pages does Ann, who reads 5 pages a {}, have?",
    "How many pages does Ann read when she reads twice a {}?",
    "She reads 5 pages every {}. How many pages does she read?",
    "How many pages has Ann read half a {} later?",
    "How many pages does a {} have?",
    "Does she read 5 pages per {}?",
)


@pytest.mark.parametrize("question", BY_THE_TIME)
def test_a_question_counts_by_the_time_behind_what_it_asks_for(question):
    for time, over in itertools.product(TIMES, ("per", "each", "every")):
        problem = question.replace("@", f"{over} {time}")
        assert asked_rate(problem) == time, problem
        assert accepts(f"pages per {time}", problem) and accepts(f"pages every {time}", problem)
        for other in {*TIMES, "minute", "second"} - {time}:
            assert not accepts(f"pages per {other}", problem), problem


@pytest.mark.parametrize("question", TOTALS)
def test_a_sum_over_a_time_is_no_rate(question):
    for time in TIMES:
        problem = question.format(time)
        assert asked_rate(problem) == "", problem
        for over in ("per", "a", "each", "every"):
            assert not accepts(f"pages {over} {time}", problem), problem


def test_money_over_a_time_needs_a_question_for_a_rate():
    told = "She earns $20 an hour."
    for asked in (
        "How much does she get per hour?",
        "What is her wage?",
        "What is her hourly pay?",
    ):
        assert accepts("dollars per hour", f"{told} {asked}"), asked
    for asked in (
        "How much does she get?",
        "How much does she get at the same rate in 3 hours?",
        "What is the wage of 3 women?",
        "Find the sum.",
    ):
        assert not accepts("dollars per hour", f"{told} {asked}"), asked
        assert not accepts("dollars an hour", f"{told} {asked}"), asked
        assert grade_maths(r"\boxed{\$15 \text{ per hour}}", "15", problem=told + asked).score == 0
    assert asks_for_wage("What is her wage?") and not asks_for_wage("What is the price?")


def accepts(unit, problem):
    return grade_maths(rf"\boxed{{15\text{{ {unit}}}}}", "15", problem=problem).score == 1

"""Every number of a table, counted by hand."""

import pytest
from response_rows import responses

from recipe.study.evaluation.estimators import Estimate, clustered_mean
from recipe.study.evaluation.responses import complete_groups
from recipe.study.evaluation.results import (
    PAPER_GROUPS,
    assign_members,
    budgets,
    macro_averages,
    summarise,
)


def summary(num_responses=4, **verdicts):
    lines = responses(**verdicts)
    return summarise(complete_groups(lines, num_responses, benchmark="toy"), num_responses)


def avg_of(numbers):
    return Estimate(numbers["avg"], numbers["avg_low"], numbers["avg_high"])


def test_every_number_of_a_benchmark():
    numbers = summary(a="++-n", b="--tc", c="++++", d="emnc")
    assert numbers["problems"] == 4
    # Means 2/4, 0, 1, 0: 0.375
    assert avg_of(numbers) == clustered_mean([0.5, 0.0, 1.0, 0.0], 4)
    assert numbers["avg"] == pytest.approx(0.375)
    # pass@2 of 2 in 4: 1 - (2/4)(1/3) = 5/6; so (5/6 + 0 + 1 + 0) / 4; pass@4: 2 of 4 problems
    assert [numbers[f"pass@{k}"] for k in (1, 2, 4)] == pytest.approx([0.375, 11 / 24, 0.5])
    # a: "1" twice against "2" and nothing; b: wrong and nothing tie, both wrong; c right; d nothing
    assert numbers["maj"] == 0.5
    # 16 samples: cut b3, d3; no answer a3, b3, d1, d2, d3; undecided b2, d0
    shares = [numbers[name] for name in ("truncated", "no_answer", "undecided")]
    assert shares == [2 / 16, 5 / 16, 2 / 16]
    assert (numbers["timeouts"], numbers["errors"]) == (1, 1)
    assert numbers["response_tokens"] == 10.0
    assert sum(numbers["reasons"].values()) == numbers["samples"] == 16


def test_an_ungraded_response_counts_as_nothing_right_and_is_shown():
    assert summary(1, a="+", b="t")["avg"] == summary(1, a="+", b="-")["avg"] == 0.5
    assert summary(1, a="+", b="t")["undecided"] == 0.5


def test_a_program_that_is_too_slow_is_an_answer_and_a_wrong_one():
    slow, wrong = summary(1, a="+", b="s"), summary(1, a="+", b="-")
    names = ("avg", "no_answer", "undecided", "timeouts", "errors")
    assert [slow[name] for name in names] == [wrong[name] for name in names]


@pytest.mark.parametrize(("letter", "value"), [("+", 1.0), ("-", 0.0)])
def test_all_correct_and_none_correct(letter, value):
    numbers = summary(a=4 * letter, b=4 * letter)
    assert (numbers["avg"], numbers["maj"]) == (value, value)
    assert {numbers[f"pass@{k}"] for k in (1, 2, 4)} == {value}
    assert 0 <= numbers["avg_low"] < numbers["avg_high"] <= 1


def test_one_problem_with_one_response():
    numbers = summary(1, a="+")
    assert avg_of(numbers) == Estimate(1.0, 0.0, 1.0)
    assert [name for name in numbers if name.startswith("pass@")] == ["pass@1"]
    assert (numbers["pass@1"], numbers["maj"]) == (1.0, 1.0)


def test_an_empty_benchmark_has_no_summary():
    with pytest.raises(ValueError, match="at least one problem"):
        summarise({}, 4)


@pytest.mark.parametrize(
    ("num_responses", "expected"),
    [(1, [1]), (2, [1, 2]), (6, [1, 2, 4, 6]), (16, [1, 2, 4, 8, 16])],
)
def test_the_budgets_are_powers_of_two_and_all_samples(num_responses, expected):
    assert budgets(num_responses) == expected


def test_the_macro_average_is_over_benchmarks_and_not_over_problems():
    parts = {"gpqa_diamond": summary(2, a="++"), "MMLU-Pro": summary(2, a="--", b="+-", c="--")}
    macro = macro_averages(parts)["out_of_distribution"]
    # 1 and 1/6: their mean, though 3 of 4 problems are in one of them
    assert macro["avg"] == pytest.approx((1 + 1 / 6) / 2)
    assert macro["problems"] == 4
    assert macro["members"] == {"gpqa_diamond": "gpqa_diamond", "mmlu_pro": "MMLU-Pro"}


def test_a_macro_average_names_the_benchmarks_that_it_lacks():
    macro = macro_averages({"aime24": summary(a="++++"), "math500": summary(a="++++")})
    assert macro["in_distribution"]["missing"] == ["aime25", "amc23", "minerva", "olympiadbench"]
    assert "avg" not in macro["in_distribution"]
    assert macro["out_of_distribution"]["missing"] == list(PAPER_GROUPS["out_of_distribution"])


def test_names_are_compared_by_letters_and_digits():
    found = assign_members(["HuggingFaceH4/MATH-500", "AIME24", "mmlu_pro_test_sample"])
    assert found["in_distribution"]["math500"] == "HuggingFaceH4/MATH-500"
    assert found["in_distribution"]["aime24"] == "AIME24"
    assert found["out_of_distribution"]["mmlu_pro"] == ""  # a part of it is not it


def test_two_benchmarks_for_one_member_stand_for_none():
    assert assign_members(["math500", "MATH-500"])["in_distribution"]["math500"] == ""

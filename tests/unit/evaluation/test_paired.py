"""Two runs are compared on the same problems, or not at all."""

import pytest
from response_rows import responses

from recipe.hint.errors import DataError
from recipe.hint.evaluation.comparison import compare_groups, compare_macro
from recipe.hint.evaluation.estimators import mean_of, paired_mean
from recipe.hint.evaluation.responses import complete_groups


def groups(num_responses, **verdicts):
    return complete_groups(responses(**verdicts), num_responses, benchmark="toy")


def test_the_difference_is_second_minus_first_problem_by_problem():
    first = groups(2, a="--", b="+-", c="++", d="++")
    second = groups(2, a="+-", b="+-", c="+-", d="--")
    result = compare_groups(first, second, benchmark="toy")
    # Means 0, .5, 1, 1 and .5, .5, .5, 0: differences .5, 0, -.5, -1
    assert result.difference == paired_mean([0.5, 0.0, -0.5, -1.0])
    assert (result.first, result.second) == (0.625, 0.375)
    # Solved is >= 1/2: a is gained, d is lost, b and c stay solved.
    assert (result.num_gained, result.num_lost) == (1, 1)


def test_runs_with_different_numbers_of_responses_are_paired_by_their_means():
    result = compare_groups(groups(1, a="-"), groups(4, a="+++-"), benchmark="toy")
    assert result.difference.value == 0.75
    assert result.num_gained == 1


def test_a_run_against_itself_changes_nothing():
    run = groups(2, a="+-", b="++")
    result = compare_groups(run, run, benchmark="toy")
    assert result.difference.value == 0.0
    assert result.difference.low < 0 < result.difference.high
    assert (result.num_gained, result.num_lost) == (0, 0)


def test_different_problems_are_refused_unless_told():
    first, second = groups(1, a="+", b="+", c="-"), groups(1, b="-", c="-", d="+")
    with pytest.raises(DataError, match=r"toy: 2 problems are in one run only, such as 'a', 'd'"):
        compare_groups(first, second, benchmark="toy")
    result = compare_groups(first, second, benchmark="toy", should_intersect=True)
    assert (result.num_problems, result.num_left_out) == (2, 2)
    assert result.difference.value == -0.5


def test_runs_without_a_common_problem_cannot_be_paired():
    with pytest.raises(DataError, match="toy: the runs have no problem in common"):
        compare_groups(groups(1, a="+"), groups(1, b="+"), benchmark="toy", should_intersect=True)


def test_a_group_is_compared_when_all_its_members_are():
    up = compare_groups(groups(1, a="-", b="-"), groups(1, a="+", b="-"), benchmark="x")
    same = compare_groups(groups(1, a="-"), groups(1, a="-"), benchmark="y")
    assert compare_macro({"gpqa_diamond": up}) == {}
    result = compare_macro({"gpqa_diamond": up, "mmlu_pro": same})["out_of_distribution"]
    assert result.difference == mean_of([up.difference, same.difference])
    assert (result.difference.value, result.num_problems, result.num_gained) == (0.25, 3, 1)

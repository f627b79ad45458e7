import math

import pytest
from response_rows import turn_facts

from recipe.study.evaluation.estimators import t_quantile, wilson_interval
from recipe.study.evaluation.turns import TURN_FACTS, turn_metrics


def facts(before, after, unchanged=0.0):
    return turn_facts(before, after, unchanged=unchanged, overlap=0.5)


def test_the_change_is_the_mean_over_problems_of_what_their_conversations_change():
    # p: 0 -> 1 and 1 -> 1, so +1/2. q: 1 -> 0, so -1. Their mean is -1/4.
    found = turn_metrics({"p": [facts(0, 1), facts(1, 1, unchanged=1.0)], "q": [facts(1, 0)]})
    assert (found["acc_t1"], found["acc_t2"], found["delta"]) == (0.75, 0.5, -0.25)
    assert (found["wrong_to_right"], found["right_to_wrong"]) == (0.25, 0.5)
    assert found["wrong_to_right"] - found["right_to_wrong"] == found["delta"]
    assert (found["unchanged"], found["overlap"], found["conversations"]) == (0.25, 0.5, 3)


def test_the_interval_of_the_change_is_that_of_paired_differences():
    # Changes 1, 0, 0, 1 of four problems: mean 1/2, deviation 1/sqrt(3), error 1/(2 sqrt(3));
    # Student's t on 3 degrees is 3.1824.
    groups = {str(k): [facts(0, change)] for k, change in enumerate((1, 0, 0, 1))}
    found = turn_metrics(groups)
    half = 3.18245 / (2 * 3**0.5)
    assert found["delta_low"] == pytest.approx(max(-1, 0.5 - half), abs=1e-4)
    assert found["delta_high"] == 1.0  # 0.5 + 0.92 is above what can be
    assert found["acc_t1_low"] == 0.0


def test_there_are_no_numbers_without_conversations():
    assert turn_metrics({}) == turn_metrics({"p": []}) == {}


def test_conversations_that_cannot_be_compared_are_left_out():
    unknown = dict.fromkeys(TURN_FACTS, math.nan)
    alone = turn_metrics({"p": [facts(0, 1)], "q": [facts(1, 1)]})
    found = turn_metrics({"p": [facts(0, 1), unknown], "q": [facts(1, 1)], "r": [unknown]})
    assert found == alone
    assert found["conversations"] == 2
    assert turn_metrics({"p": [unknown]}) == {}


def test_a_share_is_worth_as_many_draws_as_the_problem_with_most_conversations_allows():
    """Means 1/2 of 2 and 2/5 of 5 conversations: 0.45, variance 0.005 / 2.

    0.45 x 0.55 / 0.0025 = 99 draws are more than 2 problems x 5.
    """
    groups = {
        "p": [facts(0, each) for each in (1, 0)],
        "q": [facts(0, each) for each in (1, 1, 0, 0, 0)],
    }
    found = turn_metrics(groups)
    expected = wilson_interval(0.45, 10, t_quantile(1))
    assert (found["acc_t2_low"], found["acc_t2_high"]) == pytest.approx(expected)

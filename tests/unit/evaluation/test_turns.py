import pytest
from response_rows import turn_facts

from recipe.hint.evaluation.turns import turn_metrics


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

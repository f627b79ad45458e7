"""What a reward is compared with, by hand."""

import numpy as np
import pytest
from credit_rows import row

from recipe.hint.credit.baselines import (
    grpo_advantages,
    leave_one_out,
    minus_baseline,
    state_values,
)
from recipe.hint.methods.dialogue import progress_reward


def test_a_row_is_compared_with_the_mean_of_the_others_of_its_group():
    # (0 + 1) / 2, (3 + 1) / 2, (3 + 0) / 2.
    assert leave_one_out([row(3.0), row(0.0), row(1.0)]).tolist() == [0.5, 2.0, 1.5]


def test_groups_are_those_of_one_prompt_rollout_whatever_the_order_of_the_rows():
    rows = [row(1.0, uid="u"), row(5.0, uid="v"), row(0.0, uid="u"), row(7.0, uid="v")]
    rows += [row(2.0, uid="u", group="h"), row(4.0, uid="u", group="h")]
    baseline = leave_one_out(rows)
    assert baseline.tolist() == [0.0, 7.0, 1.0, 5.0, 4.0, 2.0]
    order = [4, 1, 3, 0, 5, 2]
    assert leave_one_out([rows[each] for each in order]).tolist() == baseline[order].tolist()


def test_a_row_alone_in_its_group_keeps_its_reward():
    assert minus_baseline([row(3.0), row(2.0, group="h")]).tolist() == [3.0, 2.0]


def test_equal_rewards_teach_nothing():
    assert minus_baseline([row(0.7)] * 8).tolist() == pytest.approx([0.0] * 8, abs=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_leave_one_out_is_what_the_loop_over_the_others_gives(seed):
    drawn = np.random.default_rng(seed)
    rows = [
        row(drawn.normal(), uid=f"u{drawn.integers(3)}", group=f"g{drawn.integers(3)}")
        for _ in range(40)
    ]
    for index, found in enumerate(leave_one_out(rows)):
        one = rows[index]
        others = [
            each.reward
            for place, each in enumerate(rows)
            if place != index and (each.prompt_uid, each.group) == (one.prompt_uid, one.group)
        ]
        assert found == pytest.approx(np.mean(others) if others else 0.0, abs=1e-12)


def test_without_a_baseline_the_reward_stays_whole():
    assert minus_baseline([row(3.0), row(1.0)], "none").tolist() == [3.0, 1.0]


def test_the_critics_baseline_is_the_value_of_the_state_before_the_turn():
    rows = [row(1.0, value=0.25), row(0.0, value=0.75)]
    assert minus_baseline(rows, "value").tolist() == [0.75, -0.75]


def test_a_row_without_a_value_is_an_error_that_says_what_to_set():
    with pytest.raises(ValueError, match=r"1 of 2 rows have no value; .*set critic.enable=true"):
        state_values([row(value=1.0), row()])


def test_the_advantage_is_divided_by_the_spread_of_the_group_and_by_one_where_there_is_none():
    # 3 and 1: mean 2, squares 1 + 1, over n - 1 = 1: sqrt(2). Two equal ones: 0. One alone: itself.
    rows = [row(3.0), row(1.0), row(2.0, group="h"), row(2.0, group="h"), row(9.0, group="i")]
    found = grpo_advantages(rows).tolist()
    assert found == pytest.approx([0.5**0.5, -(0.5**0.5), 0.0, 0.0, 9.0], rel=2e-6)


def test_a_batch_without_rows_has_no_baselines():
    assert leave_one_out([]).shape == grpo_advantages([]).shape == (0,)


@pytest.mark.parametrize(
    ("before", "after", "expected"), [(0, 0, 0.0), (1, 1, 1.0), (0, 1, 11.0), (1, 0, -10.0)]
)
def test_a_revision_earns_its_accuracy_and_alpha_times_what_it_changed(before, after, expected):
    # alpha = 10: 0, 1, 1 + alpha, -alpha.
    assert progress_reward(before, after, 10.0) == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_value_that_is_not_finite_is_an_error(value):
    rows = [row(1.0, value=0.5), row(0.0, value=value)]
    with pytest.raises(
        ValueError, match=r"value of 1 of 2 rows is not finite; .* critic\.optim\.lr"
    ):
        minus_baseline(rows, "value")

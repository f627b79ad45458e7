"""Formulas of credit, worked out by hand on a few numbers."""

import numpy as np
import pytest
from credit_rows import row

from recipe.hint.credit.archer import (
    LAST,
    ReplayBuffer,
    Transition,
    expectile_weights,
    next_rows,
    q_targets,
    returns_to_go,
    utterance_advantages,
)
from recipe.hint.credit.base import DROPPED, Credit, TokenStats, credit_metrics
from recipe.hint.credit.baselines import grpo_advantages, leave_one_out, minus_baseline
from recipe.hint.methods.archer import Archer, ArcherSettings
from recipe.hint.methods.dialogue import (
    GUIDE_TURN,
    PARENT_TURN,
    GuideSettings,
    SolverSettings,
    progress_reward,
)
from recipe.hint.methods.mlmt import Mlmt, MlmtSettings
from recipe.hint.methods.score import Score
from recipe.hint.methods.score_guided import ScoreGuided
from recipe.run.errors import ConfigError

# -- baselines ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [("leave_one_out", [2.5, -2.0, -0.5]), ("none", [3.0, 0.0, 1.0]), ("value", [2.75, -1, 0.5])],
)
def test_a_reward_is_compared_with_its_baseline(baseline, expected):
    # The others' means: (0 + 1) / 2, (3 + 1) / 2, (3 + 0) / 2.
    rows = [row(3.0, value=0.25), row(0.0, value=1.0), row(1.0, value=0.5)]
    assert minus_baseline(rows, baseline).tolist() == expected


def test_groups_are_those_of_one_prompt_rollout_whatever_the_order_of_the_rows():
    rows = [row(1.0, uid="u"), row(5.0, uid="v"), row(0.0, uid="u"), row(7.0, uid="v")]
    rows += [row(2.0, uid="u", group="h"), row(4.0, uid="u", group="h"), row(9.0, group="alone")]
    baseline = leave_one_out(rows)
    assert baseline.tolist() == [0.0, 7.0, 1.0, 5.0, 4.0, 2.0, 0.0]
    order = [4, 1, 3, 0, 5, 6, 2]
    assert leave_one_out([rows[each] for each in order]).tolist() == baseline[order].tolist()
    assert leave_one_out([]).shape == grpo_advantages([]).shape == (0,)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_a_row_without_a_finite_value_is_an_error(value):
    rows = [row(1.0, value=0.5), row(0.0, value=value)]
    with pytest.raises(ValueError, match=r"1 of 2 rows have no finite value"):
        minus_baseline(rows, "value")


def test_the_advantage_is_divided_by_the_spread_of_the_group_and_by_one_where_there_is_none():
    # 3 and 1: mean 2, squares 1 + 1, over n - 1 = 1: sqrt(2). Two equal ones: 0. One alone: itself.
    rows = [row(3.0), row(1.0), row(2.0, group="h"), row(2.0, group="h"), row(9.0, group="i")]
    found = grpo_advantages(rows).tolist()
    assert found == pytest.approx([0.5**0.5, -(0.5**0.5), 0.0, 0.0, 9.0], rel=2e-6)
    assert grpo_advantages(rows, by_std=False).tolist() == [1.0, -1.0, 0.0, 0.0, 9.0]


@pytest.mark.parametrize(
    ("before", "after", "expected"), [(0, 0, 0.0), (1, 1, 1.0), (0, 1, 11.0), (1, 0, -10.0)]
)
def test_a_revision_earns_its_accuracy_and_alpha_times_what_it_changed(before, after, expected):
    # alpha = 10: 0, 1, 1 + alpha, -alpha.
    assert progress_reward(before, after, 10.0) == expected


# -- from one advantage a row to one a token ------------------------------------------------------


class Given(Credit):
    """Advantages and weights of tokens as they are given."""

    def __init__(self, advantages, weights=((1.0,),)):
        self.given, self.weights = np.array(advantages), np.array(weights)

    def advantages(self, rows):
        return self.given

    def token_weights(self, rows, tokens):
        return self.weights


@pytest.mark.parametrize(
    ("advantage", "weight", "token_weights", "kl_coef", "k1", "mask", "expected"),
    [
        # 2 - 0.1 (1 + 3 - 2), 2 - 0.1 (3 - 2), 2 + 0.1 x 2
        (2.0, 1.0, [1.0], 0.1, [1.0, 3.0, -2.0], [1, 1, 1], [1.8, 1.9, 2.2]),
        (-1.0, 0.5, [1.0], 0.0, [4.0, 4.0, 4.0], [1, 1, 0], [-0.5, -0.5, 0.0]),
        # The KL is not weighted: weight 0 leaves a role held to the reference policy.
        (5.0, 0.0, [1.0], 1.0, [2.0], [1], [-2.0]),
        # 0.5 x 2 - 0.1, 0 x 2 - 0.1, and padding.
        (2.0, 1.0, [0.5, 0.0, 3.0], 1.0, [0.0, 0.1, 0.0], [1, 1, 0], [0.9, -0.1, 0.0]),
        # What stands behind the mask costs nothing.
        (1.0, 1.0, [1.0], 1.0, [0.0, float("nan")], [1, 0], [1.0, 0.0]),
    ],
)
def test_a_token_pays_for_its_own_kl_and_for_what_comes_after_it(
    advantage, weight, token_weights, kl_coef, k1, mask, expected
):
    k1_NT, mask_NT = np.array([k1]), np.array([mask])
    zeros = np.zeros(k1_NT.shape)
    rows = [row(weight=weight, kl_coef=kl_coef)]
    credit = Given([advantage], [token_weights])
    _, found = credit.token_advantages(rows, TokenStats(zeros, zeros, mask_NT, k1_NT))
    np.testing.assert_allclose(found, [expected], atol=1e-15)


def test_dropped_rows_are_no_part_of_the_metrics_and_signs_do_not_cancel():
    rows = [row(1.0, value=0.5), row(0.0, value=0.5), row(0.0, facts={DROPPED: 1.0})]
    advantages, targets = np.array([1.0, -1.0, 9.0]), np.array([1.0, 1.0, 5.0])
    # One target for all: nothing to explain.
    expected = {"rows": 2, "reward": 0.5, "advantage_abs": 1, "kl": 0, "value": 0.5}
    found = credit_metrics(rows, advantages, np.zeros(3), targets)
    assert found == {f"credit/solver_t1/{name}": each for name, each in expected.items()}


# -- turns ----------------------------------------------------------------------------------------


def test_the_turns_of_a_conversation_follow_each_other_in_any_order_of_rows():
    rows = [
        row(uid="u", session=0, turn=1),
        row(uid="v", session=0, turn=0),
        row(uid="u", session=0, turn=0),
        row(uid="u", session=1, turn=0),
        row(uid="v", session=0, turn=2),  # turn 1 did not train
    ]
    assert next_rows(rows).tolist() == [LAST, 4, 0, LAST, LAST]


def test_returns_of_two_turns():
    rows = [row(0.0, turn=0), row(1.0, turn=1), row(0.5, session=1, turn=0)]
    found = returns_to_go(np.array([0.0, 1.0, 0.5]), next_rows(rows), gamma=0.9)
    assert found.tolist() == pytest.approx([0.9, 1.0, 0.5])


def test_a_feedback_earns_the_mean_value_of_the_states_that_it_leads_to():
    guide = row(0.5, role="guide", turn=1, value=0.0, facts={GUIDE_TURN: 0.0})
    after = [row(0.0, turn=2, value=each, facts={PARENT_TURN: 0.0}) for each in (0.2, 0.8)]
    other = row(0.0, turn=2, value=9.0, facts={PARENT_TURN: 1.0})
    mlmt = Mlmt(settings=MlmtSettings(value_bonus=0.1, refinements=2))
    [found, *rest] = mlmt.credit._with_bonus([guide, *after, other])
    assert found.reward == pytest.approx(0.5 + 0.1 * (0.2 + 0.8) / 2)
    assert rest == [*after, other]


def test_limits_of_stages_and_phases_are_included():
    Score(settings=SolverSettings(stage1_steps=10)).check_steps(10)
    Mlmt(settings=MlmtSettings(stage1_steps=2, t_low=2, t_high=1)).check_steps(9)
    with pytest.raises(ConfigError, match="stage1_steps"):
        Score(settings=SolverSettings(stage1_steps=11)).check_steps(10)


def test_the_waiting_role_is_shown_to_the_critic_and_no_reference_serves_nobody():
    phases = {"t_low": 1, "t_high": 1, "value_bonus": 0.5}
    assert Mlmt(settings=MlmtSettings(**phases)).needs.critic_rows
    frozen = GuideSettings(stage1_steps=0, train_solver=False, guide_kl_coef=0.0)
    assert not ScoreGuided(settings=frozen).needs.reference


# -- ArCHer ---------------------------------------------------------------------------------------


def test_the_target_of_q_is_the_reward_and_the_discounted_value_of_the_next_state():
    found = q_targets(
        np.array([0.0, 1.0]),
        next_values_N2=np.array([[0.5, 0.7], [9.0, np.nan]]),
        is_done_N=np.array([False, True]),
        gamma=0.9,
    )
    # Each double follows its own target; what comes after the end is not read.
    assert found.tolist() == [pytest.approx([0.45, 0.63]), [1.0, 1.0]]


def test_the_advantage_takes_the_smaller_of_each_double():
    q, v = np.array([[1.0, 2.0], [0.3, 0.1]]), np.array([[0.5, 0.2], [0.0, 0.4]])
    # min(1, 2) - min(0.5, 0.2), min(0.3, 0.1) - min(0, 0.4).
    assert utterance_advantages(q, v).tolist() == pytest.approx([0.8, 0.1])


def test_the_values_are_measured_against_the_discounted_rewards_that_come():
    # Two conversations: 0 then 1; 1 then 1. V of the first states: 0.5 and 1.
    said = [(0, 0, 0.0, 0.5), (1, 0, 1.0, 1.0), (0, 1, 1.0, 1.0), (1, 1, 1.0, 0.5)]
    rows = [row(reward, session=s, turn=t, value=value) for s, t, reward, value in said]
    found = Archer(settings=ArcherSettings(gamma=0.5)).credit.value_targets(rows)
    # First turns: 0 + 0.5 x 1 and 1 + 0.5 x 1.
    assert found.tolist() == [0.5, 1.5, 1.0, 1.0]
    metrics = credit_metrics(rows, np.zeros(4), np.zeros(4), found)
    # Variance of the targets 1/4; of what V leaves, 0 and 1/2, 1/16.
    assert metrics["credit/solver_t1/explained_variance"] == 0.75


@pytest.mark.parametrize(("expectile", "expected"), [(0.5, 0.25), (0.75, 0.5), (0.9, 0.75)])
def test_the_value_that_minimises_the_weighted_errors_is_the_expectile(expectile, expected):
    # Q is 1 for a quarter of the actions and 0 for the rest. V where e (1-V) / 4 = (1-e) V 3/4:
    # V = e / (e + 3 (1-e)), 0.25, 0.5 and 0.75.
    q = np.array([1.0, 0.0, 0.0, 0.0])
    v = 0.0
    for _ in range(2000):
        weights = expectile_weights(np.stack([q, q], 1), np.full((4, 2), v), expectile)[:, 0]
        v += 0.1 * (weights * (q - v)).mean()
    assert v == pytest.approx(expected, abs=1e-6)


def transition(number, length=3):
    tokens = np.arange(number, number + length, dtype=np.int32)
    return Transition(tokens, tokens[:1], float(number), tokens[: number % 3])


def test_a_draw_is_that_of_its_seed_and_every_transition_as_likely_but_the_oldest_make_room():
    buffer = ReplayBuffer(10)
    buffer.add(map(transition, range(12)))
    drawn = [int(each.reward) for each in buffer.draw(20_000, seed=4)]
    assert drawn == [each.reward for each in buffer.draw(20_000, seed=4)]
    shares = np.bincount(drawn, minlength=12) / 20_000
    # Standard error sqrt(0.1 x 0.9 / 20000) = 0.0021.
    assert shares[:2].tolist() == [0, 0] and np.abs(shares[2:] - 0.1).max() < 5 * 0.0021


@pytest.mark.parametrize("count", [0, 6])
def test_a_buffer_comes_back_from_its_state_as_it_was(tmp_path, count):
    buffer, other = ReplayBuffer(4), ReplayBuffer(4)
    buffer.add(map(transition, range(count)))
    np.savez(tmp_path / "state.npz", **buffer.state_dict())
    with np.load(tmp_path / "state.npz", allow_pickle=False) as state:
        other.load_state_dict(dict(state))
    assert len(other._kept) == min(count, 4)
    for one, two in zip(buffer._kept, other._kept, strict=True):
        assert (one.reward, one.is_done) == (two.reward, two.is_done)
        for name in ("state_T", "action_T", "next_state_T"):
            assert getattr(one, name).tolist() == getattr(two, name).tolist()
            assert getattr(two, name).base is None  # no view of all tokens

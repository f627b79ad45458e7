"""RL-ZVP's advantages by hand, and what is left out."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import ScriptedEngine, run

from recipe.hint.credit.rows import CreditRow
from recipe.hint.credit.tokens import TokenStats
from recipe.hint.methods.rl_zvp import RlZvp, RlZvpSettings
from recipe.run.errors import ConfigError


def rows(*rewards, uid="u"):
    """Rows whose rewards are their accuracies."""
    return [
        CreditRow("p", uid, "", "solver", 0, n, reward, facts={"is_right": float(reward > 0)})
        for n, reward in enumerate(rewards)
    ]


def shaped(method, batch, entropies_NT, mask_NT=None):
    mask_NT = np.ones_like(entropies_NT) if mask_NT is None else mask_NT
    none_NT = np.zeros_like(entropies_NT)
    facts = TokenStats(none_NT, entropies_NT, mask_NT, none_NT)
    return method.advantages(batch)[:, None] * method.token_weights(batch, facts)


def test_wrong_tokens_lose_the_more_the_surer_the_policy_was_of_them():
    found = shaped(RlZvp(), rows(0.0, 0.0), np.array([[0.2, 1.2], [0.5, 0.5]]))
    # -0.1 (1.2 - 0.2), -0.1 (1.2 - 1.2); a response as sure everywhere loses nothing.
    np.testing.assert_allclose(found, [[-0.1, 0.0], [0.0, 0.0]], atol=1e-15)


def test_right_tokens_gain_by_their_entropy():
    found = shaped(RlZvp(settings=RlZvpSettings(0.5)), rows(1.0, 1.0), np.array([[0.2], [1.0]]))
    np.testing.assert_allclose(found, [[0.1], [0.5]])


def test_a_group_with_a_difference_is_grpos_and_others_do_not_change_it():
    batch = [*rows(1.0, 0.0), *rows(0.0, 0.0, uid="v")]
    found = shaped(RlZvp(), batch, np.full((4, 2), 0.7))
    # Mean 1/2, deviation 1/sqrt(2).
    assert found[:2, 0].tolist() == pytest.approx([0.7071, -0.7071], abs=1e-4)
    assert found[2:].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_what_stands_in_padding_is_no_entropy():
    entropies_NT, mask_NT = np.array([[0.2, 9.0]]), np.array([[1.0, 0.0]])
    found = shaped(RlZvp(), rows(0.0), entropies_NT, mask_NT)
    assert found[0, 0] == 0.0


def test_a_group_that_could_not_be_graded_is_not_penalised():
    dropped = run(RlZvp(), {0: [0, "timeout", 0, 0]})
    assert dropped.record.is_dropped
    assert {row.credit.weight for row in dropped.rows} == {0.0}
    assert not run(RlZvp(), {0: [0, 0, 0, 0]}).record.is_dropped
    assert not run(RlZvp(), {0: [1, "timeout", 0, 0]}).record.is_dropped


def test_an_alpha_of_zero_is_grpo():
    with pytest.raises(ConfigError, match=r"hint\.rl_zvp\.alpha=0 must be above 0"):
        RlZvpSettings(0)


class Rewarded(ScriptedEngine):
    """Grades as scripted; every response trains with the reward that its verdict stands for."""

    rewards = {}

    async def grade(self, problem, responses_G):
        verdicts = await super().grade(problem, responses_G)
        return [replace(each, reward=self.rewards[each.score]) for each in verdicts]


@pytest.mark.parametrize(
    ("accuracy", "rewards", "sign"),
    [
        (0, {0.0: 0.1}, -1),  # a user's function that pays for the form
        (1, {1.0: 0.0}, 1),  # the over-long penalty took it all
        (0, {0.0: -0.5}, -1),
        (1, {1.0: 1.5}, 1),
    ],
)
def test_the_sign_is_that_of_the_verdict_whatever_the_reward_is(accuracy, rewards, sign):
    engine = Rewarded({0: [accuracy] * 4})
    engine.rewards = rewards
    credit = [row.credit for row in run(RlZvp(), {}, engine=engine).rows]
    assert RlZvp().advantages(credit).tolist() == pytest.approx([0.1 * sign] * 4)
    none_NT = np.zeros((4, 2))
    tokens = TokenStats(none_NT, np.array([[0.2, 1.0]] * 4), np.ones((4, 2)), none_NT)
    # Right: the entropies; wrong: what they lack to the highest.
    expected = [0.2, 1.0] if sign > 0 else [0.8, 0.0]
    assert RlZvp().token_weights(credit, tokens)[0].tolist() == pytest.approx(expected)


def test_a_group_that_is_neither_all_right_nor_all_wrong_is_grpos_though_its_rewards_are_equal():
    engine = Rewarded({0: [1, 0, 1, 0]})
    engine.rewards = {1.0: 0.5, 0.0: 0.5}
    credit = [row.credit for row in run(RlZvp(), {}, engine=engine).rows]
    assert RlZvp().advantages(credit).tolist() == [0.0] * 4

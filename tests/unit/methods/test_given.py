"""Given responses: what trains of them, and what they leave alone."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import problem, run

from recipe.hint.credit.base import CreditRow, TokenStats
from recipe.hint.methods.ghpo import Ghpo, GhpoSettings
from recipe.hint.methods.luffy import Luffy, LuffySettings
from recipe.hint.methods.scaf import Scaf, ScafSettings
from recipe.hint.methods.sft import Sft, SftSettings
from recipe.hint.metrics import step_metrics
from recipe.hint.record import PromptRecord
from recipe.hint.reward_tracker import RewardTracker
from recipe.hint.schema import ProblemState
from recipe.run.errors import ConfigError

WRONG = {0: [0, 0, 0, 0]}


def played(method, outcomes=WRONG, *, solution="right", step=1):
    return run(method, outcomes, item=replace(problem(), solution=solution), step=step)


def test_luffy_trains_on_the_group_and_the_solution_together():
    outcome = played(Luffy())
    rewards = [row.credit.reward for row in outcome.rows]
    assert rewards == [0, 0, 0, 0, 1]
    assert [row.credit.is_given for row in outcome.rows] == [False] * 4 + [True]
    # Five rewards, mean 1/5, deviation 1/sqrt(5): a failed group of 4 has a gradient.
    found = Luffy().credit.advantages([row.credit for row in outcome.rows])
    assert found.tolist() == pytest.approx([-0.4472] * 4 + [1.7889], abs=1e-3)
    assert sum(found) == pytest.approx(0, abs=1e-12)
    assert outcome.record.has_signal


def test_without_the_deviation_the_solution_weighs_as_much_as_the_group_fails():
    method = Luffy(settings=LuffySettings(norm_adv_by_std=False))
    for right, weight in (([0, 0, 0, 0], 0.8), ([1, 1, 0, 0], 0.4), ([1, 1, 1, 1], 0.0)):
        outcome = played(method, {0: right})
        assert method.credit.advantages([row.credit for row in outcome.rows])[-1] == pytest.approx(
            weight
        )


def test_a_tokens_weight_is_largest_where_its_probability_is_gamma():
    # p f'(p) = gamma p / (p + gamma)^2: 1/4 at p = gamma, less for what the policy knows already.
    probs_NT = np.array([[0.001, 0.1, 1.0]] * 2)
    rows = [CreditRow("p", "u", "", "", 0, 0, 1.0, is_given=given) for given in (True, False)]
    none_NT = np.zeros((2, 3))
    facts = TokenStats(np.log(probs_NT), none_NT, np.ones((2, 3)), none_NT)
    given, sampled = Luffy().credit.token_weights(rows, facts).tolist()
    assert given == pytest.approx([0.0001 / 0.101**2, 0.25, 0.1 / 1.1**2])
    assert sampled == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("solution", ["wrong", "", "cut right"])
def test_a_solution_that_is_wrong_missing_or_too_long_stays_out(solution):
    outcome = played(Luffy(), solution=solution)
    assert len(outcome.rows) == 4
    assert not outcome.record.has_signal


def test_a_given_response_is_neither_sampled_nor_the_policys_accuracy():
    outcome = played(Luffy())
    record = PromptRecord.from_json(outcome.record.as_json())
    assert record.accuracies == (0, 0, 0, 0)
    assert [each.is_given for each in record.rounds] == [False, True]
    assert record.rounds[1].accuracies == (1.0,)
    tokens = sum(len(row.turn.response.token_ids_T) for row in outcome.rows[:4])
    assert record.trained_tokens == record.rounds[0].tokens == tokens
    assert record.rounds[1].tokens == 0
    # The verifier's share of fast paths is the policy's own.
    assert sum(record.bases.values()) == 4
    metrics = step_metrics([record], 0)
    assert metrics["acc_no_hint_mean"] == metrics["rollout_tokens_discarded"] == 0
    assert (metrics["given"], metrics["given_right"]) == (1, 1)
    assert (metrics["zero_signal_before"], metrics["zero_signal_after"]) == (1, 0)
    tracker = RewardTracker()
    tracker.update([record])
    state = tracker.state(record.problem_id)
    assert (state.accuracy, state.worked_level) == (0.0, None)
    assert tracker.metrics()["pct_never_solved"] == 100


def test_sft_samples_nothing_and_drops_what_it_cannot_train_on():
    outcome = played(Sft())
    assert [row.credit.reward for row in outcome.rows] == [1.0]
    assert Sft().credit.advantages([row.credit for row in outcome.rows]).tolist() == [1.0]
    for solution in ("", "cut right"):
        dropped = played(Sft(), solution=solution)
        assert dropped.record.is_dropped
        assert [row.credit.weight for row in dropped.rows] == [0.0]


def test_sft_goes_over_to_grpo_after_its_steps():
    method = Sft(settings=SftSettings(steps=3))
    sampled = [
        [row.credit.is_given for row in played(method, step=step).rows] for step in (1, 3, 4)
    ]
    assert sampled == [[True], [True], [False] * 4]
    with pytest.raises(ConfigError, match=r"hint\.sft\.steps=3 leaves no step of the run.s 2"):
        method.check_steps(2)
    method.check_steps(3)


@pytest.mark.parametrize(
    "method",
    [
        Sft(settings=SftSettings(steps=3)),
        Scaf(settings=ScafSettings(warmup_steps=3)),
        Ghpo(max_level=2, settings=GhpoSettings(cold_start_steps=3)),
    ],
)
def test_a_prompt_that_a_resumed_run_sends_again_keeps_its_phase(method):
    first, again, later = (
        method.open(problem(), ProblemState(step=step, sent_step=sent))
        for step, sent in ((3, 3), (4, 3), (4, 4))
    )
    assert first == again != later


@pytest.mark.parametrize("rewards", [["timeout"] * 4, [0, 0, 0, "timeout"], [0, "timeout"] * 2])
def test_a_group_that_may_be_right_is_not_held_against_the_solution(rewards):
    outcome = played(Luffy(), {0: rewards})
    assert [row.credit.is_given for row in outcome.rows] == [False] * 4
    assert not outcome.record.has_signal


def test_one_right_response_is_enough_to_compare_with_the_solution():
    assert len(played(Luffy(), {0: [1, "timeout", 0, 0]}).rows) == 5


def test_sft_compares_a_group_only_if_grpo_follows():
    assert not Sft().needs.group
    assert Sft(settings=SftSettings(steps=2)).needs.group

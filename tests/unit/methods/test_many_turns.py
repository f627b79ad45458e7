"""What the one loop makes of several turns, whatever the method."""

import asyncio
import json
from dataclasses import dataclass, replace

import pytest
import torch
from talks import GUIDE, TurnEngine, play, roll_out
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage
from verl.utils import tensordict_utils as tu

from recipe.hint.adapter import store
from recipe.hint.methods.archer import Archer, ArcherSettings
from recipe.hint.methods.base import Method
from recipe.hint.methods.dialogue import GuideSettings, SolverSettings
from recipe.hint.methods.score import Score
from recipe.hint.methods.score_guided import ScoreGuided
from recipe.hint.metrics import step_metrics
from recipe.hint.turns import FollowUp, Place, Row, Sample, Train

G = 2
GUIDE_ALONE = GuideSettings(stage1_steps=0, train_solver=False)


def two_turns():
    """r2 + (r2 - r1) for the revision."""
    return Score(settings=SolverSettings(stage1_steps=0, alpha=1.0))


def test_every_prompt_is_rendered_once(monkeypatch):
    engine, rendered = TurnEngine({0: [1, 0], 1: [1, 1]}), []
    real = engine.render

    def counted(messages, **turns):
        rendered.append(len(messages))
        return real(messages, **turns)

    monkeypatch.setattr(engine, "render", counted)
    play(two_turns(), engine)
    # The problem for the group, and one longer conversation for each of the G = 2 responses.
    assert len(rendered) == 1 + G
    assert rendered[1:] == [rendered[0] + 2] * G


def test_groups_without_a_difference_inside_have_no_signal():
    # Turn 1: 0, 0; turn 2: 1 + 1, 1 + 1. The rewards differ between the groups only.
    outcome = play(two_turns(), TurnEngine({0: [0, 0], 1: [1, 1]}))
    assert outcome.record.rewards == (0.0, 0.0, 2.0, 2.0)
    assert not outcome.record.has_signal


@pytest.mark.parametrize("first", [True, False])
def test_a_first_turn_of_archer_earns_its_own_accuracy_only_if_asked_for(first):
    method = Archer(settings=ArcherSettings(rewards_first=first))
    outcome = play(method, TurnEngine({0: [1, 0], 1: [0, 1]}))
    own = (1.0, 0.0) if first else (0.0, 0.0)
    assert outcome.record.rewards == (*own, 0.0, 1.0)


def test_each_group_of_a_prompt_gets_a_baseline_of_its_own_in_verls_grpo():
    outcome = play(two_turns(), TurnEngine({0: [1, 0], 1: [1, 1]}))
    assert outcome.record.has_signal and outcome.record.num_injected == 0
    prompt = {"uid": "uid", "global_steps": 1, "index": 1}
    rows = [fields for _, fields, _ in store.rows_of(outcome, prompt)]
    uids = [tu.unwrap_non_tensor_data(fields["uid"]) for fields in rows]
    assert uids == ["uid/turn1", "uid/turn1", "uid/turn2", "uid/turn2"]
    scores = torch.stack([fields["rm_scores"] for fields in rows])
    mask = torch.stack([fields["response_mask"] for fields in rows]).float()
    advantages, _ = compute_grpo_outcome_advantage(scores, mask, index=uids)
    # Turn 1: 1, 0 with mean 1/2 and deviation 1/sqrt(2); turn 2: 1, 2 with mean 3/2 and the same.
    expected = [0.7071, -0.7071, -0.7071, 0.7071]
    assert advantages[:, 0].tolist() == pytest.approx(expected, abs=1e-4)
    # In one group (1, 0, 1, 2: mean 1, deviation sqrt(2/3)) the third row would get nothing.
    together, _ = compute_grpo_outcome_advantage(scores, mask, index=["uid"] * 4)
    assert together[:, 0].tolist() == pytest.approx([0.0, -1.2247, 0.0, 1.2247], abs=1e-4)


def test_a_prompt_that_trains_no_graded_turn_has_metrics_without_an_accuracy():
    outcome = play(
        ScoreGuided(settings=GUIDE_ALONE), TurnEngine({0: [0, 1], GUIDE: [0, 0], 1: [1, 0]})
    )
    assert outcome.record.accuracies == ()
    metrics = step_metrics([outcome.record], 0)
    assert (metrics["used_no_hint"], metrics["mixed_groups"]) == (1.0, 1.0)
    assert "acc_no_hint_mean" not in metrics


class Ungraded(Method):
    """Nothing is graded; the second of two responses is the better one."""

    def open(self, problem, state):
        return Sample(is_graded=False)

    def react(self, problem, state, rounds):
        return Train(tuple(Row(Place(0, row), float(row)) for row in range(G)))


def test_a_prompt_without_any_grade_has_metrics_and_says_so_in_its_sample():
    outcome = play(Ungraded(), TurnEngine({0: [0, 0]}))
    metrics = step_metrics([outcome.record], 0)
    assert (metrics["zero_signal_before"], metrics["zero_signal_after"]) == (1.0, 0.0)
    reasons = [each["reason"] for each in json.loads(outcome.sample)["responses"]]
    assert reasons == ["not_graded", "not_graded"]


def test_a_method_that_trains_nothing_is_an_error():
    class Nothing(Method):
        def react(self, problem, state, rounds):
            return Train(())

    with pytest.raises(ValueError, match="Train has no rows; give at least one"):
        play(Nothing(), TurnEngine({0: [0, 1]}))


@dataclass(frozen=True)
class Revised(Method):
    """One follow-up of the first response, as the test asks for it."""

    n: int

    def react(self, problem, state, rounds):
        if len(rounds) == 1:
            return Sample(FollowUp("Check your work."), n=self.n, parents=(Place(0, 0),))
        assert (len(rounds[1].turns), rounds[1].is_whole) == (self.n, True)
        return self.train_round(rounds, 1)


@pytest.mark.parametrize("n", [1, 3])  # of G = 2
def test_a_request_with_parents_is_neither_completed_nor_cut(n):
    play(Revised(n), TurnEngine({0: [1, 0], 1: [0, 0, 0]}))


def test_a_turn_that_raises_ends_the_rollout_and_leaves_nothing_running():
    class Broken(TurnEngine):
        async def sample(self, prompt_ids, seed, rows, max_tokens):
            if "[assistant]" not in "".join(map(chr, prompt_ids)):
                return await super().sample(prompt_ids, seed, rows, max_tokens)
            raise RuntimeError("the server is gone")

    async def go():
        with pytest.raises(RuntimeError, match="the server is gone"):
            await roll_out(two_turns(), Broken({0: [1, 0]}))
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(go()) == 1  # this test's own


def test_the_turns_of_a_round_are_one_request_and_one_grade():
    class Counting(TurnEngine):
        requests, grades = 0, 0

        async def sample_each(self, prompts, seeds, rows, max_tokens=0):
            self.requests += 1
            return await super().sample_each(prompts, seeds, rows, max_tokens)

        async def grade(self, problem, responses):
            self.grades += 1
            return await super().grade(problem, responses)

    engine = Counting({0: [1, 0, 1, 0], 1: [1, 0, 1, 0]}, group_size=4)
    outcome = play(two_turns(), engine)
    # The first round has one prompt; the second one prompt of each of the four conversations.
    assert (engine.requests, engine.grades) == (2, 2)
    assert [turn.parent.turn for turn in (row.turn for row in outcome.rows[4:])] == [0, 1, 2, 3]


class FirstUngraded(TurnEngine):
    """The verifier fails on every first turn."""

    async def grade(self, problem, responses):
        graded = await super().grade(problem, responses)
        is_first = responses[0].token_ids_T[0] == 0
        return [replace(each, reason="timeout") if is_first else each for each in graded]


def test_a_first_turn_of_archer_needs_no_grade_unless_it_earns_one():
    right = {0: [0, 0], 1: [0, 1]}
    kept = play(Archer(), FirstUngraded(right))
    assert [row.credit.reward for row in kept.rows] == [0.0, 0.0, 0.0, 1.0]
    assert not kept.record.is_dropped
    # With rewards of its own nothing is known of either conversation.
    first = Archer(settings=ArcherSettings(rewards_first=True))
    assert play(first, FirstUngraded(right)).record.is_dropped

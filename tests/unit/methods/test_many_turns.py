"""Methods of two and three turns in the one loop, made of what the loop offers and nothing else."""

import asyncio
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from talks import TurnEngine, play, roll_out
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage
from verl.utils import tensordict_utils as tu

from recipe.hint.methods.base import Method
from recipe.hint.methods.cost import most_responses
from recipe.hint.metrics import step_metrics
from recipe.hint.runtime import store
from recipe.hint.samples import unpack_sample
from recipe.hint.turns import FollowUp, Place, Prompt, PromptSpec, Row, Sample, Train

ALPHA = 1.0
G = 2


class TwoTurns(Method):
    """SCoRe's stage II without its KL: r2 + alpha (r2 - r1) for the revision."""

    def react(self, problem, state, rounds):
        if len(rounds) == 1:
            parents = tuple(Place(0, row) for row in range(len(rounds[0].turns)))
            return Sample(FollowUp("Check your work."), n=1, parents=parents)
        first, second = rounds
        rows = [self.row(rounds, Place(0, row), "t1") for row in range(len(first.turns))]
        for row, turn in enumerate(second.turns):
            r1, r2 = self.reward(first.turns[turn.parent.turn]), self.reward(turn)
            rows.append(Row(Place(1, row), r2 + ALPHA * (r2 - r1), "t2"))
        return Train(tuple(rows))


@dataclass(frozen=True)
class Feedback(PromptSpec):
    """Another speaker sees the problem and one response, not the conversation."""

    kind: ClassVar[str] = "feedback"

    async def build(self, context, parent):
        text = f"{context.problem.text}\n{parent.response.text}\nWhat is wrong?"
        return Prompt(({"role": "user", "content": f"[assistant]{text}"},))


@dataclass(frozen=True)
class Refine(PromptSpec):
    """The first conversation goes on with the feedback that was given on it."""

    first: tuple
    kind: ClassVar[str] = "refine"

    async def build(self, context, parent):
        turn = self.first[parent.parent.turn]
        return Prompt(
            (
                *turn.messages,
                {"role": "assistant", "content": turn.response.text},
                {"role": "user", "content": f"[assistant]{parent.response.text}"},
            )
        )


class ThreeTurns(Method):
    """Attempt, ungraded feedback, refinement; the feedback earns what the refinement gains."""

    def react(self, problem, state, rounds):
        parents = tuple(Place(len(rounds) - 1, row) for row in range(len(rounds[-1].turns)))
        if len(rounds) == 1:
            return Sample(Feedback(), n=1, parents=parents, is_graded=False, role="guide")
        if len(rounds) == 2:
            return Sample(Refine(rounds[0].turns), n=1, parents=parents)
        attempts, _, refined = (each.turns for each in rounds)
        rows = []
        for row, turn in enumerate(refined):
            feedback = rounds[1].turns[turn.parent.turn]
            gain = self.reward(turn) - self.reward(attempts[feedback.parent.turn])
            rows.append(Row(turn.parent, gain, "guide"))
            rows.append(self.row(rounds, Place(2, row), "solver"))
        return Train(tuple(rows))


def test_two_turns_give_the_first_its_reward_and_the_second_the_shaped_one():
    engine = TurnEngine({0: [1, 0], 1: [1, 1]})
    outcome = play(TwoTurns(), engine)
    # r1 = 1, 0; r2 = 1, 1; turn 2 trains with r2 + (r2 - r1) = 1 + 0 and 1 + 1.
    assert outcome.record.rewards == (1.0, 0.0, 1.0, 2.0)
    assert outcome.record.groups == ("t1", "t1", "t2", "t2")
    assert outcome.record.rows == ((0, 0), (0, 1), (1, 0), (1, 1))
    assert [(each.prompt, each.accuracies) for each in outcome.record.rounds] == [
        ("bare", (1.0, 0.0)),
        ("follow_up", (1.0, 1.0)),
    ]
    assert outcome.record.has_signal
    assert outcome.record.num_injected == 0
    assert len(set(engine.seeds)) == 4  # every response is drawn with a seed of its own
    last = "".join(map(chr, outcome.rows[-1].prompt_ids_T))
    assert last.endswith("[assistant]answer 0[user]Check your work.")


def test_every_prompt_is_rendered_once(monkeypatch):
    engine, rendered = TurnEngine({0: [1, 0], 1: [1, 1]}), []
    real = engine.render

    def counted(messages):
        rendered.append(len(messages))
        return real(messages)

    monkeypatch.setattr(engine, "render", counted)
    play(TwoTurns(), engine)
    # The problem for the group, and one longer conversation for each of the G = 2 responses.
    assert len(rendered) == 1 + G
    assert rendered[1:] == [rendered[0] + 2] * G


def test_groups_without_a_difference_inside_have_no_signal():
    # Turn 1: 0, 0; turn 2: 1 + 1, 1 + 1. The rewards differ between the groups only.
    outcome = play(TwoTurns(), TurnEngine({0: [0, 0], 1: [1, 1]}))
    assert outcome.record.rewards == (0.0, 0.0, 2.0, 2.0)
    assert not outcome.record.has_signal


def test_a_follow_up_that_does_not_fit_is_missing_and_the_reason_is_recorded():
    bare = len("[system]answer in a box[user]What is 1+1?")
    outcome = play(TwoTurns(), TurnEngine({0: [1, 0]}, prompt_length=bare))
    assert outcome.record.rows == ((0, 0), (0, 1))
    assert [each.hint_status for each in outcome.record.rounds] == ["none", "too_long"]


def test_three_turns_train_a_guide_that_is_never_graded():
    engine = TurnEngine({0: [0, 1], 1: [0, 0], 2: [1, 0]})
    outcome = play(ThreeTurns(), engine)
    # Attempts 0, 1; refinements 1, 0: the feedback gains 1 - 0 and 0 - 1.
    assert outcome.record.rows == ((1, 0), (2, 0), (1, 1), (2, 1))
    assert outcome.record.rewards == (1.0, 1.0, -1.0, 0.0)
    assert outcome.record.groups == ("guide", "solver", "guide", "solver")
    roles = [(each.prompt, each.role, each.accuracies) for each in outcome.record.rounds]
    assert roles == [
        ("bare", "solver", (0.0, 1.0)),
        ("feedback", "guide", ()),
        ("refine", "solver", (1.0, 0.0)),
    ]
    assert outcome.record.reasons == {"correct": 1, "wrong": 1}  # of what trains and is graded


def test_each_group_of_a_prompt_gets_a_baseline_of_its_own_in_verls_grpo():
    outcome = play(TwoTurns(), TurnEngine({0: [1, 0], 1: [1, 1]}))
    prompt = {"uid": "uid", "global_steps": 1, "index": 1}
    rows = [fields for _, fields, _ in store.rows_of(outcome, prompt)]
    uids = [tu.unwrap_non_tensor_data(fields["uid"]) for fields in rows]
    assert uids == ["uid/t1", "uid/t1", "uid/t2", "uid/t2"]
    scores = torch.stack([fields["rm_scores"] for fields in rows])
    mask = torch.stack([fields["response_mask"] for fields in rows]).float()
    advantages, _ = compute_grpo_outcome_advantage(scores, mask, index=uids)
    # Turn 1: 1, 0 with mean 1/2 and deviation 1/sqrt(2); turn 2: 1, 2 with mean 3/2 and the same.
    expected = [0.7071, -0.7071, -0.7071, 0.7071]
    assert advantages[:, 0].tolist() == pytest.approx(expected, abs=1e-4)
    # In one group (1, 0, 1, 2: mean 1, deviation sqrt(2/3)) the third row would get nothing.
    together, _ = compute_grpo_outcome_advantage(scores, mask, index=["uid"] * 4)
    assert together[:, 0].tolist() == pytest.approx([0.0, -1.2247, 0.0, 1.2247], abs=1e-4)


def test_later_turns_count_in_the_most_responses_of_a_rollout():
    assert most_responses(TwoTurns(), 8) == 2 * 8
    assert most_responses(ThreeTurns(), 8) == 3 * 8


class GuideAlone(ThreeTurns):
    """The guide trains, the solver stays as it is."""

    def react(self, problem, state, rounds):
        decision = super().react(problem, state, rounds)
        if isinstance(decision, Sample):
            return decision
        return Train(tuple(row for row in decision.rows if row.group == "guide"))


def test_a_prompt_that_trains_no_graded_turn_has_metrics_without_an_accuracy():
    outcome = play(GuideAlone(), TurnEngine({0: [0, 1], 1: [0, 0], 2: [1, 0]}))
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
    reasons = [each["reason"] for each in unpack_sample(outcome.sample)["responses"]]
    assert reasons == ["not_graded", "not_graded"]


class Silent(Feedback):
    """A guide whose prompt never fits."""

    async def build(self, context, parent):
        return Prompt(status="too_long")


class UnguidedThree(ThreeTurns):
    """Goes on from the turns of a round that has none."""

    def react(self, problem, state, rounds):
        decision = super().react(problem, state, rounds[:2])
        if len(rounds) == 1:
            return replace(decision, prompt=Silent())
        return decision if len(rounds) == 2 else self.train_round(rounds, 0)


def test_a_round_that_goes_on_from_no_turns_has_none():
    outcome = play(UnguidedThree(), TurnEngine({0: [0, 1]}))
    assert outcome.record.rows == ((0, 0), (0, 1))
    assert [each.hint_status for each in outcome.record.rounds] == ["none", "too_long", "none"]
    assert [each.tokens for each in outcome.record.rounds] == [4, 0, 0]


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
    complete_unless: str | None = None

    def react(self, problem, state, rounds):
        if len(rounds) == 1:
            again = FollowUp("Check your work.")
            return Sample(
                again, n=self.n, parents=(Place(0, 0),), complete_unless=self.complete_unless
            )
        assert (len(rounds[1].turns), rounds[1].is_whole) == EXPECTED[self]
        return self.train_round(rounds, 1)


# Nobody is right in turn 1: a probe of 1 stays 1 of G = 2; 3 that are no probe are 3.
EXPECTED = {Revised(1, "wrong"): (1, False), Revised(1): (1, True), Revised(3): (3, True)}


@pytest.mark.parametrize("method", EXPECTED)
def test_a_probe_with_parents_is_not_whole_and_no_request_is_cut(method):
    play(method, TurnEngine({0: [1, 0], 1: [0, 0, 0]}))


def test_a_turn_that_raises_ends_the_rollout_and_leaves_nothing_running():
    class Broken(TurnEngine):
        async def sample(self, prompt_ids, seed, rows=None, sampling=None):
            if "[assistant]" not in "".join(map(chr, prompt_ids)):
                return await super().sample(prompt_ids, seed, rows, sampling)
            raise RuntimeError("the server is gone")

    async def go():
        with pytest.raises(RuntimeError, match="the server is gone"):
            await roll_out(TwoTurns(), Broken({0: [1, 0]}))
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(go()) == 1  # this test's own


def test_the_turns_of_a_round_are_one_request_and_one_grade():
    class Counting(TurnEngine):
        requests, grades = 0, 0

        async def sample_each(self, prompts, seeds, count, sampling=None):
            self.requests += 1
            return await super().sample_each(prompts, seeds, count, sampling)

        async def grade(self, problem, responses):
            self.grades += 1
            return await super().grade(problem, responses)

    engine = Counting({0: [1, 0, 1, 0], 1: [1, 0, 1, 0]}, group_size=4)
    outcome = play(TwoTurns(), engine)
    # The first round has one prompt; the second one prompt of each of the four conversations.
    assert (engine.requests, engine.grades) == (1, 2)
    assert [turn.parent.turn for turn in (row.turn for row in outcome.rows[4:])] == [0, 1, 2, 3]

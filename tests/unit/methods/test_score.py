"""SCoRe: what each turn earns in each stage, and what its advantages come to."""

from dataclasses import replace

import pytest
from talks import TurnEngine, play

from recipe.hint.methods.dialogue import SolverSettings
from recipe.hint.methods.score import Score

STAGE1 = 10
REVISE = "Read your solution again"


def score(**settings):
    return Score(settings=SolverSettings(stage1_steps=STAGE1, **settings))


def talk(right, *, step=STAGE1 + 1, method=None, **more):
    engine = TurnEngine(right, group_size=len(right[0]), prompt_length=more.pop("room", 10_000))
    return play(method or score(), engine, step=step, **more)


def credits(outcome):
    return [row.credit for row in outcome.rows]


def earned(outcome):
    return [(each.turn, each.session, each.reward, each.kl_coef) for each in credits(outcome)]


def test_the_second_turn_continues_the_first_with_the_instruction_to_revise():
    outcome = talk({0: [0, 1], 1: [1, 1]})
    assert [each.prompt for each in outcome.record.rounds] == ["bare", "revise"]
    assert outcome.record.rounds[1].parents == ((0, 0), (0, 1))
    last = "".join(map(chr, outcome.rows[-1].prompt_ids_T))
    assert f"[assistant]answer 0[user]{REVISE}" in last


def test_stage_two_gives_the_first_turn_its_reward_and_the_second_the_shaped_one():
    # alpha = 10: wrong-wrong 0, right-right 1, wrong-right 1 + 10, right-wrong -10.
    outcome = talk({0: [0, 1, 0, 1], 1: [0, 1, 1, 0]})
    first = [(0, 0, 0.0, 0.01), (0, 1, 1.0, 0.01), (0, 2, 0.0, 0.01), (0, 3, 1.0, 0.01)]
    second = [(1, 0, 0.0, 0.01), (1, 1, 1.0, 0.01), (1, 2, 11.0, 0.01), (1, 3, -10.0, 0.01)]
    assert earned(outcome) == first + second
    assert [each.group for each in credits(outcome)] == ["turn1"] * 4 + ["turn2"] * 4


class Lengths(TurnEngine):
    """The first answer of the first turn and the second one of the second are over-long."""

    async def grade(self, problem, responses):
        verdicts = await super().grade(problem, responses)
        over = responses[0].token_ids_T[0]  # the turn
        verdicts[over] = replace(verdicts[over], reward=verdicts[over].score - 1.0)
        return verdicts


def test_a_penalty_on_the_length_of_an_answer_counts_once():
    # wrong and over-long, wrong: -1, 0 and no bonus for the shorter one.
    # right, right but over-long: 1, 1 - 1, and it broke no answer.
    outcome = play(score(), Lengths({0: [0, 1], 1: [0, 1]}, group_size=2), step=STAGE1 + 1)
    assert [each.reward for each in credits(outcome)] == [-1.0, 1.0, 0.0, 0.0]


def test_stage_one_gives_the_first_turn_nothing_but_its_kl_and_the_second_its_reward():
    outcome = talk({0: [0, 1], 1: [1, 1]}, step=STAGE1)
    assert earned(outcome) == [(0, 0, 0, 0.1), (0, 1, 0, 0.1), (1, 0, 1, 0.01), (1, 1, 1, 0.01)]


def test_a_prompt_that_a_resumed_run_sends_again_keeps_its_stage():
    # Sent at the last step of stage I, sampled again at the first one of stage II.
    outcome = talk({0: [0, 1], 1: [1, 1]}, step=STAGE1 + 1, sent_step=STAGE1)
    assert [each.reward for each in credits(outcome)] == [0, 0, 1, 1]


def test_a_turn_is_compared_with_the_same_turn_of_the_other_conversations():
    outcome = talk({0: [0, 1, 0], 1: [1, 1, 0]})
    # Turn 1: 0, 1, 0; the others' means 1/2, 0, 1/2. Turn 2: 11, 1, 0; 1/2, 11/2, 6.
    expected = [-0.5, 1.0, -0.5, 10.5, -4.5, -6.0]
    assert score().credit.advantages(credits(outcome)) == pytest.approx(expected)


class Broken(TurnEngine):
    """The verifier fails on the first response of some turns."""

    turns: tuple[int, ...] = (0,)

    async def grade(self, problem, responses):
        graded = await super().grade(problem, responses)
        is_one = responses[0].token_ids_T[0] in self.turns
        return [replace(graded[0], reason="timeout"), *graded[1:]] if is_one else graded


@pytest.mark.parametrize(
    ("turns", "settings", "step", "trained"),
    [
        # Stage II: of the first conversation neither what it began with nor its change is known;
        # wrong-right 1 + 10.
        ((0,), {}, 99, [(0, 0.0), (1, 11.0)]),
        # Its first turn is known, its change is not.
        ((1,), {}, 99, [(0, 0.0), (0, 0.0), (1, 11.0)]),
        # Stage I: what the first turn came to has no part in anything.
        ((0,), {}, 1, [(0, 0.0), (0, 0.0), (1, 1.0), (1, 1.0)]),
        ((1,), {}, 1, [(0, 0.0), (0, 0.0), (1, 1.0)]),
        # Both turns earn the last grade.
        ((0,), {"solver_credit": "joint"}, 99, [(0, 1.0), (0, 1.0), (1, 1.0), (1, 1.0)]),
        ((1,), {"solver_credit": "joint"}, 99, [(0, 1.0), (1, 1.0)]),
    ],
)
def test_what_a_failed_grade_leaves_unknown_does_not_train(turns, settings, step, trained):
    engine = Broken({0: [0, 0], 1: [1, 1]})
    engine.turns = turns
    outcome = play(score(**settings), engine, step=step)
    assert [(each.turn, each.reward) for each in credits(outcome)] == trained


def test_without_any_grade_nothing_trains():
    class Failing(TurnEngine):
        async def grade(self, problem, responses):
            graded = await super().grade(problem, responses)
            return [replace(each, reason="error") for each in graded]

    outcome = play(score(), Failing({0: [0, 0], 1: [1, 1]}), step=99)
    assert outcome.record.is_dropped
    assert [(each.turn, each.weight) for each in credits(outcome)] == [(0, 0.0), (0, 0.0)]


def test_a_first_turn_without_room_for_a_second_trains_alone():
    outcome = talk({0: [0, 1]}, room=60)
    assert earned(outcome) == [(0, 0, 0.0, 0.01), (0, 1, 1.0, 0.01)]
    assert outcome.record.rounds[1].hint_status == "too_long"


def test_without_a_kl_coefficient_no_reference_is_needed():
    assert score().needs.reference
    assert not score(beta1=0.0, beta2=0.0).needs.reference


def test_validation_plays_the_same_turns_and_counts_the_last_ones():
    outcome = talk({0: [0, 1, 1], 1: [1, 0, 1]}, method=score().validation())
    assert [each.prompt for each in outcome.record.rounds] == ["bare", "revise"]
    assert [(each.turn, each.reward) for each in credits(outcome)] == [(1, 1), (1, 0), (1, 1)]
    facts = [dict(each.facts) for each in credits(outcome)]
    assert [each["delta"] for each in facts] == [1.0, -1.0, 0.0]
    assert [each["wrong_to_right"] for each in facts] == [1.0, 0.0, 0.0]
    assert [each["right_to_wrong"] for each in facts] == [0.0, 1.0, 0.0]


def test_a_conversation_without_room_for_a_revision_counts_as_unchanged():
    outcome = talk({0: [0, 1]}, method=score().validation(), room=60)
    assert [each.facts["acc_t2"] for each in credits(outcome)] == [0.0, 1.0]
    assert [each.facts["unchanged"] for each in credits(outcome)] == [1.0, 1.0]

"""What conversations came to, where first turns branch unequally and answers are missing."""

import json
from dataclasses import asdict, replace

import pytest
from pydantic import TypeAdapter
from talks import GUIDE, TurnEngine, play

from recipe.hint.conversations import Conversation, conversations, mean_facts
from recipe.hint.estimators import turn_metrics
from recipe.hint.methods.mlmt import Mlmt, MlmtSettings
from recipe.hint.metrics import step_metrics
from recipe.hint.reward_tracker import RewardTracker
from recipe.hint.schema import Response
from recipe.hint.turns import Place, Round, Sample, Turn
from recipe.verify.schema import Verdict

# Four first turns, two of them right, have 2 x 2 refinements each: 16 conversations.
TREE = Mlmt(settings=MlmtSettings(feedbacks=2, refinements=2))


def tree(refined):
    right = {0: [1, 1, 0, 0], GUIDE: [0] * 8, 1: [1] * 8 + refined}
    return play(TREE, TurnEngine(right, group_size=4)).record


def test_a_first_turn_that_branches_counts_as_one_that_does_not():
    record = tree([1, 0, 0, 0, 0, 0, 0, 0])
    assert len(record.conversations) == 16
    found = turn_metrics({"p": mean_facts(record.conversations)})
    # Firsts: 1, 1, 0, 0. Ends: 1, 1, 1/4, 0.
    assert (found["acc_t1"], found["acc_t2"]) == (0.5, 0.5625)
    assert found["delta"] == found["wrong_to_right"] == pytest.approx(0.25 / 4)
    assert found["conversations"] == 4


def test_the_tracker_keeps_the_accuracy_of_the_ends_and_not_of_the_last_round():
    tracker = RewardTracker()
    tracker.update([tree([0] * 8)])
    # The refinements are all wrong, and half of the problem is solved: 1, 1, 0, 0.
    assert tracker.state("p1").accuracy == 0.5


def test_an_ungraded_turn_leaves_the_accuracy_of_conversations_unknown():
    class Failing(TurnEngine):
        async def grade(self, problem, responses):
            return [Verdict(0.0, "error") for _ in responses]

    record = play(TREE, Failing({0: [0, 0], GUIDE: [0] * 4, 1: [0] * 8})).record
    assert sum(each.num_ungraded for each in record.rounds) == 10
    tracker = RewardTracker()
    tracker.update([record])
    assert tracker.state("p1").accuracy is None


@pytest.mark.parametrize("reason", ["timeout", "error"])
@pytest.mark.parametrize("end", [0, 1])
def test_a_conversation_with_an_ungraded_end_is_not_compared(end, reason):
    """Four conversations stay right: a grade that fails makes no change of one."""
    response, right = Response([1], [0.0], "text", False), Verdict(1.0, "correct", "4")
    ends = [[right] * 4, [right] * 4]
    ends[end] = [*[right] * 3, Verdict(0.0, reason)]
    first = tuple(Turn((), [1], response, each) for each in ends[0])
    last = tuple(
        Turn((), [1], response, each, parent=Place(0, i)) for i, each in enumerate(ends[1])
    )
    found = conversations([Round(Sample(), first), Round(Sample(), last)])
    for facts in (mean_facts(found), [each.facts for each in found]):
        metrics = turn_metrics({"p": facts})
        assert (metrics["acc_t1"], metrics["acc_t2"], metrics["delta"]) == (1.0, 1.0, 0.0)
        assert metrics["conversations"] == 3
    assert TypeAdapter(Conversation).validate_json(json.dumps(asdict(found[3]))) == found[3]


def test_a_turn_that_nobody_wrote_is_counted_without_a_hint_level():
    record = tree([0] * 8)
    rounds = list(record.rounds)
    rounds[1] = replace(rounds[1], hint_status="generation_failed")
    rounds[2] = replace(rounds[2], hint_status="too_long")
    found = step_metrics([replace(record, rounds=tuple(rounds)), record], 0)
    assert (found["generation_failed"], found["too_long"]) == (1, 1)
    # Of hints none was asked for, so none failed.
    assert (found["generate_requested"], found["generate_failed"]) == (0, 0)

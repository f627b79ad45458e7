"""What an answer trains with is apart from what the search goes by."""

import asyncio
import json
from dataclasses import replace

import numpy as np
from fakes import ScriptedEngine, problem, run

from recipe.hint.adapter.engine import VllmEngine
from recipe.hint.methods.ghpo import Ghpo, GhpoSettings
from recipe.hint.methods.sage import Sage
from recipe.hint.schema import Response
from recipe.problems.schema import problem_from_row
from recipe.verify.functions import overlong_penalty
from recipe.verify.schema import Verdict


class OwnReward(ScriptedEngine):
    """Its own function: an answer trains with its accuracy, plus 0.5, minus 2 at level 0."""

    async def grade(self, problem, responses_G):
        verdicts = await super().grade(problem, responses_G)
        return [
            replace(each, reward=each.score + (0.5 if response.token_ids_T[0] else -1.5))
            for each, response in zip(verdicts, responses_G, strict=True)
        ]


def test_the_search_goes_by_accuracy_and_the_group_trains_with_the_reward():
    outcomes = {0: [0, 0], 1: [0, 0], 2: [1, 0], 3: [1, 1]}
    outcome = run(Sage(max_level=3), outcomes, engine=OwnReward(outcomes))
    # Every answer at level 1 trains with 0.5, but none is right, so the search goes on.
    assert outcome.record.levels == (0, 1, 2)
    rounds = [each.accuracies for each in outcome.record.rounds]
    assert rounds == [(0.0, 0.0), (0.0, 0.0), (1.0, 0.0)]
    assert outcome.record.rewards == (1.5, 0.5)
    assert [row.credit.reward for row in outcome.rows] == [1.5, 0.5]
    assert outcome.record.has_signal


def test_a_right_group_with_different_rewards_has_a_signal():
    class Graded(ScriptedEngine):
        async def grade(self, problem, responses_G):
            return [Verdict(1.0, "correct", reward=0.25 * n) for n in range(len(responses_G))]

    outcome = run(Sage(max_level=3), {0: [1, 1]}, engine=Graded({0: [1, 1]}))
    assert outcome.record.accuracies == (1.0, 1.0)
    assert outcome.record.rewards == (0.0, 0.25)
    assert outcome.record.has_signal


def test_ghpo_weighs_the_reward_as_it_weighs_accuracy():
    method = Ghpo(max_level=1, settings=GhpoSettings(accuracy_weight=2.0))
    outcome = run(method, {0: [1, 0]}, engine=OwnReward({0: [1, 0]}))
    # 2 x (1 - 1.5) and 2 x (0 - 1.5); neither keeps the tags of a form
    assert outcome.record.rewards == (-1.0, -3.0)


class Decided:
    """Gives one verdict after the other; keeps the items."""

    def __init__(self, *verdicts):
        self.verdicts, self.items = verdicts, []

    async def grade_many(self, items, ids=None):
        self.items += items
        return list(self.verdicts)


def judged(overlong, *pairs, item=None):
    """The verdicts of an engine for (tokens, verdict) pairs, and its judge."""
    grade = Decided(*(verdict for _, verdict in pairs))
    engine = VllmEngine.__new__(VllmEngine)
    engine.grader, engine._overlong = grade, overlong
    responses = [Response([1] * tokens, [0.0] * tokens, "text", False) for tokens, _ in pairs]
    return asyncio.run(engine.grade(item or problem(), responses)), grade


def test_the_overlong_penalty_changes_what_trains_and_no_accuracy():
    right, own = Verdict(1.0, "correct"), Verdict(0.0, "wrong", reward=3.0)
    pairs = (80, right), (90, right), (100, own)
    verdicts, _ = judged(lambda num: overlong_penalty(num, 100, 20, 1.0), *pairs)
    # 20 tokens of buffer: 0/20, 10/20 and 20/20 of the factor
    assert [verdict.train_reward for verdict in verdicts] == [1.0, 0.5, 2.0]
    assert [verdict.score for verdict in verdicts] == [1.0, 1.0, 0.0]
    assert [verdict.reason for verdict in verdicts] == ["correct", "correct", "wrong"]
    without, _ = judged(None, (100, right))
    assert without == [right]


def test_a_row_reaches_the_judge_with_its_source_truth_and_extra_info():
    row = {
        "prompt": [{"role": "user", "content": "1+1?"}],
        "data_source": "set",
        "reward_model": {"ground_truth": np.int64(2)},
        "extra_info": {
            "index": 3,
            "tags": np.array(["a", "b"]),
            "made": np.datetime64("2026-01-02"),
        },
    }
    item = problem_from_row(row)
    _, grade = judged(None, (1, Verdict(1.0, "correct")), item=item)
    assert json.loads(grade.items[0].row) == {
        "data_source": "set",
        "ground_truth": 2,
        "extra_info": {"index": 3, "tags": ["a", "b"], "made": "2026-01-02"},
    }
    assert (grade.items[0].answer, hash(grade.items[0])) == ("2", hash(grade.items[0]))

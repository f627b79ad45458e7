"""The leak guard around a source, and what a visit and the metrics make of it."""

import asyncio

import pytest
from fakes import ScriptedEngine
from records import statuses

from recipe.hint.hints.base import HintResult
from recipe.hint.hints.leak import LeakGuard
from recipe.hint.methods.sage import Sage, SearchSettings
from recipe.hint.metrics import step_metrics
from recipe.hint.prompt import Texts
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import HintLevels, ProblemState
from recipe.hint.settings import HintSettings
from recipe.problems.schema import Problem

MESSAGES = ({"role": "user", "content": "How many apples does Ann have?"},)
PROBLEM = Problem("p", MESSAGES, MESSAGES[0]["content"], "17 + 29 = 46", "46")
HINTS = ("Add the two.", "Ann has 17 + 29 = 46 apples.", "First the tens, then the units.")


class Written:
    """Always the same ladder."""

    async def write(self, problem, generate, *, num_before=0):
        return HintResult("ok", HintLevels(HINTS))


async def same_text(problem, candidates):
    return [candidate == problem.answer for candidate in candidates]


def guarded(policy):
    return LeakGuard(Written(), policy, same_text)


def hint_levels(policy):
    return asyncio.run(guarded(policy).write(PROBLEM, None))


@pytest.mark.parametrize(
    ("policy", "second"),
    [("measure", HINTS[1]), ("drop", ""), ("redact", "Ann has 17 + 29 = [...] apples.")],
)
def test_each_policy_names_the_level_and_touches_no_other(policy, second):
    result = hint_levels(policy)
    assert result.leaked == (2,)
    assert result.hint_levels.hints_L == (HINTS[0], second, HINTS[2])


def test_a_dropped_level_is_stepped_over_and_counted():
    engine = ScriptedEngine({0: [0, 0], 1: [0, 0], 3: [0, 1]})
    engine.level_of = lambda prompt_ids: _level("".join(map(chr, prompt_ids)))
    visit = PromptRollout(
        PROBLEM,
        ProblemState(),
        RolloutParts(
            method=Sage(max_level=3, settings=SearchSettings()),
            source=guarded("drop"),
            engine=engine,
            settings=HintSettings(),
            texts=Texts(),
        ),
    )
    record = asyncio.run(visit.run("u", 1)).record
    assert record.levels == (0, 1, 2, 3)
    assert statuses(record) == ("none", "ok", "leaked", "ok")
    assert record.first_row_level == 3
    metrics = step_metrics([record], 3)
    assert (metrics["leaked"], metrics["generate_success"]) == (1, 1)


def _level(text):
    return next((level for level, hint in enumerate(HINTS, 1) if text.endswith(hint)), 0)

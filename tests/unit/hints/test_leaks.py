"""The leak guard: precision and recall on hints labelled by hand, and what each policy does.

One author wrote the hints and the guard, so other writers' hints may do worse. A hint is labelled a
leak where it gives the final answer's value as the value asked for or as what its last step comes
to; the same number in another role is none.
"""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from fakes import ScriptedEngine
from records import statuses

from recipe.hint.hints.base import HintResult
from recipe.hint.hints.leak import LeakGuard, find_leaks, graded_equal
from recipe.hint.methods.sage import Sage
from recipe.hint.metrics import step_metrics
from recipe.hint.prompt import Texts
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState
from recipe.hint.settings import HintSettings
from recipe.problems.schema import Problem
from recipe.verify.maths.grade import grade_maths

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
# What was measured: (precision, recall); the guard must not get worse.
FLOORS = {
    "leaks": (106 / 115, 106 / 118),
    "leaks_held_out": (27 / 30, 27 / 31),
    "leaks_writings": (49 / 56, 49 / 56),
}


async def judge_all(items):
    return [grade_maths(item.response, item.answer) for item in items]


EQUAL = graded_equal(judge_all)


@pytest.fixture(scope="module", params=sorted(FLOORS))
def judged(request):
    """The name of a file, and (label, whether it was found) of each hint in it."""

    async def look():
        found = []
        for row in json.loads((GOLDEN / f"{request.param}.json").read_text("utf-8")):
            kind = "choice" if "(A)" in row["problem"] else "maths"
            item = Problem("id", (), row["problem"], "", row["answer"], kind=kind)
            leaks_H = await find_leaks([each["hint"] for each in row["hints"]], item, EQUAL)
            for label, leaks in zip(row["hints"], leaks_H, strict=True):
                found.append((bool(label["leak"]), leaks))
        return found

    return request.param, asyncio.run(look())


def test_precision_and_recall_do_not_fall(judged):
    name, results = judged
    counts = Counter(results)
    hits = counts[True, True]
    precision, recall = hits / (hits + counts[False, True]), hits / (hits + counts[True, False])
    sys.stdout.write(f"\n{name}: {len(results)} hints, {precision:.3f} {recall:.3f}\n")
    assert (precision, recall) >= FLOORS[name]
    assert recall >= FLOORS[name][1]


TURNS = ({"role": "user", "content": "How many apples does Ann have?"},)
PROBLEM = Problem("p", TURNS, TURNS[0]["content"], "17 + 29 = 46", "46")
HINTS = ("Add the two.", "Ann has 17 + 29 = 46 apples.", "First the tens, then the units.")


class Written:
    """Always the same ladder."""

    async def write(self, problem, generate, *, num_before=0):
        return HintResult("ok", HINTS)


@pytest.mark.parametrize(("policy", "second"), [("measure", HINTS[1]), ("drop", "")])
def test_each_policy_names_the_level_and_touches_no_other(policy, second):
    result = asyncio.run(LeakGuard(Written(), policy, EQUAL).write(PROBLEM, None))
    assert result.leaked == (2,)
    assert result.hints_L == (HINTS[0], second, HINTS[2])


def test_a_dropped_level_is_stepped_over_and_counted():
    engine = ScriptedEngine({0: [0, 0], 1: [0, 0], 3: [0, 1]})
    engine.level_of = lambda prompt_ids: next(
        (n for n, hint in enumerate(HINTS, 1) if "".join(map(chr, prompt_ids)).endswith(hint)), 0
    )
    source = LeakGuard(Written(), "drop", EQUAL)
    parts = RolloutParts(Sage(max_level=3), source, engine, HintSettings(), Texts())
    record = asyncio.run(PromptRollout(PROBLEM, ProblemState(), parts).run("u", 1)).record
    assert record.levels == (0, 1, 2, 3)
    assert statuses(record) == ("none", "ok", "leaked", "ok")
    metrics = step_metrics([record], 3)
    assert (metrics["leaked"], metrics["generate_success"]) == (1, 1)


@pytest.mark.parametrize(("answer", "leaks"), [("12", False), ("13", True), ("90", False)])
def test_a_number_that_stands_in_many_hints_leaks_only_where_it_is_said(answer, leaks):
    item = Problem("id", (), "How many rows are left?", "", answer)
    hints = [f"Fill {answer} of the rows one after another.", f"This leaves {answer} rows."]
    assert asyncio.run(find_leaks(hints, item, EQUAL)) == [leaks, True]

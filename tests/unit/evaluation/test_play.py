"""An evaluation that plays a method's turns: the rows it writes, and their numbers."""

import asyncio

import pytest
from fakes import problem
from omegaconf import OmegaConf
from response_rows import parsed
from talks import TurnEngine

from recipe.hint.settings import evaluated_method, method_defaults
from recipe.study.evaluation.draw import Job
from recipe.study.evaluation.play import parts_of_turns, played_rows, played_turns
from recipe.study.results import evaluation_table, macro_averages, summarise
from recipe.verify.schema import Verdict

RIGHT = {0: [0, 1, 1], 1: [1, 1, 0]}


def no_teacher(*_):
    return None


def config(method="score", **score):
    hint = {**method_defaults()["hint"], "seed": 5}
    hint["score"] = {**hint["score"], **score}
    rollout = {"actor_rollout_ref": {"rollout": {"val_kwargs": {}}}}
    return OmegaConf.create({"trainer": {"method": method}, "hint": hint} | rollout)


def rows_of(missing, *, settings=None):
    parts = parts_of_turns(settings or config(), TurnEngine(RIGHT, group_size=3), no_teacher)
    return asyncio.run(played_rows(Job(problem(), missing), parts=parts))


def test_a_row_is_the_last_turn_with_its_conversation_and_what_it_changed():
    rows = rows_of([0, 1, 2])
    assert [(row["sample"], row["score"]) for row in rows] == [(0, 1.0), (1, 1.0), (2, 0.0)]
    assert [row["facts"]["delta"] for row in rows] == [1.0, 0.0, -1.0]
    roles = [turn["role"] for turn in rows[0]["conversation"]]
    assert roles == ["system", "user", "assistant", "user"]


def test_a_resumed_evaluation_plays_the_same_conversations_and_keeps_the_missing_ones():
    whole, part = rows_of([0, 1, 2]), rows_of([1])
    for row in (*whole, *part):
        del row["seconds"]
    assert part == [whole[1]]
    assert len({row["seed"] for row in whole}) == 3


def test_a_row_has_the_seed_that_its_first_turn_was_sampled_with():
    engine = TurnEngine(RIGHT, group_size=3)
    parts = parts_of_turns(config(), engine, no_teacher)
    rows = asyncio.run(played_rows(Job(problem(), [0, 1, 2]), parts=parts))
    assert [row["seed"] for row in rows] == engine.seeds[:3]


def test_offline_attempts_and_stages_do_not_change_an_evaluation():
    settings = config(offline_attempts=2, stage1_steps=9)
    assert [row["sample"] for row in rows_of([0, 1, 2], settings=settings)] == [0, 1, 2]


def test_the_table_shows_the_change_with_its_paired_interval():
    read = [parsed(row) for row in rows_of([0, 1, 2])]
    summary = {"test": summarise({"p1": tuple(read)}, 3)}
    assert summary["test"]["turns"]["acc_t1"] == pytest.approx(2 / 3)
    results = {"num_samples": 3, "benchmarks": summary, "macro": macro_averages(summary)}
    table = evaluation_table(results)
    head = next(line for line in table if "first turn" in line)
    assert "wrong to right" in head
    row = table[table.index(head) + 2]
    assert [cell.strip() for cell in row.split("|")[1:5]] == ["test", "66.7", "66.7", "+0.0"]


def test_a_first_turn_without_a_grade_is_told_and_changes_nothing(monkeypatch):
    """Right, right, right at both turns, and the first grade of the last one fails."""
    graded = TurnEngine.grade

    async def grade(self, problem, responses):
        verdicts = await graded(self, problem, responses)
        if responses[0].text == "answer 0":
            verdicts[2] = Verdict(0.0, "timeout")
        return verdicts

    monkeypatch.setattr(TurnEngine, "grade", grade)
    monkeypatch.setitem(RIGHT, 0, [1, 1, 1])
    monkeypatch.setitem(RIGHT, 1, [1, 1, 1])
    rows = rows_of([0, 1, 2])
    assert [row["facts"] is None for row in rows] == [False, False, True]
    read = tuple(parsed(each) for each in rows)
    summary = {"test": summarise({"p1": read}, 3)}
    assert (summary["test"]["avg"], summary["test"]["turns"]["delta"]) == (1.0, 0.0)
    results = {"num_samples": 3, "benchmarks": summary, "macro": macro_averages(summary)}
    assert any(
        "of 3 conversations 1 are not compared" in line for line in evaluation_table(results)
    )


def test_only_a_method_with_turns_is_played_and_the_others_are_the_baseline():
    assert evaluated_method(config("score")) == "score"
    assert [evaluated_method(config(name)) for name in ("sage", "nonsense")] == ["grpo", "grpo"]
    assert played_turns(config("sage")) is None
    assert parts_of_turns(config("sage"), None, no_teacher) is None


def test_the_settings_of_the_turns_are_among_what_responses_depend_on():
    turns = played_turns(config(alpha=3.0))
    assert (turns["method"], turns["settings"]["alpha"]) == ("score", 3.0)
    assert turns["texts"]["revise"].startswith("Read your solution again")

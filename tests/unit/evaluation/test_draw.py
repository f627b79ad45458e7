"""The loop that draws, with a scripted engine: what is asked, in which order, what is written."""

import ast
import asyncio
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from recipe.hint.schema import Response
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError, DataError, HintError, TeacherSilentError
from recipe.study.evaluation import draw as module
from recipe.study.evaluation.draw import (
    Progress,
    check_settings_unchanged,
    draw_responses,
    evaluation_settings,
    graded_rows,
    missing_jobs,
    write_settings,
)
from recipe.study.responses import response_path, resume_responses
from recipe.verify.schema import Verdict


def problem(name, source="tiny/easy"):
    messages = ({"role": "system", "content": "be brief"}, {"role": "user", "content": name})
    return Problem(name, messages, name, f"solution of {name}", "7", data_source=source)


class Engine:
    """Answers with the seed it was given, and remembers what it was shown."""

    def __init__(self, n, fail_on=None, is_seeded=True):
        self.group_size = n
        self.is_seeded = is_seeded
        self.fail_on = fail_on
        self.shown = []
        self.requests = []

    def render(self, messages, **_):
        self.shown.append(tuple(messages))
        return list(range(len(messages[-1]["content"])))

    async def sample_each(self, prompts, seeds, rows):
        self.requests.append(rows)
        await asyncio.sleep(0)
        if self.fail_on and self.fail_on == self.shown[-1][-1]["content"]:
            raise RuntimeError("the replica is gone")
        [seed] = seeds
        return [[Response([1, 2], [0.0, 0.0], str(seed + k), k == 0) for k in rows]]

    async def grade(self, problem, responses_G):
        return [Verdict(1.0, "correct", each.text, "number", "m") for each in responses_G]


def evaluate(folder, problems, *, engine=None, done=None, concurrency=2):
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    engine = engine or Engine(3)
    counts = []
    drawing = draw_responses(
        missing_jobs(problems, engine.group_size, done or {}),
        partial(graded_rows, engine=engine, seed=1),
        folder=folder,
        concurrency=concurrency,
        progress=lambda _, n: counts.append(n),
    )
    asyncio.run(drawing)
    return engine, counts


def rows_of(folder, benchmark="tiny/easy"):
    return [json.loads(line) for line in response_path(folder, benchmark).read_text().splitlines()]


def test_every_problem_gets_k_responses_with_seeds_of_their_own(tmp_path):
    _, counts = evaluate(tmp_path, [problem("a"), problem("bb")])
    rows = rows_of(tmp_path)
    assert sorted((row["id"], row["sample"]) for row in rows) == [
        (name, sample) for name in ("a", "bb") for sample in (0, 1, 2)
    ]
    assert len({row["seed"] for row in rows}) == 6
    assert {(row["basis"], row["ignored"]) for row in rows} == {("number", "m")}
    assert sorted(counts) == [0, 0, 3, 3]


def test_the_model_is_shown_the_problems_own_conversation_and_nothing_of_the_solution(tmp_path):
    engine, _ = evaluate(tmp_path, [problem("a")])
    assert engine.shown == [problem("a").messages]
    assert "solution" not in json.dumps(engine.shown)


def test_no_method_and_no_source_of_hints_can_be_reached_from_the_loop_that_draws():
    tree = ast.parse(Path(module.__file__).read_text())
    imported = {
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    }
    assert imported & {"recipe.hint.prompt", "recipe.hint.methods", "recipe.hint.hints"} == set()


def test_a_line_has_no_seed_where_none_decided_what_was_sampled(tmp_path):
    evaluate(tmp_path, [problem("a")], engine=Engine(3, is_seeded=False))
    assert [row["seed"] for row in rows_of(tmp_path)] == [None] * 3


def test_a_response_left_over_is_drawn_alone_with_the_seed_it_would_have_had(tmp_path):
    evaluate(tmp_path / "whole", [problem("a")])
    whole = {row["sample"]: row["seed"] for row in rows_of(tmp_path / "whole")}
    done = {("tiny/easy", "a"): {0, 2}}
    engine, counts = evaluate(tmp_path / "rest", [problem("a")], done=done)
    assert [(row["sample"], row["seed"]) for row in rows_of(tmp_path / "rest")] == [(1, whole[1])]
    assert engine.requests == [range(1, 2)]
    assert counts == [0, 1]


def test_a_failure_ends_the_run_and_keeps_what_was_written(tmp_path):
    engine = Engine(2, fail_on="bb")
    with pytest.raises(BaseExceptionGroup) as caught:
        evaluate(tmp_path, [problem("a"), problem("bb")], engine=engine, concurrency=1)
    assert "the replica is gone" in str(caught.value.exceptions[0])
    assert len(rows_of(tmp_path)) == 2


def leaving_out(folder, names, silent, *, done=None, concurrency=1):
    """Draw a response of each; the teacher refuses all of ``silent`` at once."""
    (folder / "samples").mkdir(exist_ok=True)
    asked = []

    async def rows(job):
        asked.append(job.problem.id)
        if job.problem.id in silent:
            raise TeacherSilentError("guide")
        await asyncio.sleep(0.001)
        return await graded_rows(job, engine=Engine(1), seed=1)

    jobs = missing_jobs([problem(name) for name in names], 1, done or {})
    drawing = draw_responses(
        jobs, rows, folder=folder, concurrency=concurrency, progress=lambda *_: None
    )
    try:
        asyncio.run(drawing)
    except HintError as error:
        return asked, str(error)
    except ExceptionGroup as group:
        return asked, str(group.exceptions[0])
    return asked, ""


def test_a_problem_that_the_teacher_refuses_is_told_at_the_end_and_the_others_are_kept(tmp_path):
    asked, told = leaving_out(tmp_path, "abcdef", "bcde")
    assert asked == list("abcdef")  # one at a time, and the first was answered
    assert [row["id"] for row in rows_of(tmp_path)] == ["a", "f"]
    assert told.startswith("the teacher left turns of 4 of 6 problems unanswered: 'b', 'c', 'd' .")
    assert (
        "start the evaluation again to ask for these alone" in told and "results need all" in told
    )
    # 4 of 6 are missing; the endpoint answers now.
    asked, told = leaving_out(tmp_path, "abcdef", "", done=resume_responses(tmp_path))
    assert (asked, told) == (list("bcde"), "")
    assert sorted(row["id"] for row in rows_of(tmp_path)) == list("abcdef")


def test_a_teacher_that_answers_nobody_is_not_asked_about_every_problem(tmp_path):
    names = [f"p{number:02}" for number in range(50)]
    asked, told = leaving_out(tmp_path, names, names, concurrency=20)
    assert len(asked) < 50 and told.startswith("the teacher gave no answer")


def test_refusals_that_come_before_the_first_answer_stop_nothing(tmp_path):
    """Of 50 problems in 20 places the first 19 are refused at once, while the others take time."""
    names = [f"p{number:02}" for number in range(50)]
    asked, told = leaving_out(tmp_path, names, names[:19], concurrency=20)
    assert len(asked) == 50 and told.startswith("the teacher left turns of 19 of 50 problems")
    assert len(rows_of(tmp_path)) == 31


def test_a_line_that_a_kill_cut_is_taken_off_and_its_response_drawn_again(tmp_path):
    evaluate(tmp_path, [problem("a")])
    path = response_path(tmp_path, "tiny/easy")
    path.write_bytes(path.read_bytes()[:-20])
    done = resume_responses(tmp_path)
    assert done == {("tiny/easy", "a"): {0, 1}}
    evaluate(tmp_path, [problem("a")], done=done)
    assert sorted(row["sample"] for row in rows_of(tmp_path)) == [0, 1, 2]


def test_the_same_id_in_two_benchmarks_is_two_problems():
    done = {("tiny/easy", "a"): {0, 1, 2}}
    jobs = missing_jobs([problem("a"), problem("a", "tiny/hard")], 3, done)
    assert [(job.problem.data_source, job.missing) for job in jobs] == [("tiny/hard", [0, 1, 2])]


SETTINGS = {"model": "a", "num_samples": 4, "files": {"x.parquet": "12ab"}}


def test_an_evaluation_goes_on_only_with_the_settings_it_began_with(tmp_path):
    check_settings_unchanged(tmp_path, SETTINGS)  # nothing is there yet
    write_settings(tmp_path, SETTINGS)
    check_settings_unchanged(tmp_path, SETTINGS)
    with pytest.raises(ConfigError, match="num_samples=4, now it is 8; give another"):
        check_settings_unchanged(tmp_path, SETTINGS | {"num_samples": 8})
    with pytest.raises(ConfigError, match="files="):
        check_settings_unchanged(tmp_path, SETTINGS | {"files": {"x.parquet": "34cd"}})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": NaN}', "\x00"])
def test_a_damaged_file_of_an_evaluation_that_goes_on_is_named(tmp_path, text):
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(DataError, match=r"settings\.json .*; start a new evaluation"):
        check_settings_unchanged(tmp_path, SETTINGS)
    (tmp_path / "clock.json").write_text(text)
    with pytest.raises(DataError, match=r"clock\.json .*; start a new evaluation"):
        Progress(tmp_path, print, total=1, done=0)


@pytest.mark.parametrize(
    "done, after_s, left",
    [(4, 100.0, "3 min"), (128, 150.0, "2 min"), (252, 200.0, "3 s"), (256, 240.0, None)],
)
def test_the_first_of_many_responses_at_once_do_not_make_the_time_left_hours(
    tmp_path, monkeypatch, done, after_s, left
):
    now, said = 50.0, []
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    progress = Progress(tmp_path, said.append, total=300, done=44, at_once=256)
    progress("a", 0)
    now += after_s
    progress("a", done)
    assert said == [f"samples {done + 44}/300" + (f"  {left} left" if left else "")]


def drawing():
    """The settings of an evaluation."""
    return OmegaConf.create(
        {
            "hint": {"seed": 1, "seeded_sampling": True},
            "actor_rollout_ref": {
                "model": {"path": "base"},
                "rollout": {
                    "val_kwargs": {"n": 4, "temperature": 1.0, "top_p": 1.0, "top_k": -1},
                    "response_length": 8,
                    "dtype": "bfloat16",
                },
            },
        }
    )


@pytest.mark.parametrize(
    "name, value",
    [
        ("data.apply_chat_template_kwargs.enable_thinking", False),
        ("actor_rollout_ref.model.custom_chat_template", "{{ messages }}"),
        ("hint.verify.answer_format", "tags"),
        ("reward.custom_reward_function.path", "mine.py"),
        ("reward.custom_reward_function.reward_kwargs.strict", True),
        ("actor_rollout_ref.rollout.dtype", "float32"),
    ],
)
def test_what_prompts_and_grades_depend_on_may_not_change_within_an_evaluation(
    tmp_path, name, value
):
    config = drawing()
    before = evaluation_settings(config, [])
    write_settings(tmp_path, before)
    OmegaConf.update(config, name, value, force_add=True)
    with pytest.raises(ConfigError, match="holds responses drawn with"):
        check_settings_unchanged(tmp_path, evaluation_settings(config, []))
    # Responses of an earlier version do not tell.
    earlier = {key: before[key] for key in before if key not in ("template", "grading", "dtype")}
    write_settings(tmp_path, earlier)
    check_settings_unchanged(tmp_path, evaluation_settings(config, []))


def test_other_weights_behind_the_same_path_are_another_model(tmp_path):
    """A run was deleted and trained again; here one number of the pieces looked at differs."""
    config, model = drawing(), tmp_path / "model"
    model.mkdir()
    config.actor_rollout_ref.model.path = str(model)
    write_settings(tmp_path, evaluation_settings(config, []))  # of a checkpoint not merged yet
    weights = np.zeros(100_000, np.float32)
    (model / "model.safetensors").write_bytes(weights.tobytes())
    check_settings_unchanged(tmp_path, evaluation_settings(config, []))
    write_settings(tmp_path, evaluation_settings(config, []))
    check_settings_unchanged(tmp_path, evaluation_settings(config, []))
    weights[50_000] = 1.0
    (model / "model.safetensors").write_bytes(weights.tobytes())
    with pytest.raises(ConfigError, match="holds responses drawn with weights="):
        check_settings_unchanged(tmp_path, evaluation_settings(config, []))


def test_the_content_of_a_reward_function_is_a_part_of_the_settings(tmp_path):
    config, path = drawing(), tmp_path / "mine.py"
    OmegaConf.update(config, "reward.custom_reward_function.path", str(path), force_add=True)
    path.write_text("one")
    before = evaluation_settings(config, [])
    path.write_text("two")
    assert evaluation_settings(config, []) != before


def test_relative_files_of_one_name_are_those_files(tmp_path, monkeypatch):
    paths = [Path(folder) / "val.parquet" for folder in "ab"]
    monkeypatch.chdir(tmp_path)
    for path in paths:
        path.parent.mkdir()
        path.write_text(str(path))
    absolute = evaluation_settings(drawing(), [str(path.absolute()) for path in paths])
    assert evaluation_settings(drawing(), [str(path) for path in paths]) == absolute


def test_two_files_of_one_name_are_two_files(tmp_path):
    paths = [tmp_path / folder / "val.parquet" for folder in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(str(path))
    config = drawing()
    before = evaluation_settings(config, [str(path) for path in paths])
    paths[0].write_text("changed")
    assert evaluation_settings(config, [str(path) for path in paths]) != before
    # A name that only one file has stands for it, wherever the file lies.
    [name] = evaluation_settings(config, [str(paths[0])])["files"]
    assert name == "val.parquet"

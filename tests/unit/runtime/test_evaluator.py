"""The sample loop with a scripted engine: what is asked, in which order, and what is written."""

import ast
import asyncio
import json
from pathlib import Path

import pytest

from recipe.hint.rollout import Response
from recipe.hint.runtime import evaluator as module
from recipe.hint.runtime.evaluator import Engines, Evaluator, missing_jobs
from recipe.hint.runtime.sample_files import resume_samples, sample_path
from recipe.hint.schema import Problem, Verdict


def problem(name, source="tiny/easy"):
    messages = ({"role": "system", "content": "be brief"}, {"role": "user", "content": name})
    return Problem(name, messages, name, f"solution of {name}", "7", data_source=source)


class Engine:
    """Answers with the seed it was given, and remembers what it was shown."""

    def __init__(self, n, fail_on=None):
        self.n = n
        self.fail_on = fail_on
        self.shown = []
        self.seeds = []

    def render(self, messages):
        self.shown.append(tuple(messages))
        return list(range(len(messages[-1]["content"])))

    async def sample(self, prompt_ids, seed):
        self.seeds.append(seed)
        await asyncio.sleep(0)
        if self.fail_on and self.fail_on == self.shown[-1][-1]["content"]:
            raise RuntimeError("the replica is gone")
        return [Response([1, 2], [0.0, 0.0], str(seed + k), k == 0) for k in range(self.n)]

    async def grade(self, problem, responses_G):
        return [Verdict(1.0, "correct", each.text, "number", "m") for each in responses_G]


def evaluate(folder, problems, *, k=3, engines=None, done=None, in_flight=2):
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    engines = engines or Engines(Engine(k), Engine(1), k)
    counts = []
    worker = Evaluator(
        engines, folder, seed=1, in_flight=in_flight, progress=lambda _, n: counts.append(n)
    )
    asyncio.run(worker.run(missing_jobs(problems, k, done or {})))
    return engines, counts


def rows_of(folder, benchmark="tiny/easy"):
    return [json.loads(line) for line in sample_path(folder, benchmark).read_text().splitlines()]


def test_every_problem_gets_k_samples_with_seeds_of_their_own(tmp_path):
    _, counts = evaluate(tmp_path, [problem("a"), problem("bb")])
    rows = rows_of(tmp_path)
    assert sorted((row["id"], row["sample"]) for row in rows) == [
        (name, sample) for name in ("a", "bb") for sample in (0, 1, 2)
    ]
    assert len({row["seed"] for row in rows}) == 6
    assert {(row["basis"], row["ignored"]) for row in rows} == {("number", "m")}
    assert sorted(counts) == [0, 0, 3, 3]


def test_the_model_is_shown_the_problems_own_conversation_and_nothing_of_the_solution(tmp_path):
    engines, _ = evaluate(tmp_path, [problem("a")])
    assert engines.group.shown == [problem("a").messages]
    assert "solution" not in json.dumps(engines.group.shown)


def test_no_method_and_no_source_of_hints_can_be_reached_from_the_sample_loop():
    tree = ast.parse(Path(module.__file__).read_text())
    imported = {
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    }
    assert imported & {"recipe.hint.prompt", "recipe.hint.methods", "recipe.hint.hints"} == set()
    assert {name for name in imported if name.startswith("recipe.")} == {
        "recipe.hint.runtime.sample_files",
        "recipe.hint.schema",
        "recipe.hint.seeds",
    }


def test_a_sample_left_over_is_drawn_alone_with_the_seed_it_would_have_had(tmp_path):
    _, _ = evaluate(tmp_path / "whole", [problem("a")])
    whole = {row["sample"]: row["seed"] for row in rows_of(tmp_path / "whole")}
    done = {("tiny/easy", "a"): frozenset({0, 2})}
    engines, counts = evaluate(tmp_path / "rest", [problem("a")], done=done)
    assert [(row["sample"], row["seed"]) for row in rows_of(tmp_path / "rest")] == [(1, whole[1])]
    assert engines.group.seeds == []
    assert counts == [0, 1]


def test_a_failure_ends_the_run_and_keeps_what_was_written(tmp_path):
    engines = Engines(Engine(2, fail_on="bb"), Engine(1), 2)
    with pytest.raises(BaseExceptionGroup) as caught:
        evaluate(tmp_path, [problem("a"), problem("bb")], k=2, engines=engines, in_flight=1)
    assert "the replica is gone" in str(caught.value.exceptions[0])
    assert len(rows_of(tmp_path)) == 2


def test_a_line_that_a_kill_cut_is_taken_off_and_its_sample_drawn_again(tmp_path):
    evaluate(tmp_path, [problem("a")])
    path = sample_path(tmp_path, "tiny/easy")
    path.write_bytes(path.read_bytes()[:-20])
    done = resume_samples(tmp_path)
    assert done == {("tiny/easy", "a"): frozenset({0, 1})}
    evaluate(tmp_path, [problem("a")], done=done)
    assert sorted(row["sample"] for row in rows_of(tmp_path)) == [0, 1, 2]


def test_the_same_id_in_two_benchmarks_is_two_problems(tmp_path):
    done = {("tiny/easy", "a"): frozenset({0, 1, 2})}
    jobs = missing_jobs([problem("a"), problem("a", "tiny/hard")], 3, done)
    assert [(job.benchmark, job.samples) for job in jobs] == [("tiny/hard", (0, 1, 2))]

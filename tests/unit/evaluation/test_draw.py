"""What is drawn, in which order, and what is on disk when an evaluation stops and goes on."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import ray
from fakes import OneByOne
from fakes import problem as a_problem
from omegaconf import OmegaConf
from ray.exceptions import ActorDiedError
from talks import TurnEngine

from recipe.hint.adapter.hint_sources import build_parts
from recipe.hint.methods import Method
from recipe.hint.prompt import Texts
from recipe.hint.rollout import RolloutParts
from recipe.hint.schema import Response
from recipe.hint.settings import HintSettings, method_defaults, settings_of
from recipe.problems.columns import read_problems
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError
from recipe.run.watchdog import Watchdog
from recipe.study import evaluate
from recipe.study.evaluate import (
    Job,
    check_settings_unchanged,
    draw_responses,
    evaluation_settings,
    graded_rows,
    missing_jobs,
)
from recipe.study.results import recomputed, response_path
from recipe.verify.schema import Verdict

FILE = Path(__file__).resolve().parents[3] / "data/tiny/val_easy.parquet"


def problem(name, source="tiny/easy"):
    messages = ({"role": "system", "content": "be brief"}, {"role": "user", "content": name})
    return Problem(name, messages, name, f"solution of {name}", "7", data_source=source)


class Engine(OneByOne):
    """Answers with the seed it was given, odd ones rightly; is gone after ``limit`` requests."""

    def __init__(self, n=4, limit=10**6):
        self.group_size, self.limit = n, limit
        self.shown = []

    def render(self, messages, **_):
        self.shown.append(tuple(messages))
        return [1, 2, 3]

    async def sample(self, prompt_ids, seed, rows, sampling):
        self.limit -= 1
        if self.limit < 0:
            raise RuntimeError("the replica is gone")
        await asyncio.sleep(0)
        return [Response([1, 2], [0.0, 0.0], str(seed + k), k == 0) for k in rows]

    async def grade(self, problem, responses_G):
        is_odd_G = [int(each.text) % 2 for each in responses_G]
        return [Verdict(float(odd), "correct" if odd else "wrong") for odd in is_odd_G]


def draw(folder, problems, *, engine=None, concurrency=1, **settings):
    """Draw what is missing; return what the engine was shown, by the problems' texts."""
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    engine = engine or Engine(3)
    parts = RolloutParts(Method(), None, engine, HintSettings(**settings), Texts())
    jobs = missing_jobs(problems, engine.group_size, folder)
    how = {"folder": folder, "concurrency": concurrency, "say": lambda _: None}
    asyncio.run(draw_responses(jobs, parts, **how))
    return engine.shown


def rows_of(folder, benchmark="tiny/easy"):
    return [json.loads(line) for line in response_path(folder, benchmark).read_text().splitlines()]


def test_every_problem_gets_k_responses_to_its_own_conversation_with_seeds_of_their_own(tmp_path):
    shown = draw(tmp_path, [problem("a"), problem("bb")])
    rows = rows_of(tmp_path)
    assert sorted((row["id"], row["sample"]) for row in rows) == [
        (name, sample) for name in ("a", "bb") for sample in (0, 1, 2)
    ]
    assert len({row["seed"] for row in rows}) == 6
    assert [row["response"] for row in rows] == [str(row["seed"]) for row in rows]
    assert all(row["score"] == row["seed"] % 2 and "facts" not in row for row in rows)
    assert shown == [problem("a").messages, problem("bb").messages]  # no solution, no hint
    draw(tmp_path, [problem("a", "other")])  # an id of two benchmarks
    draw(tmp_path, [problem("c", "third")], seeded_sampling=False)
    assert {row["seed"] for row in rows_of(tmp_path, "other")}.isdisjoint(r["seed"] for r in rows)
    assert [row["seed"] for row in rows_of(tmp_path, "third")] == [None] * 3


def test_a_line_that_a_kill_cut_is_drawn_again_with_the_seed_it_would_have_had(tmp_path):
    draw(tmp_path, [problem("a")])
    whole = {row["sample"]: row["seed"] for row in rows_of(tmp_path)}
    path = response_path(tmp_path, "tiny/easy")
    path.write_bytes(path.read_bytes()[:-20])
    assert missing_jobs([problem("a")], 3, tmp_path) == [Job(problem("a"), [2])]
    draw(tmp_path, [problem("a")])
    assert {row["sample"]: row["seed"] for row in rows_of(tmp_path)} == whole


# -- what the responses depend on


def drawing(method="grpo", **score):
    """The settings of an evaluation."""
    hint = {**method_defaults()["hint"], "seed": 5, "seeded_sampling": True}
    hint["score"] = {**hint["score"], **score}
    sampling = {"n": 4, "temperature": 1.0, "top_p": 1.0, "top_k": -1}
    rollout = {"val_kwargs": sampling, "response_length": 8, "dtype": "bfloat16"}
    model = {"model": {"path": "base"}, "rollout": rollout}
    trainer = {"method": method}
    return OmegaConf.create({"trainer": trainer, "hint": hint, "actor_rollout_ref": model})


def keep(folder, config):
    (folder / "settings.json").write_text(json.dumps(evaluation_settings(config)))


@pytest.mark.parametrize(
    "name, value",
    [
        ("actor_rollout_ref.rollout.val_kwargs.n", 8),
        ("data.apply_chat_template_kwargs.enable_thinking", False),
        ("hint.seeded_sampling", False),
        ("reward.custom_reward_function.path", "mine.py"),
    ],
)
def test_an_evaluation_goes_on_only_with_the_settings_it_began_with(tmp_path, name, value):
    config = drawing()
    check_settings_unchanged(tmp_path, evaluation_settings(config))  # nothing is there yet
    keep(tmp_path, config)
    check_settings_unchanged(tmp_path, evaluation_settings(config))
    OmegaConf.update(config, name, value, force_add=True)
    with pytest.raises(ConfigError, match="holds responses drawn with .*; give another trainer"):
        check_settings_unchanged(tmp_path, evaluation_settings(config))


def test_other_weights_behind_the_same_path_are_another_model(tmp_path):
    """A run was deleted and trained again."""
    config, model = drawing(), tmp_path / "model"
    model.mkdir()
    config.actor_rollout_ref.model.path = str(model)
    keep(tmp_path, config)  # of a checkpoint not merged yet
    weights = np.zeros(100_000, np.float32)
    (model / "model.safetensors").write_bytes(weights.tobytes())
    check_settings_unchanged(tmp_path, evaluation_settings(config))
    keep(tmp_path, config)
    weights[50_000:51_000] = 1.0
    (model / "model.safetensors").write_bytes(weights.tobytes())
    with pytest.raises(ConfigError, match="holds responses drawn with weights="):
        check_settings_unchanged(tmp_path, evaluation_settings(config))


# -- methods with several turns

RIGHT = {0: [0, 1, 1], 1: [1, 1, 0]}


def played(missing, engine=None, **score):
    engine = engine or TurnEngine(RIGHT, group_size=3)
    config = drawing("score", **score)
    parts = build_parts(config, settings_of(config), engine, validates=True)
    rows = asyncio.run(graded_rows(Job(a_problem(), missing), parts))
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def test_a_row_of_turns_is_the_last_one_with_its_conversation_and_what_it_changed():
    engine = TurnEngine(RIGHT, group_size=3)
    rows = played([0, 1, 2], engine)
    assert [(row["sample"], row["score"]) for row in rows] == [(0, 1.0), (1, 1.0), (2, 0.0)]
    assert [row["facts"]["delta"] for row in rows] == [1.0, 0.0, -1.0]
    roles = [turn["role"] for turn in rows[0]["conversation"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert [row["seed"] for row in rows] == engine.seeds[:3]
    # A resumed one plays the same and keeps what is missing; stages of training change nothing.
    assert played([1]) == [rows[1]]
    assert played([0, 1, 2], stage1_steps=9) == rows


def test_the_settings_of_turns_that_are_played_are_kept():
    assert "turns" not in evaluation_settings(drawing())
    turns = evaluation_settings(drawing("score", alpha=3.0))["turns"]
    assert (turns["method"], turns["settings"]["alpha"]) == ("score", 3.0)
    assert turns["texts"]["revise"].startswith("Read your solution again")


# -- the driver


class Server:
    """An actor of Ray that answers, or one that died."""

    def __init__(self, is_alive=True):
        self.is_alive = is_alive
        self.__ray_ready__ = self

    def remote(self):
        return self


def answer_of(asked):
    if isinstance(asked, Server) and not asked.is_alive:
        raise ActorDiedError()
    return asked


def run(tmp_path, monkeypatch, engine=None, servers=()):
    config = OmegaConf.merge(
        drawing(),
        {
            "trainer": {"nnodes": 1, "n_gpus_per_node": 1},
            "hint": {"run_dir": str(tmp_path), "watchdog": {"start_s": 60.0, "answer_s": 60.0}},
            "data": {"val_files": [str(FILE)]},
            # Two problems in flight: 2 x 4 sequences of one replica, 4 responses each.
            "actor_rollout_ref": {
                "rollout": {
                    "max_num_seqs": 4,
                    "tensor_model_parallel_size": 1,
                    "pipeline_model_parallel_size": 1,
                }
            },
        },
    )
    replica = SimpleNamespace(servers=servers)
    manager = SimpleNamespace(get_replicas=lambda: [replica], global_load_balancer=Server())
    builder = SimpleNamespace(build=lambda _: engine or Engine())
    monkeypatch.setattr(evaluate, "start_replicas", lambda _: (manager, None))
    monkeypatch.setattr(evaluate, "EngineBuilder", lambda *_: builder)
    monkeypatch.setattr(ray, "wait", lambda refs, **_: (refs, []))
    monkeypatch.setattr(ray, "get", answer_of)
    return evaluate.EvaluationRunner().run(config)


def test_an_evaluation_that_stopped_goes_on_and_ends_with_its_results(tmp_path, monkeypatch):
    total = 4 * len(read_problems(FILE))
    with pytest.raises(BaseExceptionGroup):
        run(tmp_path, monkeypatch, Engine(limit=30))
    assert "the replica is gone" in (tmp_path / "logs/fatal.json").read_text()
    # What was on disk before the failure is not drawn again.
    assert run(tmp_path, monkeypatch) == {"drawn": total - 120}
    numbers = recomputed(tmp_path / "evaluation")["benchmarks"]["tiny/easy"]
    assert (numbers["samples"], numbers["avg"]) == (total, 0.5)  # of four seeds two are odd
    # A finished one starts no engine.
    before = (tmp_path / "evaluation/results.json").read_bytes()
    assert run(tmp_path, monkeypatch, Engine(limit=0)) == {"drawn": 0}
    assert (tmp_path / "evaluation/results.json").read_bytes() == before


def test_an_evaluation_does_not_wait_for_a_server_that_died(tmp_path, monkeypatch):
    faults = []

    class Waiting(Engine):
        async def sample(self, *_):
            while not faults:  # for ever, if nobody looks after the server
                await asyncio.sleep(0.01)
            raise RuntimeError("ended")

    monkeypatch.setattr(Watchdog, "end", lambda self, reason: faults.append(reason))
    with pytest.raises(BaseExceptionGroup):
        run(tmp_path, monkeypatch, Waiting(), [Server(), Server(is_alive=False)])
    assert faults[0].startswith("vLLM server 1 died")

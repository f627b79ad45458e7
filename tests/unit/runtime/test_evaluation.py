"""The driver of an evaluation with a scripted engine: draw, stop, go on, write the results."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import ray
from omegaconf import OmegaConf
from ray.exceptions import ActorDiedError

from recipe.hint.schema import Response
from recipe.problems.columns import read_problems
from recipe.run.run_folder import RunFolder
from recipe.run.watchdog import Watchdog
from recipe.study import evaluation_run as evaluation
from recipe.study.results import recompute
from recipe.verify.schema import Verdict

FILE = Path(__file__).resolve().parents[3] / "data/tiny/val_easy.parquet"


class Engine:
    """Finds every second response right; is gone after ``limit`` requests."""

    group_size = 4
    is_seeded = True

    def __init__(self, limit):
        self.limit = limit

    def render(self, messages, **_):
        return [1, 2, 3]

    async def sample_each(self, prompts, seeds, rows):
        self.limit -= 1
        if self.limit < 0:
            raise RuntimeError("the replica is gone")
        return [[Response([1], [0.0], f"{seed + k}", False) for k in rows] for seed in seeds]

    async def grade(self, problem, responses_G):
        is_odd_G = [int(each.text) % 2 for each in responses_G]
        return [Verdict(1.0, "correct") if odd else Verdict(0.0, "wrong") for odd in is_odd_G]


class Server:
    """An actor of Ray that answers, or one that died."""

    def __init__(self, is_alive=True):
        self.is_alive = is_alive
        self.__ray_ready__ = self

    def remote(self):
        if not self.is_alive:
            raise ActorDiedError()
        return "an answer"


def manager(*servers):
    replica = SimpleNamespace(servers=servers)
    return SimpleNamespace(get_replicas=lambda: [replica], global_load_balancer=Server())


def run(tmp_path, monkeypatch, limit=10**6, engine=None, servers=(), progress_s=60.0):
    sampling = {"n": 4, "temperature": 1.0, "top_p": 1.0, "top_k": -1}
    config = OmegaConf.create(
        {
            "trainer": {"method": "grpo", "nnodes": 1, "n_gpus_per_node": 1},
            "hint": {
                "run_dir": str(tmp_path),
                "seed": 1,
                "seeded_sampling": True,
                "watchdog": {"start_s": 60.0, "answer_s": 60.0, "progress_s": progress_s},
            },
            "data": {"val_files": [str(FILE)]},
            "actor_rollout_ref": {
                "model": {"path": "base"},
                # Two problems in flight: 2 x 4 sequences of one replica, 4 responses each.
                "rollout": {
                    **{"val_kwargs": sampling, "response_length": 8, "max_num_seqs": 4},
                    **{"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1},
                },
            },
        }
    )
    builder = SimpleNamespace(build=lambda _: engine or Engine(limit))
    started = builder, None, manager(*servers)
    monkeypatch.setattr(evaluation, "start_replicas", lambda _: started)
    monkeypatch.setattr(evaluation, "describe_machine", lambda: {"machine": {"driver": "this"}})
    monkeypatch.setattr(ray, "wait", lambda refs, timeout: (refs, []))
    monkeypatch.setattr(ray, "get", lambda answer: answer)
    return evaluation.EvaluationRunner().run(config)


def test_an_evaluation_that_stopped_goes_on_and_ends_with_its_results(tmp_path, monkeypatch):
    num_problems = len(read_problems(FILE))
    with pytest.raises(BaseExceptionGroup):
        run(tmp_path, monkeypatch, limit=30)
    assert "the replica is gone" in (tmp_path / "logs/fatal.json").read_text()
    # What was on disk before the failure is not drawn again.
    assert run(tmp_path, monkeypatch, limit=10**6) == {"drawn": 4 * (num_problems - 30)}
    results, differences = recompute(tmp_path / "evaluation")
    assert differences == []
    assert results["benchmarks"]["tiny/easy"]["samples"] == 4 * num_problems
    # Seeds of four responses in a row: two are odd.
    assert results["benchmarks"]["tiny/easy"]["avg"] == 0.5
    assert json.loads((tmp_path / "evaluation/results.json").read_text()) == results
    said = RunFolder(tmp_path).console.read_text().splitlines()
    assert f"120 of {4 * num_problems} samples are on disk" in said
    assert said[-1] == f"samples {4 * num_problems}/{4 * num_problems}"


def test_a_finished_evaluation_starts_no_engine(tmp_path, monkeypatch):
    run(tmp_path, monkeypatch, limit=10**6)
    before = (tmp_path / "evaluation/results.json").read_bytes()
    assert "this" in (tmp_path / "evaluation/machine.json").read_text()
    assert run(tmp_path, monkeypatch, limit=0) == {"drawn": 0}
    assert (tmp_path / "evaluation/results.json").read_bytes() == before


def test_an_evaluation_does_not_wait_for_a_server_that_died(tmp_path, monkeypatch):
    faults = []

    class Waiting(Engine):
        async def sample_each(self, prompts, seeds, rows):
            while not faults:  # for ever, if nobody looks after the server
                await asyncio.sleep(0.01)
            raise RuntimeError("ended")

    monkeypatch.setattr(Watchdog, "end", lambda self, reason: faults.append(reason))
    with pytest.raises(BaseExceptionGroup):
        run(tmp_path, monkeypatch, engine=Waiting(0), servers=[Server(), Server(is_alive=False)])
    assert faults[0].startswith("vLLM server 1 died")


def test_an_evaluation_in_which_no_answer_comes_any_more_ends_and_names_who_was_asked(
    tmp_path, monkeypatch
):
    """Each of three problems takes half of the limit; the verifier keeps the fourth and fifth."""
    faults = []

    class Silent(Engine):
        async def sample_each(self, prompts, seeds, rows):
            await asyncio.sleep(0.5)
            return await super().sample_each(prompts, seeds, rows)

        async def grade(self, problem, responses_G):
            if self.limit > 10**6 - 4:
                return await super().grade(problem, responses_G)
            for _ in range(2000):
                await asyncio.sleep(0.01 if not faults else 0)
            raise RuntimeError("ended")

    monkeypatch.setattr(Watchdog, "end", lambda self, reason: faults.append(reason))
    with pytest.raises(BaseExceptionGroup):
        run(tmp_path, monkeypatch, engine=Silent(10**6), progress_s=1.0)
    assert faults[0] == (
        "no response or verdict came within hint.watchdog.progress_s=1 s; no answer of the "
        "verifier (2 requests)"
    )

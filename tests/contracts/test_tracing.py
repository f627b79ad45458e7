"""verl's rollout tracing, through which adapter/tracing.py shows what a prompt rollout does.

verl's own functions run; the backend, which is none of the locked packages, keeps what it is told.
"""

import asyncio
import contextlib
import sys
from array import array
from contextvars import ContextVar
from types import ModuleType, SimpleNamespace

import pytest
from omegaconf import OmegaConf
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync
from verl.utils.rollout_trace import RolloutTraceConfig

from recipe.hint.adapter import trainer as trainer_module
from recipe.hint.adapter.tracing import TracedEngine, Traces, traced
from recipe.hint.adapter.trainer import TRAINERS
from recipe.hint.hints.base import WrittenText
from recipe.hint.schema import Response
from recipe.hint.settings import WatchdogSettings
from recipe.problems.schema import Problem
from recipe.run.run_folder import RunFolder
from recipe.run.watchdog import Watchdog
from recipe.verify.schema import Verdict

PROBLEM = Problem("7", [{"role": "user", "content": "2+2?"}], "2+2?", "", "4")


class Engine:
    group_size = 2

    def render(self, messages):
        return array("q", [1, 2])

    async def sample_each(self, prompts, seeds, rows):
        if 13 in seeds:
            raise RuntimeError("no server")
        return [[Response([5], [-0.5], "\\boxed{4}", False)] * len(rows) for _ in prompts]

    async def write(self, messages, seed):
        return WrittenText("a hint", 2)

    async def grade(self, problem, responses_G):
        return [Verdict(1.0, "correct")] * len(responses_G)


@pytest.fixture
def told(monkeypatch):
    """What a backend is told; set up as verl's worker sets it up."""
    entries = []
    backend = ModuleType("trackio")
    backend.context_vars = SimpleNamespace(current_run=ContextVar("run", default=None))
    backend.init = lambda **more: None
    backend.Trace = lambda messages, metadata: metadata
    backend.log = lambda values, step: entries.extend((step, each) for each in values.values())
    monkeypatch.setitem(sys.modules, "trackio", backend)
    RolloutTraceConfig.reset()  # an earlier test's worker may have set it up
    yield (
        lambda limit=None: (
            RolloutTraceConfig.init("p", "e", "trackio", max_samples_per_step_per_worker=limit)
            or entries
        )
    )
    RolloutTraceConfig.reset()


async def rollout(engine, traces, step, problem_id="7", seed=1):
    with traces.prompt(problem_id, step, is_validation=False):
        prompts = [engine.render(PROBLEM.messages)]
        [responses] = await engine.sample_each(prompts, [seed], range(engine.group_size))
        await engine.write(PROBLEM.messages, seed)
        return await engine.grade(PROBLEM, responses)


def test_without_a_backend_the_engine_is_left_alone():
    engine = Engine()
    assert traced(engine) is engine


def test_requests_and_verdicts_of_a_prompt_are_traced_under_its_problem_and_step(told):
    entries = told()
    engine = traced(Engine())
    assert isinstance(engine, TracedEngine)
    assert engine.group_size == 2
    verdicts = asyncio.run(rollout(engine, Traces(), step=3))
    assert [each.score for each in verdicts] == [1.0, 1.0]
    assert [(step, each["op"].split(".")[-1]) for step, each in entries] == [
        (3, "sample_each"),
        (3, "write"),
        (3, "grade"),
    ]
    assert {each["sample_index"] for _, each in entries} == {"7"}
    sampled = entries[0][1]
    assert sampled["inputs"]["prompts"] == [[1, 2]]
    assert "boxed{4}" in str(sampled["output"])


def test_no_more_prompts_are_traced_in_a_step_than_asked_for(told):
    entries = told(limit=2)
    engine, traces = traced(Engine()), Traces()

    async def steps():
        for step in (1, 2):
            names = [f"{step}-{number}" for number in range(5)]
            await asyncio.gather(*(rollout(engine, traces, step, name) for name in names))

    asyncio.run(steps())
    assert {each["sample_index"] for _, each in entries} == {"1-0", "1-1", "2-0", "2-1"}


def test_a_request_that_fails_is_traced_and_still_raises(told):
    entries = told()
    with pytest.raises(RuntimeError, match="no server"):
        asyncio.run(rollout(traced(Engine()), Traces(), step=1, seed=13))
    assert [(each["status"], each["exception_type"]) for _, each in entries] == [
        ("error", "RuntimeError")
    ]


# -- backends of metrics


def test_a_backend_that_does_not_open_answer_or_close_is_given_up_at_a_limit(monkeypatch, tmp_path):
    """A web service may keep verl waiting in its constructor, at a step or at the end."""
    seen = {}

    def limits(call):
        seen[call] = [each.label for each in trainer.watchdog._stack]

    def fit(self, manager):
        limits("open")
        self.logger = SimpleNamespace(
            log=lambda **_: limits("log"), finish=lambda **_: limits("finish")
        )
        limits("train")
        self.logger.log({}, step=1)
        self.logger.finish()

    monkeypatch.setattr(PPOTrainerSync, "fit", fit)
    monkeypatch.setattr(trainer_module, "queue_actors", lambda _: {})
    trainer = TRAINERS["sync"].__new__(TRAINERS["sync"])
    trainer._opening_limit = contextlib.ExitStack()
    trainer.hint = SimpleNamespace(watchdog=WatchdogSettings(save_s=7.0))
    trainer.folder, trainer.watchdog = RunFolder(tmp_path), Watchdog(tmp_path)
    trainer.folder.create()
    trainer.config = OmegaConf.create({"transfer_queue": {}})
    trainer.replay_buffer, trainer.total_training_steps = SimpleNamespace(), 1
    trainer.actor_rollout_wg = SimpleNamespace(workers=[])
    trainer.fit(SimpleNamespace(agent_loop_workers=[]))
    trainer.watchdog.stop()
    late = ["a backend of trainer.logger did not answer within hint.watchdog.save_s=7 s"]
    assert seen == {"open": late, "train": [], "log": late, "finish": late}

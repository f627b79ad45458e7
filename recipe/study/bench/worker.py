"""The agent-loop worker of a benchmark: each prompt says which arm it belongs to."""

from __future__ import annotations

import time
from typing import Any

import ray
from omegaconf import OmegaConf
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ

from recipe.hint.adapter.engine import VllmEngine
from recipe.hint.adapter.hint_sources import guarded_source
from recipe.hint.adapter.worker import HintWorker
from recipe.hint.record import Outcome
from recipe.hint.rollout import RolloutParts
from recipe.hint.settings import build_method
from recipe.problems.schema import Problem
from recipe.study.bench.settings import bench_of


class BenchWorker(HintWorker):
    """The project's worker, with its method chosen by the prompt.

    The parents are named where ``super()`` would stand: Ray ships this class by value.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        HintWorker.__init__(self, *args, **kwargs)
        self._arms = {arm: self._arm(arm) for arm in bench_of(self.config).arms}

    async def cpu_seconds(self) -> float:
        """Return the processor time of this process since it started."""
        return time.process_time()

    async def roll_out(
        self, parts: RolloutParts, problem: Problem, prompt: dict, step: int
    ) -> Outcome:
        """Run the rollout of the prompt's arm."""
        if parts is self._validation:
            return await HintWorker.roll_out(self, parts, problem, prompt, step)
        arm = self._arms[prompt["bench_arm"]]
        return await HintWorker.roll_out(self, arm, problem, prompt, step)

    async def _run_prompt(
        self, prompt: dict, sampling_params: dict, trajectory: dict, trace: bool = False
    ) -> None:
        # The round is the same for all arms, and with it every seed.
        trajectory = {**trajectory, "step": prompt["bench_round"]}
        await HintWorker._run_prompt(self, prompt, sampling_params, trajectory, trace)

    def _arm(self, name: str) -> RolloutParts:
        trainer: Any = OmegaConf.to_container(self.config.trainer, resolve=True)
        method = build_method({**trainer, "method": name}, self._settings)
        engine = self._training.engine
        assert isinstance(engine, VllmEngine)
        source = guarded_source(
            self._settings,
            self._training.texts,
            method,
            grader=engine.grader,
            tokenizer=self.tokenizer,
        )
        return RolloutParts(method, source, engine, self._settings, self._training.texts)


class BenchManager(AgentLoopManagerTQ):
    """verl's manager, with :class:`BenchWorker` for its workers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(BenchWorker)

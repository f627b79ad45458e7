"""The real trainer and worker in a benchmark: every step belongs to one method."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import ray
from omegaconf import DictConfig, OmegaConf
from verl.trainer.ppo.v1 import PPOTrainerSync
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ
from verl.utils.dataset.rl_dataset import collate_fn

from recipe.hint import hint_trainer
from recipe.hint.adapter.engine import VllmEngine
from recipe.hint.adapter.hint_sources import guarded_source
from recipe.hint.adapter.worker import HintWorker
from recipe.hint.hint_trainer import HintMixin
from recipe.hint.record import Outcome
from recipe.hint.reward_tracker import RewardTracker
from recipe.hint.rollout import RolloutParts
from recipe.hint.settings import build_method
from recipe.problems.schema import Problem
from recipe.run.task_runner import HintTaskRunner
from recipe.study.bench import bench_of


class BenchTrainerSync(HintMixin, PPOTrainerSync):
    """The project's trainer, with a round's problems for each method, and a tracker of its own."""

    def _init_dataloader(self) -> None:
        super()._init_dataloader()
        self._slots = bench_of(self.config).slots()
        self._trackers = {arm: RewardTracker() for arm, _ in self._slots}
        self.train_dataloader_it = self._batches()

    def _batches(self) -> Iterator[dict[str, Any]]:
        size, problems = self.config.data.train_batch_size, cast("Any", self.train_dataset)
        order = random.Random(self.hint.seed).sample(range(len(problems)), len(problems))
        for arm, number in self._slots:
            rows = [order[each % len(order)] for each in range((number - 1) * size, number * size)]
            columns = collate_fn([problems[row] for row in rows])
            columns["bench_arm"] = np.array([arm] * size, dtype=object)
            columns["bench_round"] = np.array([number] * size, dtype=object)
            yield columns

    def on_step_begin(self) -> None:
        """Take the tracker of the step's method."""
        self.tracker = self._trackers[self._slots[self.global_steps - 1][0]]
        super().on_step_begin()


class BenchRunner(HintTaskRunner):
    """The project's task runner with the benchmark's trainer."""

    def run(self, config: DictConfig) -> dict[str, Any]:
        """Run all rounds; what they cost is in the run's folder."""
        hint_trainer.TRAINERS["sync"] = BenchTrainerSync
        return super().run(config)


class BenchWorker(HintWorker):
    """The project's worker, with its method chosen by the prompt.

    The parents are named where ``super()`` would stand: Ray ships this class by value.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        HintWorker.__init__(self, *args, **kwargs)
        self._arms = {arm: self._arm(arm) for arm in bench_of(self.config).arms}

    async def roll_out(
        self, parts: RolloutParts, problem: Problem, prompt: dict, step: int
    ) -> Outcome:
        """Run the rollout of the prompt's method."""
        return await HintWorker.roll_out(
            self, self._arms[prompt["bench_arm"]], problem, prompt, step
        )

    async def _run_prompt(
        self, prompt: dict, sampling_params: dict, trajectory: dict, trace: bool = False
    ) -> None:
        # The round is the same for all methods, and with it every seed.
        trajectory = {**trajectory, "step": prompt["bench_round"]}
        await HintWorker._run_prompt(self, prompt, sampling_params, trajectory, trace)

    def _arm(self, name: str) -> RolloutParts:
        settings: Any = OmegaConf.to_container(self.config.trainer, resolve=True)
        method = build_method({**settings, "method": name}, self._settings)
        engine, texts = self._training.engine, self._training.texts
        assert isinstance(engine, VllmEngine)
        source = guarded_source(self._settings, texts, method, grader=engine.grader)
        return RolloutParts(method, source, engine, self._settings, texts)


class BenchManager(AgentLoopManagerTQ):
    """verl's manager, with :class:`BenchWorker` for its workers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(BenchWorker)

"""The real trainer and worker in a benchmark: every step belongs to one method."""

from __future__ import annotations

import json
import random
import time
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import ray
from omegaconf import DictConfig, OmegaConf
from verl.trainer.ppo.v1 import PPOTrainerSync
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.rl_dataset import collate_fn

from recipe.hint.adapter.engine import VllmEngine
from recipe.hint.adapter.hint_sources import guarded_source
from recipe.hint.adapter.trainer import HintMixin
from recipe.hint.adapter.worker import HintWorker
from recipe.hint.record import Outcome, PromptRecord
from recipe.hint.reward_tracker import RewardTracker
from recipe.hint.rollout import RolloutParts
from recipe.hint.settings import HintSettings, build_method
from recipe.problems.schema import Problem
from recipe.run.task_runner import HintTaskRunner
from recipe.study.bench import ROWS_FILE, BenchSettings, bench_of

# What a type checker sees as the bases of the two mixins: the classes after them in the method
# resolution order of `BenchTrainerSync`.
_Trainer = PPOTrainerSync if TYPE_CHECKING else object


class _Chosen(_Trainer):
    """Below the project's mixin: the round's batch in place of the data loader's next one."""

    hint: HintSettings
    train_dataset: Any
    bench: BenchSettings

    def _fetch_one_gen_batch(self) -> Any:
        arm, number = self.bench.slots()[self.global_steps - 1]
        size = self.config.data.train_batch_size
        order = list(range(len(self.train_dataset)))
        random.Random(self.hint.seed).shuffle(order)
        rows = [order[each % len(order)] for each in range((number - 1) * size, number * size)]
        columns = collate_fn([self.train_dataset[row] for row in rows])
        columns["uid"] = np.array([str(uuid.uuid4()) for _ in rows], dtype=object)
        batch = tu.get_tensordict(columns)
        tu.assign_non_tensor_stack(batch, "bench_arm", [arm] * size)
        tu.assign_non_tensor_stack(batch, "bench_round", [number] * size)
        return batch


if TYPE_CHECKING:

    class _Below(HintMixin, _Chosen): ...

else:
    _Below = object


class _Timed(_Below):
    """Above the project's mixin: a clock around its phases, and a tracker for each method."""

    def __init__(self, config: DictConfig) -> None:
        self.bench = bench_of(config)
        self.trackers = {arm: RewardTracker() for arm in self.bench.arms}
        super().__init__(config)

    def on_step_begin(self) -> None:
        self.tracker = self.trackers[self.bench.slots()[self.global_steps - 1][0]]
        super().on_step_begin()

    def prepare_step(self) -> dict:
        self._began = time.perf_counter()
        return super().prepare_step()

    def on_sample_end(self) -> None:
        self._rollout_s = time.perf_counter() - self._began
        super().on_sample_end()

    def _records_of(self, batch: Any) -> list[PromptRecord]:
        self._records = super()._records_of(batch)
        return self._records

    def _compute_metrics(
        self, batch: Any, metrics: dict, timing_raw: dict, global_steps: int, epoch: int
    ) -> None:
        super()._compute_metrics(batch, metrics, timing_raw, global_steps, epoch)
        arm, number = self.bench.slots()[self.global_steps - 1]
        step_s, update_s = timing_raw["step"], timing_raw.get("update_actor", 0.0)
        at_zero = [record for record in self._records if record.levels[0] == 0]
        sampled = sum(each.tokens for record in self._records for each in record.rounds)
        accepted = sum(record.trained_tokens for record in self._records)
        row = {
            "arm": arm,
            "round": number,
            "is_counted": number > self.bench.warmup,
            "step_s": step_s,
            "rollout_s": self._rollout_s,
            "update_s": update_s,
            "other_s": step_s - self._rollout_s - update_s,
            "level0": len(at_zero),
            "unresolved": sum(not any(each.rounds[0].accuracies) for each in at_zero),
            "accepted_tokens": accepted,
            "discarded_tokens": sampled - accepted,
            "hint_tokens": sum(record.hint_tokens for record in self._records),
        }
        with open(self.folder.root / ROWS_FILE, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


class BenchTrainerSync(_Timed, HintMixin, _Chosen, PPOTrainerSync):
    """The project's trainer, timed."""


class BenchRunner(HintTaskRunner):
    """The project's task runner with the timed trainer."""

    def run(self, config: DictConfig) -> dict[str, Any]:
        """Run all rounds; what they cost is in the run's folder."""
        from recipe.hint.adapter import trainer

        trainer.TRAINERS["sync"] = BenchTrainerSync
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
        arm = self._arms[prompt["bench_arm"]]
        return await HintWorker.roll_out(self, arm, problem, prompt, step)

    async def _run_prompt(
        self, prompt: dict, sampling_params: dict, trajectory: dict, trace: bool = False
    ) -> None:
        # The round is the same for all methods, and with it every seed.
        trajectory = {**trajectory, "step": prompt["bench_round"]}
        await HintWorker._run_prompt(self, prompt, sampling_params, trajectory, trace)

    def _arm(self, name: str) -> RolloutParts:
        trainer: Any = OmegaConf.to_container(self.config.trainer, resolve=True)
        method = build_method({**trainer, "method": name}, self._settings)
        engine, texts = self._training.engine, self._training.texts
        assert isinstance(engine, VllmEngine)
        source = guarded_source(
            self._settings, texts, method, grader=engine.grader, tokenizer=self.tokenizer
        )
        return RolloutParts(method, source, engine, self._settings, texts)


class BenchManager(AgentLoopManagerTQ):
    """verl's manager, with :class:`BenchWorker` for its workers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.agent_loop_workers_class = ray.remote(BenchWorker)

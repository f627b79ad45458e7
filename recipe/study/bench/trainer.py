"""The real trainer in a benchmark: every step belongs to an arm, and the weights never change.

In a round all arms make one step each, on the same problems with the same seeds. The learning rate
is 0, so that every update costs what it costs and all arms sample from the same weights.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np
import ray
from omegaconf import DictConfig
from verl.trainer.ppo.v1 import PPOTrainerSync
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.rl_dataset import collate_fn

from recipe.hint.adapter import rollout_server
from recipe.hint.adapter.trainer import HintMixin
from recipe.hint.methods import BASELINE
from recipe.hint.record import PromptRecord
from recipe.hint.reward_tracker import RewardTracker
from recipe.hint.settings import HintSettings
from recipe.study.bench.plan import (
    CALIBRATION,
    ROWS_FILE,
    Slot,
    compose_batches,
    slots_of,
    token_counts,
)
from recipe.study.bench.server import BenchReplica
from recipe.study.bench.settings import BenchSettings, bench_of

# verl's names of a step's phases -> ours; what is left of the step is `other_s`.
_PHASES = {
    "old_log_prob": "log_prob_s",
    "ref": "log_prob_s",
    "adv": "advantage_s",
    "update_actor": "update_s",
    "update_critic": "update_s",
    "update_weights": "sync_s",
}


# What a type checker sees as the bases of the two mixins: the classes after them in the method
# resolution order of `BenchTrainerSync`.
_Trainer = PPOTrainerSync if TYPE_CHECKING else object


class _Chosen(_Trainer):
    """Below the project's mixin: batches of chosen rows in place of the data loader's."""

    hint: HintSettings
    train_dataset: Any
    bench: BenchSettings
    slots: list[Slot]
    solved: dict[int, bool]
    batches: list[list[int]]
    row_of: dict[str, int]

    @property
    def slot(self) -> Slot:
        """What the current step is."""
        return self.slots[self.global_steps - 1]

    def _fetch_one_gen_batch(self) -> Any:
        slot = self.slot
        rows = self._rows(slot)
        columns = collate_fn([self.train_dataset[row] for row in rows])
        uids = [str(uuid.uuid4()) for _ in rows]
        self.row_of = dict(zip(uids, rows, strict=True))
        columns["uid"] = np.array(uids, dtype=object)
        batch = tu.get_tensordict(columns)
        arm = BASELINE if slot.arm == CALIBRATION else slot.arm
        tu.assign_non_tensor_stack(batch, "bench_arm", [arm] * len(rows))
        tu.assign_non_tensor_stack(batch, "bench_round", [slot.round] * len(rows))
        return batch

    def _rows(self, slot: Slot) -> list[int]:
        size = self.config.data.train_batch_size
        if slot.arm == CALIBRATION:
            order = list(range(len(self.train_dataset)))
            random.Random(self.hint.seed).shuffle(order)
            first = (slot.round - 1) * size
            return [order[place % len(order)] for place in range(first, first + size)]
        if not self.batches:
            bench = self.bench
            self.batches = compose_batches(self.solved, size, bench.batches, bench.unresolved)
        return self.batches[slot.round % len(self.batches)]


if TYPE_CHECKING:

    class _Below(HintMixin, _Chosen): ...

else:
    _Below = object


class _Timed(_Below):
    """Above the project's mixin: a clock around its phases, and a tracker for each arm."""

    def __init__(self, config: DictConfig) -> None:
        self.bench = bench_of(config)
        self.slots = slots_of(self.bench)
        self.trackers = {slot.arm: RewardTracker() for slot in self.slots}
        self.solved = {}
        self.batches = []
        rollout_server.register(BenchReplica)
        super().__init__(config)

    def fit(self, agent_loop_manager: Any) -> None:
        self._agents = tuple(agent_loop_manager.agent_loop_workers)
        super().fit(agent_loop_manager)

    def on_step_begin(self) -> None:
        self.tracker = self.trackers[self.slot.arm]
        super().on_step_begin()

    def prepare_step(self) -> dict:
        self._cpu_began = self._cpu_s()
        self._began, self._began_time = time.perf_counter(), time.time()
        return super().prepare_step()

    def on_sample_end(self) -> None:
        self._rollout_s = time.perf_counter() - self._began
        self._cpu = {name: after - self._cpu_began[name] for name, after in self._cpu_s().items()}
        super().on_sample_end()

    def _records_of(self, batch: Any) -> list[PromptRecord]:
        self._records = super()._records_of(batch)
        return self._records

    def _compute_metrics(
        self, batch: Any, metrics: dict, timing_raw: dict, global_steps: int, epoch: int
    ) -> None:
        super()._compute_metrics(batch, metrics, timing_raw, global_steps, epoch)
        slot, records = self.slot, self._records
        if slot.arm == CALIBRATION:
            for record in records:
                uid = record.uid.split("-", 2)[2]  # without its place in the order
                self.solved[self.row_of[uid]] = any(value > 0 for value in record.accuracies)
        row = {
            "arm": slot.arm,
            "round": slot.round,
            "is_counted": slot.round > self.bench.calibration + self.bench.warmup,
            "step_s": timing_raw["step"],
            "rollout_s": self._rollout_s,
            **_phases(timing_raw, self._rollout_s),
            **self._cpu,
            **token_counts(records),
            **self._ask_servers(slot),
        }
        with open(self.folder.root / ROWS_FILE, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def _cpu_s(self) -> dict[str, float]:
        """Return the processor time so far of the driver and of the agent-loop workers."""
        workers = ray.get([each.cpu_seconds.remote() for each in self._agents])
        return {"driver_cpu_s": time.process_time(), "worker_cpu_s": sum(workers)}

    def _ask_servers(self, slot: Slot) -> dict[str, float]:
        """Return what the servers counted, and the same requests without the recipe."""
        servers = [replica.servers[0] for replica in self.llm_server_manager.get_replicas()]
        alone: dict[str, float] = {}
        if self.bench.alone and slot.arm == BASELINE:
            replayed = ray.get([server.replay_alone.remote() for server in servers])
            tokens, seconds = zip(*replayed, strict=True)
            alone = {"alone_tokens": sum(tokens), "alone_s": max(seconds)}
        counts = ray.get([server.take_counts.remote() for server in servers])
        first = min(each.pop("first_time") for each in counts)
        last = max(each.pop("last_time") for each in counts)
        around = {
            "before_s": first - self._began_time,
            "after_s": self._began_time + self._rollout_s - last,
        }
        return {name: sum(each[name] for each in counts) for name in counts[0]} | around | alone


def _phases(timing_raw: dict[str, float], rollout_s: float) -> dict[str, float]:
    phases = dict.fromkeys(_PHASES.values(), 0.0)
    for name, ours in _PHASES.items():
        phases[ours] += timing_raw.get(name, 0.0)
    return phases | {"other_s": timing_raw["step"] - rollout_s - sum(phases.values())}


class BenchTrainerSync(_Timed, HintMixin, _Chosen, PPOTrainerSync):
    """The project's trainer, timed."""

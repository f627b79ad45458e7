"""Add per-problem state to verl's trainers: send it with each prompt, take a record back."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig
from verl.trainer.ppo.v1 import PPOTrainerColocateAsync, PPOTrainerSeparateAsync, PPOTrainerSync
from verl.utils import tensordict_utils as tu

from recipe.hint import metrics as hint_metrics
from recipe.hint.adapter.credit import CreditMixin
from recipe.hint.adapter.models import ask_for_models, read_base_of_adapter
from recipe.hint.adapter.sampling_guard import guard
from recipe.hint.adapter.store import STATE_FIELD, clean_restored_queue, read_records
from recipe.hint.conversations import TURN_FACTS, mean_facts
from recipe.hint.estimators import turn_metrics
from recipe.hint.record import PromptRecord
from recipe.hint.reward_tracker import RewardTracker
from recipe.hint.samples import choose_samples
from recipe.hint.settings import build_method, settings_of
from recipe.problems.schema import problem_from_row
from recipe.run.checkpoints import (
    STATE_FILE,
    drop_old,
    empty_step,
    is_within,
    mark_complete,
    point_at,
    repair_pointer,
    step_folder,
)
from recipe.run.reporter import StepReporter
from recipe.run.resume import lacks_validation
from recipe.run.run_folder import METRICS_FILE, RunFolder, append_rows, plain
from recipe.run.watchdog import Liveness, Watchdog, ready
from recipe.run.whole_file import whole_file, write_whole

_SYNC = "the weight sync from the trainer to the vLLM replicas", "sync_s"  # a phase of the driver
# Why groups did not train, here and in verl's metrics.
_EVICTED = {"failed": "rollout_failure", "stale": "off_policy", "filtered": "filter_groups"}
# What `problem_from_row` needs to give a problem's id; it refuses a row without a ground truth.
_ID_COLUMNS = {"raw_prompt", "problem", "question", "reward_model", "extra_info", "answer"}


class HintMixin(CreditMixin):
    """What the recipe adds to any of verl's trainers."""

    replay_buffer: Any  # guarded: it has the checks of `sampling_guard`
    watchdog: Watchdog  # the task runner's

    def __init__(self, config: DictConfig) -> None:
        self.hint = settings_of(config)
        self.tracker = RewardTracker()
        self.folder = RunFolder(self.hint.run_dir)
        self._method = build_method(config.trainer, self.hint)
        ask_for_models(config, self._method)
        read_base_of_adapter(config)
        self._reporter: StepReporter | None = None
        self._records_of_step: list[PromptRecord] = []
        self._samples_of_step: dict[str, bytes] = {}
        self._metrics_of_step: dict[str, Any] = {}
        self._sent_step, self._num_sent = -1, Counter[str]()  # problem -> prompts of that step
        self._update_limit = contextlib.ExitStack()  # `on_sample_end` to the end of `_step_once`
        super().__init__(config)

    # -- submit: a problem's state travels with its prompt --------------------------------------

    def _fetch_one_gen_batch(self) -> Any:
        batch = super()._fetch_one_gen_batch()
        if self.global_steps != self._sent_step:
            self._sent_step, self._num_sent = self.global_steps, Counter()
        # Once for each column: every access to `batch[name]` builds all of it.
        names = sorted(_ID_COLUMNS & set(batch.keys()))
        uids, *columns = (
            [tu.unwrap_non_tensor_data(value) for value in batch[name]] for name in ("uid", *names)
        )
        uids = self.replay_buffer.in_order(self.global_steps, uids)
        tu.assign_non_tensor_stack(batch, "uid", uids)
        states = []
        for values in zip(*columns, strict=True):
            name = problem_from_row(dict(zip(names, values, strict=True))).id
            repeat, self._num_sent[name] = self._num_sent[name], self._num_sent[name] + 1
            known = {"repeat": repeat, "sent_step": self.global_steps}
            states.append(dataclasses.asdict(self.tracker.state(name)) | known)
        tu.assign_non_tensor_stack(batch, STATE_FIELD, states)
        return batch

    # -- collect: records -> tracker, metrics, file ---------------------------------------------

    def step(self, metrics: dict, timing_raw: dict) -> Any:
        """Run verl's step: one update, or ``parameter_sync_step`` of them on a share each.

        Our metrics are added after all updates: verl would average the counts of the shares.
        """
        self._records_of_step = records = []
        self._samples_of_step = {}
        self._metrics_of_step = metrics
        batch = super().step(metrics, timing_raw)
        evicted = {
            name: metrics.get(f"training/{reason}/evicted_samples", 0)
            for name, reason in _EVICTED.items()
        }
        # verl's count is of those that an asynchronous mode has replaced by another prompt.
        evicted["failed"] += self.config.data.train_batch_size - len(records)
        facts_by_uid = {each.uid: mean_facts(each.conversations) for each in records}
        how = {"settings": self.hint.samples, "seed": self.hint.seed, "step": self.global_steps}
        samples = choose_samples(records, self._samples_of_step, **how)
        append_rows(self.folder.samples, samples)
        if self.hint.samples.to_loggers:
            self.logger.log_samples(samples, self.global_steps)
        for prefix, values in (
            ("hint", {f"{name}_prompts": float(value) for name, value in evicted.items()}),
            ("hint", hint_metrics.step_metrics(records, self._method.max_level)),
            ("verify", hint_metrics.verify_metrics(records)),
            ("reward_tracking", self.tracker.metrics()),
            ("turns", turn_metrics(facts_by_uid) | hint_metrics.guide_metrics(records)),
        ):
            metrics.update({f"{prefix}/{name}": value for name, value in values.items()})
        return batch

    def _step_once(self, metrics: dict, timing_raw: dict, sample_batch_size: int) -> Any:
        with self._update_limit:
            batch = super()._step_once(metrics, timing_raw, sample_batch_size)
        # From first rows; padding, which copies one, is left out.
        first = [key for key in batch.keys if key.endswith("_0_0") and not key.startswith("pad")]
        partition: Any = batch.partition_id
        read = {record.uid: (record, each) for record, each in self._read(first, partition)}
        records = [record for record, _ in read.values()]
        self._samples_of_step.update({uid: sample for uid, (_, sample) in read.items()})
        self.tracker.update(records)
        append_rows(self.folder.records, (record.as_json() for record in records))
        self._records_of_step.extend(records)
        return batch

    def _read(self, keys: list[str], partition: str) -> list[tuple[PromptRecord, bytes]]:
        """Return the record and the sample that each of these rows carries."""
        # The step it trains in; in the async modes it was sampled earlier.
        return [
            (dataclasses.replace(record, step=self.global_steps), sample)
            for record, sample in read_records(keys, partition)
        ]

    def _val_metrics_update(
        self,
        data_sources: list,
        sample_uids: list,
        reward_extra_infos_dict: dict,
        sample_turns: list,
        expected_acc_counts: dict | None = None,
    ) -> dict[str, float]:
        """Return verl's metrics, and for a method with turns how its answers change.

        Without the counts that verl expects, prompts that failed are left out; with them they are
        wrong. They are reported apart.
        """
        infos = reward_extra_infos_dict
        own = {name: each for name, each in infos.items() if name not in TURN_FACTS}
        metrics = super()._val_metrics_update(data_sources, sample_uids, own, sample_turns)
        by_source: dict[str, dict[str, list]] = {}
        if set(TURN_FACTS) <= infos.keys():
            for row, (source, uid) in enumerate(zip(data_sources, sample_uids, strict=True)):
                facts = {name: infos[name][row] for name in TURN_FACTS}
                by_source.setdefault(source, {}).setdefault(uid, []).append(facts)
        for source, facts_P in by_source.items():
            found = turn_metrics(facts_P)
            metrics |= {f"val-turns/{source}/{name}": value for name, value in found.items()}
        return metrics

    # -- waiting with a limit -------------------------------------------------------------------

    def _build_replay_buffer(self) -> Any:
        batch_size = self.config.data.train_batch_size
        return guard(
            super()._build_replay_buffer(),
            self.hint.watchdog.progress_s,
            batch_size=batch_size,
            max_filtered=self.config.algorithm.filter_groups.max_num_gen_batches * batch_size,
            say=self.folder.say,
            on_discard=lambda keys, partition: self.tracker.update(
                [record for record, _ in self._read(keys, partition)], train=False
            ),
        )

    def fit(self, agent_loop_manager: Any) -> None:
        """Run verl's training loop."""
        liveness = Liveness(limit_s=self.hint.watchdog.answer_s, on_fault=self.watchdog.end)
        liveness.add_servers(self._rollout_server_managers())
        liveness.add_queue(self.config.transfer_queue)
        for number, worker in enumerate(agent_loop_manager.agent_loop_workers):
            liveness.add(f"agent-loop worker {number}", worker.ping.remote)
        for rank, worker in enumerate(self.actor_rollout_wg.workers):
            liveness.add(f"trainer rank {rank}", ready(worker), may_be_busy=True)
        with liveness.watching():
            super().fit(agent_loop_manager)

    def _setup(self) -> None:
        with self.watchdog.phase("start-up of the trainer and the vLLM replicas", "start_s"):
            super()._setup()

    def on_sample_end(self) -> None:
        with self.watchdog.phase("stopping the vLLM replicas", "sync_s"):
            super().on_sample_end()
        # The rollouts before it have their own limit (`guard`).
        update = self.watchdog.phase("the update on the trainer's devices", "update_s")
        self._update_limit.enter_context(update)

    def on_init_end(self) -> None:
        with self.watchdog.phase(*_SYNC):
            super().on_init_end()
        if self.config.trainer.get("val_only", False):
            return
        root = Path(self.config.trainer.default_local_dir)
        if self.global_steps == 0 and (root.is_dir() or self.config.trainer.save_freq > 0):
            # A run killed in its first save, or before, must begin at step 1 again.
            root.mkdir(parents=True, exist_ok=True)
            point_at(root, 0)
        self.folder.begin_after(self.global_steps)
        if self._resumed_from and is_within(root, self._resumed_from):
            self.folder.restore_metrics(self.global_steps, self._resumed_from)
            if lacks_validation(self.config, self.global_steps, self.total_training_steps):
                self.config.trainer.val_before_train = True

    def on_step_end(self) -> None:
        with self.watchdog.phase(*_SYNC):
            super().on_step_end()

    # -- state ----------------------------------------------------------------------------------

    def _save_checkpoint(self) -> None:
        root = self.config.trainer.default_local_dir
        folder = step_folder(root, self.global_steps)
        with self.watchdog.phase("saving the checkpoint", "save_s"):
            folder.mkdir(parents=True, exist_ok=True)
            empty_step(root, self.global_steps)
            with whole_file(folder / STATE_FILE) as file:
                np.savez_compressed(file, **self.tracker.state_dict())
            # verl logs a step after its save and weight sync: one killed in between lacks the line.
            write_whole(folder / METRICS_FILE, json.dumps(plain(self._metrics_of_step)))
            super()._save_checkpoint()
            self.folder.settle()
            mark_complete(root, self.global_steps, needs=("actor",))
            drop_old(root, self.global_steps, self.config.trainer.max_actor_ckpt_to_keep)

    def _load_checkpoint(self) -> None:
        trainer = self.config.trainer
        if trainer.resume_mode == "auto":
            repair_pointer(trainer.default_local_dir)
        super()._load_checkpoint()
        if self.global_steps == 0:
            return
        if self.trainer_mode != "sync":  # only asynchronous modes keep a queue
            clean_restored_queue()
        folder = step_folder(trainer.default_local_dir, self.global_steps)
        if trainer.resume_mode == "resume_path":
            folder = Path(trainer.resume_from_path)
        with np.load(folder / STATE_FILE, allow_pickle=False) as state:
            self.tracker.load_state_dict(dict(state))
        self._resumed_from = folder
        if is_within(trainer.default_local_dir, folder):
            # Resumed by path: later records are dropped, so later checkpoints must not count.
            point_at(trainer.default_local_dir, self.global_steps)
        self.folder.say(f"resumed from step {self.global_steps} ({folder})")

    # -- reporting ------------------------------------------------------------------------------

    @property
    def logger(self) -> Any:
        """verl's Tracking, with the project's console and metrics file in front of it."""
        return self._reporter

    @logger.setter
    def logger(self, tracking: Any) -> None:
        self._reporter = StepReporter(tracking, self.folder, self.total_training_steps)


class HintTrainerSync(HintMixin, PPOTrainerSync):
    """Roll out, train, sync weights, in turn."""


class HintTrainerColocateAsync(HintMixin, PPOTrainerColocateAsync):
    """Rollouts of later prompts stop during an update, on the same devices, and continue after."""


class HintTrainerSeparateAsync(HintMixin, PPOTrainerSeparateAsync):
    """Rollouts on separate devices, and on the trainer's while it is idle."""


TRAINERS = {
    "sync": HintTrainerSync,
    "colocate_async": HintTrainerColocateAsync,
    "separate_async": HintTrainerSeparateAsync,
}

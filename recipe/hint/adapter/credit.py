"""A method's own credit in verl's step: it reads rows and writes an advantage per token."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import ray
import torch
from verl.protocol import DataProto
from verl.trainer.ppo.utils import Role
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.utils.debug.metrics import calculate_debug_metrics
from verl.workers.utils.padding import response_to_nested

from recipe.hint.adapter.archer import HEADS, UtteranceLearner, transitions_of
from recipe.hint.adapter.critic import CriticWorker, UtteranceCriticWorker, turn_value_loss
from recipe.hint.adapter.store import credit_rows, read_columns, write_columns
from recipe.hint.credit.base import DROPPED, TokenStats, credit_metrics
from recipe.hint.methods import Method
from recipe.run.checkpoints import REPLAY_FILE, is_within, step_folder
from recipe.run.whole_file import whole_file

# The mixin's base, for type checkers only.
_Trainer = PPOTrainer if TYPE_CHECKING else object
_FIELDS = ["response_mask", "old_log_probs", "ref_log_prob", "values", "extra_fields", "entropy"]
# Metrics that compare vLLM with the trainer, and the columns that they need.
_AGREEMENT_METRICS = ("training/rollout_probs_diff_", "training/rollout_actor_probs_")
_AGREEMENT_FIELDS = ["responses", "response_mask", "old_log_probs", "rollout_log_probs"]


class CreditMixin(_Trainer):
    """Changes verl's step for methods with credit of their own; for others it stays verl's.

    Their rows are split evenly into as many updates as verl would make of G rows per prompt.
    """

    _method: Method
    _num_rows: int
    _num_updates: int
    _rows_per_update: int
    _num_processes: int
    _learner: UtteranceLearner | None = None
    _critic_heads: dict[str, dict[str, float]] = {}  # row's key -> Q and V, of this step
    _resumed_from: Path | None = None

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        if Role.Critic in self.role_worker_mapping:
            is_of_utterances = self._method.needs.utterance_critic is not None
            worker = UtteranceCriticWorker if is_of_utterances else CriticWorker
            self.role_worker_mapping[Role.Critic] = ray.remote(worker)

    def _setup(self) -> None:
        super()._setup()
        if settings := self._method.needs.utterance_critic:
            self._learner = UtteranceLearner(settings, self.critic_wg, seed=self.config.hint.seed)
            root = self.config.trainer.default_local_dir
            # The buffer of another run may hold other rewards, turns and prompts.
            if self._resumed_from and is_within(root, self._resumed_from):
                with np.load(self._resumed_from / REPLAY_FILE, allow_pickle=False) as state:
                    self._learner.replay.load_state_dict(dict(state))
        elif self._method.credit and self.use_critic:
            self.critic_wg.set_loss_fn(turn_value_loss)

    def _save_checkpoint(self) -> None:
        if self._learner:
            folder = step_folder(self.config.trainer.default_local_dir, self.global_steps)
            state: dict[str, Any] = self._learner.replay.state_dict()
            with whole_file(folder / REPLAY_FILE) as file:
                np.savez(file, **state)  # packing token ids takes minutes and saves a quarter
        super()._save_checkpoint()

    # -- rows of an update ----------------------------------------------------------------------

    def _balance_batch(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        self._num_rows = len(batch)
        batch = super()._balance_batch(batch, *args, **kwargs)
        if self._method.credit:
            is_padding_N = [bool(tag.get("is_padding")) for tag in batch.tags]
            order = with_spread_padding(is_padding_N, self._num_processes, self._num_updates)
            batch.reorder(order)
        return batch

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        """Return the rows of a step, so many that each of its updates takes whole processes.

        verl pads the batch to a multiple of it.
        """
        if self._method.credit is None:
            return super()._get_required_batch_multiple(dp_size)
        self._num_processes = dp_size
        share = self.config.data.train_batch_size // self.parameter_sync_step
        updates = share // self.config.actor_rollout_ref.actor.ppo_mini_batch_size
        # A multiple for the critic too, whose sequences may be split otherwise than the actor's.
        size = math.lcm(dp_size, self.critic_wg.world_size if self.use_critic else 1)
        self._rows_per_update = math.ceil(self._num_rows / (updates * size)) * size
        self._num_updates = updates
        return self._rows_per_update * updates

    def _update_actor(self, batch: Any, metrics: dict) -> Any:
        with self._sized_in_rows(self.actor_rollout_wg, "update_actor"):
            return super()._update_actor(batch, metrics)

    def _update_critic(self, batch: Any, metrics: dict) -> Any:
        if self._learner:  # before the advantages, as ArCHer does
            return batch
        with self._sized_in_rows(self.critic_wg, "train_mini_batch"):
            return super()._update_critic(batch, metrics)

    @contextlib.contextmanager
    def _sized_in_rows(self, workers: Any, update: str) -> Iterator[None]:
        """Have ``workers.update`` take rows with their padding, and divide by its real ones.

        verl multiplies prompts by the group size. It has one number for the rows that an update
        takes, which must be a multiple of the processes, and for those that losses which are means
        over rows divide by: with padding a row would weigh less the more processes there are. One
        number for all of a step, so that rows weigh alike.
        """
        if self._method.credit is None:
            yield
            return
        rollout = self.config.actor_rollout_ref.rollout
        nodes = (self.config.actor_rollout_ref.actor, self.config.critic)
        before = rollout.n, *(node.ppo_mini_batch_size for node in nodes)
        verls = getattr(workers, update)

        def divided(batch: Any) -> Any:
            batch.extra_info["global_batch_size"] = self._num_rows / self._num_updates
            return verls(batch)

        try:
            rollout.n = 1
            for node in nodes:
                node.ppo_mini_batch_size = self._rows_per_update
            setattr(workers, update, divided)
            yield
        finally:
            setattr(workers, update, verls)
            rollout.n = before[0]
            for node, size in zip(nodes, before[1:], strict=True):
                node.ppo_mini_batch_size = size

    # -- what rows are worth --------------------------------------------------------------------

    def _compute_old_log_prob(self, batch: Any, metrics: dict) -> Any:
        """Compute verl's; compare with vLLM only what it sampled as the trainer computes.

        Other rows get the trainer's log-probabilities as vLLM's, so that rollout correction gives
        them weight 1: given ones, and those of a temperature or top-p of their own.
        """
        batch = super()._compute_old_log_prob(batch, metrics)
        keys, partition, real = batch.keys, batch.partition_id, _real_rows(batch)
        apart = [keys[at] for at in real if batch.tags[at].get("is_not_compared")]
        if not apart:
            return batch
        for name in [name for name in metrics if name.startswith(_AGREEMENT_METRICS)]:
            del metrics[name]
        compared = [keys[at] for at in real if not batch.tags[at].get("is_not_compared")]
        if compared and self.config.actor_rollout_ref.rollout.calculate_log_probs:
            data = read_columns(compared, partition, _AGREEMENT_FIELDS)
            metrics.update(calculate_debug_metrics(DataProto(batch=data.to_padded_tensor())))
        own = read_columns(apart, partition, ["old_log_probs"])
        write_columns(apart, partition, {"rollout_log_probs": own["old_log_probs"]})
        return batch

    def _compute_values(self, batch: Any, metrics: dict) -> Any:
        """Compute verl's, or train the utterance critic on the step's rows and take its V."""
        # verl leaves it behind after the reference's log-probs; a critic has no adapter to put off.
        batch.extra_info.pop("no_lora_adapter", None)
        if not self._learner:
            return super()._compute_values(batch, metrics)
        fields = ["prompts", "responses", "response_mask", "extra_fields"]
        data = read_columns(batch.keys, batch.partition_id, fields)
        real = _real_rows(batch)
        rows = credit_rows(data, real)
        tokens = {name: [each.numpy() for each in data[name].unbind()] for name in fields[:2]}
        prompts, responses = ([tokens[name][at] for at in real] for name in fields[:2])
        fresh = transitions_of(rows, prompts, responses)
        # What a dropped conversation earned is unknown.
        known = [each for row, each in zip(rows, fresh, strict=True) if DROPPED not in row.facts]
        learnt = self._learner.learn(known, self.global_steps) if known else {}
        metrics.update({f"critic/{name}": value for name, value in learnt.items()})
        heads_N4 = self._learner.heads_of(fresh)
        self._critic_heads = {
            batch.keys[index]: dict(zip(HEADS, heads.tolist(), strict=True))
            for index, heads in zip(real, heads_N4, strict=True)
        }
        values_N1 = heads_N4[:, 2:].min(axis=1, keepdims=True)
        _write_numbers(batch, data["response_mask"], real, values=values_N1)
        return batch

    def _compute_advantage(self, batch: Any, metrics: dict) -> Any:
        """Compute verl's, for its rollout correction, and replace them by the method's."""
        if self._method.credit is None:
            return super()._compute_advantage(batch, metrics)
        # Before verl's correction, which may mask tokens whose KL still counts.
        data = read_columns(batch.keys, batch.partition_id, _FIELDS)
        batch = super()._compute_advantage(batch, metrics)
        real = _real_rows(batch)
        heads = [self._critic_heads.get(batch.keys[index], {}) for index in real]
        rows = [
            dataclasses.replace(row, facts={**row.facts, **each})
            for row, each in zip(credit_rows(data, real), heads, strict=True)
        ]
        tokens = _token_stats(data, real)
        advantages_N, own_NT = self._method.credit.token_advantages(rows, tokens)
        targets_N = self._method.credit.value_targets(rows)
        metrics.update(credit_metrics(rows, advantages_N, tokens.kls_N, targets_N))
        values_N1 = np.array([[row.value or 0.0] for row in rows])
        is_dropped_N1 = np.array([[DROPPED in row.facts] for row in rows])
        # A dropped row's target is its value before the step's updates: it teaches nothing.
        returns_N1 = np.where(is_dropped_N1, values_N1, targets_N[:, None])
        columns = {"advantages": own_NT, "returns": returns_N1}
        if "values" in data:  # for verl's metrics: V means something before the first token alone
            columns["values"] = values_N1
        return _write_numbers(batch, data["response_mask"], real, **columns)


def _write_numbers(batch: Any, response_mask: Any, real: list[int], **columns: np.ndarray) -> Any:
    """Write numbers of the ``real`` rows, (N, T) or (N, 1), into the queue; 0 for padding."""
    whole_NT = np.zeros((len(batch), int(response_mask.offsets().diff().max())))
    fields = {}
    for name, each in columns.items():
        whole_NT[real] = each
        fields[name] = response_to_nested(torch.from_numpy(whole_NT).float(), response_mask)
    return write_columns(batch.keys, batch.partition_id, fields)


def with_spread_padding(
    is_padding_N: Sequence[bool], num_processes: int, num_updates: int
) -> list[int]:
    """Return an order of rows in which all updates have equally many rows of padding, or one more.

    verl appends the padding, so that the last update would have few rows that count, each with the
    weight of many. Rows stay with their process, which takes them in order, and real ones in their
    order.
    """
    order, seen, per_process = [], 0, len(is_padding_N) // num_processes
    for process in range(num_processes):
        start = process * per_process
        rows = range(start, start + per_process)
        padding = [row for row in rows if is_padding_N[row]]
        seen, first = seen + len(padding), seen
        real = iter([row for row in rows if not is_padding_N[row]])
        for update in range(num_updates):
            # Counted on from process to process: from 0 each, the first updates would have more.
            own = padding[(update - first) % num_updates :: num_updates]
            order += [*itertools.islice(real, per_process // num_updates - len(own)), *own]
    return order


def _real_rows(batch: Any) -> list[int]:
    """Return the indices of the rows that are not padding."""
    return [index for index, tag in enumerate(batch.tags) if not tag.get("is_padding")]


def _token_stats(data: Any, real: list[int]) -> TokenStats:
    """Return the statistics of the real rows' tokens; 0 where verl computed none."""

    def padded(name: str) -> np.ndarray:
        return data[name].to_padded_tensor(0).double().numpy()[real]

    mask_NT = padded("response_mask")
    log_probs_NT, ref_log_probs_NT, entropies_NT = (
        padded(name) * mask_NT if name in data else np.zeros(mask_NT.shape)
        for name in ("old_log_probs", "ref_log_prob", "entropy")
    )
    k1_NT = log_probs_NT - ref_log_probs_NT if "ref_log_prob" in data else 0.0 * mask_NT
    return TokenStats(log_probs_NT, entropies_NT, mask_NT, k1_NT)

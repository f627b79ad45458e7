"""A method's own credit in verl's step: rows out of the queue, one advantage per token back."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import ray
import torch
import transfer_queue as tq
from tensordict import TensorDict
from verl.protocol import DataProto
from verl.trainer.ppo.utils import Role
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.utils import tensordict_utils as tu
from verl.utils.debug.metrics import calculate_debug_metrics
from verl.workers.utils.padding import response_to_nested

from recipe.hint.credit.metrics import credit_metrics
from recipe.hint.credit.rows import DROPPED, CreditRow
from recipe.hint.credit.tokens import TokenStats, token_advantages
from recipe.hint.methods import Method
from recipe.hint.runtime.archer import HEADS, UtteranceLearner, transitions_of
from recipe.hint.runtime.checkpoints import REPLAY_FILE, step_folder
from recipe.hint.runtime.critic import CriticWorker, UtteranceCriticWorker, turn_value_loss
from recipe.hint.runtime.store import CREDIT_FIELD
from recipe.hint.whole_file import whole_file

# What a type checker sees as the base of the mixin.
_Trainer = PPOTrainer if TYPE_CHECKING else object
_FIELDS = ["response_mask", "old_log_probs", "ref_log_prob", "values", "extra_fields", "entropy"]
# Metrics of vLLM against the trainer, and what they are made of.
_COMPARED = ("training/rollout_probs_diff_", "training/rollout_actor_probs_")
_AGREEMENT = ["responses", "response_mask", "old_log_probs", "rollout_log_probs"]


class CreditMixin(_Trainer):
    """Changes verl's step for a method with credit of its own; for all others it changes nothing.

    Such a method has several rows per conversation. An update takes the rows of as many prompts as
    ``ppo_mini_batch_size`` says, however many rows they have.
    """

    _method: Method
    _num_rows: int
    _rows_per_update: int
    _learner: UtteranceLearner | None = None
    _critic_heads: dict[str, dict[str, float]] = {}  # of this step's rows, by key
    _resumed_from: Path | None = None

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        if Role.Critic in self.role_worker_mapping:
            is_of_utterances = self._method.utterance_critic is not None
            worker = UtteranceCriticWorker if is_of_utterances else CriticWorker
            self.role_worker_mapping[Role.Critic] = ray.remote(worker)

    def _setup(self) -> None:
        super()._setup()
        if self._method.utterance_critic:
            self._learner = UtteranceLearner(
                self._method.utterance_critic,
                self.critic_wg,
                seed=self.config.hint.seed,
                num_processes=self.critic_wg.world_size,
            )
            if self._resumed_from:
                with np.load(self._resumed_from / REPLAY_FILE, allow_pickle=False) as state:
                    self._learner.replay.load_state_dict(dict(state))
        elif self._method.has_own_credit and self.use_critic:
            self.critic_wg.set_loss_fn(turn_value_loss)

    def _save_checkpoint(self) -> None:
        if self._learner:
            folder = step_folder(self.config.trainer.default_local_dir, self.global_steps)
            state: dict[str, Any] = self._learner.replay.state_dict()
            with whole_file(folder / REPLAY_FILE) as file:
                np.savez_compressed(file, **state)
        super()._save_checkpoint()

    def _balance_batch(self, batch: Any, *args: Any, **kwargs: Any) -> Any:
        self._num_rows = len(batch)
        return super()._balance_batch(batch, *args, **kwargs)

    def _get_required_batch_multiple(self, dp_size: int) -> int:
        if not self._method.has_own_credit:
            return super()._get_required_batch_multiple(dp_size)
        share = self.config.data.train_batch_size // self.parameter_sync_step
        num_updates = share // self.config.actor_rollout_ref.actor.ppo_mini_batch_size
        self._rows_per_update = math.ceil(self._num_rows / (num_updates * dp_size)) * dp_size
        return self._rows_per_update

    def _update_actor(self, batch: Any, metrics: dict) -> Any:
        with self._sized_in_rows():
            return super()._update_actor(batch, metrics)

    def _compute_old_log_prob(self, batch: Any, metrics: dict) -> Any:
        """Compute verl's, and leave rows that were not sampled out of the comparison with vLLM.

        Such rows get the trainer's log-probabilities in place of vLLM's, so that rollout correction
        weighs them with 1.
        """
        batch = super()._compute_old_log_prob(batch, metrics)
        keys, partition = batch.keys, batch.partition_id
        real = [(keys[place], batch.tags[place]) for place in _real_rows(batch)]
        given = [key for key, tag in real if tag.get("is_given")]
        if not given:
            return batch
        for name in [name for name in metrics if name.startswith(_COMPARED)]:
            del metrics[name]
        sampled = [key for key, tag in real if not tag.get("is_given")]
        if sampled and self.config.actor_rollout_ref.rollout.calculate_log_probs:
            data = tq.kv_batch_get(keys=sampled, partition_id=partition, select_fields=_AGREEMENT)
            metrics.update(calculate_debug_metrics(DataProto(batch=data.to_padded_tensor())))
        own = tq.kv_batch_get(keys=given, partition_id=partition, select_fields=["old_log_probs"])
        fields = TensorDict({"rollout_log_probs": own["old_log_probs"]}, batch_size=len(given))
        tq.kv_batch_put(keys=given, partition_id=partition, fields=fields)
        return batch

    def _compute_values(self, batch: Any, metrics: dict) -> Any:
        """Compute verl's, or an utterance critic's after it has learnt from the step's rows."""
        if not self._learner:
            return super()._compute_values(batch, metrics)
        fields = ["prompts", "responses", "response_mask", "extra_fields"]
        data: Any = tq.kv_batch_get(
            keys=batch.keys, partition_id=batch.partition_id, select_fields=fields
        )
        places = _real_rows(batch)
        rows = _credit_rows(data, places)
        prompts, responses = (
            [each.numpy() for each in data[name].unbind()] for name in ("prompts", "responses")
        )
        fresh = transitions_of(
            rows,
            [prompts[place] for place in places],
            [responses[place] for place in places],
            self.global_steps,
        )
        kept = [
            each for row, each in zip(rows, fresh, strict=True) if DROPPED not in row.facts
        ]  # what a dropped conversation earned is unknown
        told = self._learner.learn(kept, self.global_steps) if kept else {}
        metrics.update({f"critic/{name}": value for name, value in told.items()})
        heads_N4 = self._learner.heads_of(fresh)
        self._critic_heads = {
            batch.keys[place]: dict(zip(HEADS, heads.tolist(), strict=True))
            for place, heads in zip(places, heads_N4, strict=True)
        }
        values_NT = np.zeros((len(batch), int(data["response_mask"].offsets().diff().max())))
        values_NT[places] = heads_N4[:, 2:].min(axis=1)[:, None]
        nested = response_to_nested(torch.from_numpy(values_NT).float(), data["response_mask"])
        fields = TensorDict({"values": nested}, batch_size=len(batch))
        tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=fields)
        return batch

    def _update_critic(self, batch: Any, metrics: dict) -> Any:
        if self._learner:  # before the advantages, as ArCHer does
            return batch
        with self._sized_in_rows():
            return super()._update_critic(batch, metrics)

    @contextlib.contextmanager
    def _sized_in_rows(self) -> Iterator[None]:
        """Give verl the size of an update in rows; it multiplies prompts by the group size."""
        if not self._method.has_own_credit:
            yield
            return
        rollout = self.config.actor_rollout_ref.rollout
        nodes = (self.config.actor_rollout_ref.actor, self.config.critic)
        before = rollout.n, *(node.ppo_mini_batch_size for node in nodes)
        try:
            rollout.n = 1
            for node in nodes:
                node.ppo_mini_batch_size = self._rows_per_update
            yield
        finally:
            rollout.n = before[0]
            for node, size in zip(nodes, before[1:], strict=True):
                node.ppo_mini_batch_size = size

    def _compute_advantage(self, batch: Any, metrics: dict) -> Any:
        """Compute verl's, with its rollout correction, and put the method's own in their place."""
        if not self._method.has_own_credit:
            return super()._compute_advantage(batch, metrics)
        keys, partition = batch.keys, batch.partition_id
        # Before: the correction may take tokens out of the loss, which have their KL all the same.
        data = tq.kv_batch_get(keys=keys, partition_id=partition, select_fields=_FIELDS)
        batch = super()._compute_advantage(batch, metrics)
        places = _real_rows(batch)
        rows = [
            dataclasses.replace(row, facts={**row.facts, **self._critic_heads.get(keys[place], {})})
            for row, place in zip(_credit_rows(data, places), places, strict=True)
        ]
        mask_NT = _padded(data["response_mask"])
        k1_NT = np.zeros(mask_NT.shape)
        if "ref_log_prob" in data:
            k1_NT = _padded(data["old_log_probs"]) - _padded(data["ref_log_prob"])
        kls_N = (k1_NT * mask_NT).sum(axis=1)[places]
        advantages_N = self._method.advantages(rows)
        tokens = _token_stats(data, mask_NT, places)
        weights_N1 = np.array([[row.weight] for row in rows])
        weights_NT = weights_N1 * self._method.token_weights(rows, tokens)
        targets_N = self._method.value_targets(rows)
        metrics.update(credit_metrics(rows, advantages_N, kls_N, targets_N))
        own_NT = np.zeros(mask_NT.shape)
        own_NT[places] = token_advantages(
            advantages_N,
            weights_NT,
            self._method.kl_coefs(rows, kls_N),
            k1_NT[places],
            mask_NT[places],
        )
        targets_NT = np.zeros(mask_NT.shape)
        targets_NT[places] = _critic_targets(rows, targets_N)[:, None]
        found = {"advantages": own_NT, "returns": targets_NT}
        fields = TensorDict(
            {
                name: response_to_nested(torch.from_numpy(each).float(), data["response_mask"])
                for name, each in found.items()
            },
            batch_size=len(batch),
        )
        return tq.kv_batch_put(keys=batch.keys, partition_id=partition, fields=fields)


def _critic_targets(rows: list[CreditRow], targets_N: np.ndarray) -> np.ndarray:
    """Return the targets, and the present value of a dropped row: its error is 0."""
    values_N = np.array([row.value or 0.0 for row in rows])
    return np.where([DROPPED in row.facts for row in rows], values_N, targets_N)


def _real_rows(batch: Any) -> list[int]:
    """Return where the rows stand that are no padding."""
    return [place for place, tag in enumerate(batch.tags) if not tag.get("is_padding")]


def _token_stats(data: Any, mask_NT: np.ndarray, places: list[int]) -> TokenStats:
    """Return the facts of the tokens that are no padding; 0 where verl computed none."""
    log_probs_NT, entropies_NT = (
        _padded(data[name]) * mask_NT if name in data else np.zeros(mask_NT.shape)
        for name in ("old_log_probs", "entropy")
    )
    return TokenStats(log_probs_NT[places], entropies_NT[places], mask_NT[places])


def _padded(nested: Any) -> np.ndarray:
    return nested.to_padded_tensor(0).double().numpy()


def _credit_rows(data: Any, places: list[int]) -> list[CreditRow]:
    """Return the rows of the batch that are no padding, with the critic's values where it is on."""
    extra: list[Any] = [tu.unwrap_non_tensor_data(each) for each in data["extra_fields"]]
    values = data["values"].to_padded_tensor(0.0)[:, 0].tolist() if "values" in data else None
    return [
        CreditRow(**extra[place][CREDIT_FIELD] | {"value": values[place] if values else None})
        for place in places
    ]

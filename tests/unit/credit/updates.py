"""The update that the real advantage and loss code makes, in expectation over all outcomes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from enumerated import PROBLEM, Policy, Way, every_outcome
from verl.protocol import DataProto
from verl.trainer.ppo.core_algos import AdvantageEstimator, compute_policy_loss_vanilla
from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories
from verl.utils import tensordict_utils as tu
from verl.workers.config import FSDPActorConfig

from recipe.hint.adapter import store
from recipe.hint.credit.base import CreditRow, TokenStats

# verl's GRPO divides by the group's deviation plus this.
EPSILON = 1e-6


class Batch:
    """The rows of many ways as the queue holds them, padded; a way's rows share its probability."""

    def __init__(self, ways: list[Way]) -> None:
        self.keys, self.uids, self.way_N, self.credit, fields_N = [], [], [], [], []
        for number, way in enumerate(ways):
            uid = way.outcome.record.uid
            prompt = {"uid": uid, "global_steps": 1, "index": 1}
            for key, fields, _ in store.rows_of(way.outcome, prompt):
                self.keys.append(key)
                self.uids.append(tu.unwrap_non_tensor_data(fields["uid"]))
                self.way_N.append(number)
                extra = tu.unwrap_non_tensor_data(fields["extra_fields"])
                self.credit.append(CreditRow(**extra[store.CREDIT_FIELD]))
                fields_N.append(fields)
        self.probabilities = torch.tensor([way.probability for way in ways], dtype=torch.float64)
        self.words = ["".join(map(chr, each["responses"].tolist())) for each in fields_N]
        self.conversations = ["".join(map(chr, each["prompts"].tolist())) for each in fields_N]
        self.mask_NT = _padded([each["response_mask"].double() for each in fields_N])
        # Rewards are stored in float32; what they are is exact, what is done with them is not.
        self.scores_NT = _padded([each["rm_scores"].double() for each in fields_N])

    def log_probs(self, policy: Policy) -> torch.Tensor:
        """Return log p of each token under the conversation that its row trains with, (N, T)."""
        places = list(zip(self.conversations, self.words, strict=True))
        each = {place: policy.token_log_probs(*place) for place in set(places)}
        return _padded([each[place] for place in places])

    def entropies(self, policy: Policy) -> torch.Tensor:
        """Return the entropy of each token's distribution, without a gradient, (N, T)."""
        places = list(zip(self.conversations, self.words, strict=True))
        each = {place: policy.token_entropies(*place) for place in set(places)}
        return _padded([each[place] for place in places])


def verls_advantages(batch: Batch, policy: Policy, *, by_std: bool = True) -> torch.Tensor:
    """Return what verl's GRPO makes of the rows, shape (N, T)."""
    rows = {
        "token_level_rewards": batch.scores_NT.clone(),
        "response_mask": batch.mask_NT,
        "responses": batch.mask_NT,
    }
    data = DataProto.from_dict(rows, non_tensors={"uid": np.array(batch.uids, dtype=object)})
    done = compute_advantage_for_multi_trajectories(
        data, batch.keys, AdvantageEstimator.GRPO, norm_adv_by_std_in_grpo=by_std
    )
    return done.batch["advantages"]


def own_advantages(
    batch: Batch, policy: Policy, *, method, reference=None, outside=None
) -> torch.Tensor:
    """Return what a method with credit of its own makes of the rows, shape (N, T).

    Args:
        batch: The rows.
        policy: The one that trains.
        method: Whose ``advantages`` they get.
        reference: The policy that the KL is taken to.
        outside: (conversation, word) -> what the critic adds to the row of credit.
    """
    rows = batch.credit
    if outside:
        places = zip(rows, batch.conversations, batch.words, strict=True)
        rows = [replace(row, **outside(*place)) for row, *place in places]
    mask_NT = batch.mask_NT.numpy()
    k1_NT = np.zeros(mask_NT.shape)
    if reference:
        k1_NT = (batch.log_probs(policy) - batch.log_probs(reference)).detach().numpy()
    tokens = TokenStats(
        batch.log_probs(policy).detach().numpy(), batch.entropies(policy).numpy(), mask_NT, k1_NT
    )
    return torch.from_numpy(method.credit.token_advantages(rows, tokens)[1])


def expected_update(
    ways: list[Way],
    policy: Policy,
    *,
    size: int,
    advantages=verls_advantages,
    mode: str = "seq-mean-token-sum",
    **options,
) -> dict:
    """Return minus the gradient of verl's loss at ratio 1, in expectation over the ways.

    Args:
        ways: From ``every_outcome``.
        policy: Whose parameters they are.
        size: Rows that the loss is a mean over, verl's ``global_batch_size``.
        advantages: ``(batch, policy, **options) -> (N, T)``.
        mode: verl's ``loss_agg_mode``.
        **options: Passed on to ``advantages``.
    """
    batch = Batch(ways)
    advantages_NT = advantages(batch, policy, **options)
    log_probs_NT = batch.log_probs(policy)
    loss = 0.0
    way_N = torch.tensor(batch.way_N)
    if mode == "token-mean":  # the number of tokens is that of the way
        for number, probability in enumerate(batch.probabilities):
            own = way_N == number
            loss = loss + probability * _loss(
                log_probs_NT[own], advantages_NT[own], batch.mask_NT[own], mode, size
            )
    else:  # a mean over a fixed number of rows: probabilities stand where importance weights do
        weights_N1 = batch.probabilities[way_N][:, None]
        loss = _loss(log_probs_NT, advantages_NT, batch.mask_NT, mode, size, weights_N1)
    return policy.gradient(-loss)


def _loss(log_probs_NT, advantages_NT, mask_NT, mode, size, weights=None):
    config = FSDPActorConfig(
        strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, clip_ratio_high=0.28
    )
    config.global_batch_info.update(
        dp_size=1, batch_num_tokens=None, global_batch_size=size, loss_scale_factor=None
    )
    loss, _ = compute_policy_loss_vanilla(
        old_log_prob=log_probs_NT.detach(),
        log_prob=log_probs_NT,
        advantages=advantages_NT,
        response_mask=mask_NT,
        loss_agg_mode=mode,
        config=config,
        rollout_is_weights=weights,
    )
    return loss


def largest_difference(one: dict, other: dict) -> float:
    """Return the largest difference between two gradients, over all parameters."""
    zero = torch.zeros(1)
    return max(
        float((one.get(name, zero) - other.get(name, zero)).abs().max())
        for name in one.keys() | other.keys()
    )


def own_update(
    method, policy: Policy, *, group_size: int = 2, state=None, item=PROBLEM, **outside
) -> dict:
    """Return the expected update of a method with credit of its own, a mean over the group."""
    ways = every_outcome(method, policy, group_size=group_size, state=state, item=item)
    return expected_update(
        *(ways, policy), size=group_size, advantages=own_advantages, method=method, **outside
    )


def is_ascended(update: dict, policy: Policy, objective: torch.Tensor) -> bool:
    """Return whether an update, which is not next to nothing, is the gradient of an objective."""
    assert largest(update) > 1e-2
    return largest_difference(update, policy.gradient(objective)) < 1e-9


def largest(gradient: dict) -> float:
    """Return the largest derivative; 0 where there is none."""
    return max((float(each.abs().max()) for each in gradient.values()), default=0.0)


def _padded(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)

"""Rows of padding, which make updates whole for all processes, change no loss."""

import math

import pytest
import torch
from credit_trainer import Trainer, score
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.core_algos import agg_loss
from verl.utils import tensordict_utils as tu

from recipe.hint.adapter import critic
from recipe.hint.adapter.credit import with_spread_padding
from recipe.hint.adapter.critic import turn_value_loss

UPDATES, LONGEST = 2, 5


class Workers:
    """The actor's or the critic's: what an update is called with."""

    world_size = 1

    def update_actor(self, batch):
        self.given = dict(batch.extra_info)
        return {"metrics": {"mfu": 0.0}}

    def train_mini_batch(self, batch):
        return self.Later(self.update_actor(batch))

    class Later:
        def __init__(self, value):
            self.get = lambda: value


def sizes(num_rows, num_processes):
    """Rows of an update, what each of actor and critic divides by, and rows with padding."""
    trainer = Trainer(score(), prompts=UPDATES, mini=1)
    trainer.use_critic, trainer._num_rows = True, num_rows
    more = {"ppo_epochs": 1, "data_loader_seed": 1, "shuffle": False}
    trainer.config.critic = dict(trainer.config.critic) | more
    trainer.actor_rollout_wg, trainer.critic_wg = Workers(), Workers()
    padded = trainer._get_required_batch_multiple(num_processes)
    batch = KVBatchMeta(partition_id="train", keys=[], tags=[], extra_info={})
    trainer._update_actor(batch, {})
    trainer._update_critic(batch, {})
    assert trainer.actor_rollout_wg.given["mini_batch_size"] * UPDATES == padded
    divisors = [
        group.given["global_batch_size"] for group in (trainer.actor_rollout_wg, trainer.critic_wg)
    ]
    # Nothing of it stays.
    policy = trainer.config.actor_rollout_ref
    assert (policy.rollout.n, policy.actor.ppo_mini_batch_size) == (2, 1)
    assert trainer.actor_rollout_wg.update_actor.__func__ is Workers.update_actor
    assert trainer.critic_wg.train_mini_batch.__func__ is Workers.train_mini_batch
    return padded, divisors


def parts(num_rows, padded, num_processes):
    """Rows of each update and process; numbers from ``num_rows`` on are padding."""
    dealt = [row for first in range(num_processes) for row in range(first, padded, num_processes)]
    order = with_spread_padding([row >= num_rows for row in dealt], num_processes, UPDATES)
    rows = torch.tensor([dealt[place] for place in order])
    return rows.view(num_processes, UPDATES, -1).transpose(0, 1)


def row_losses(num_rows, padded):
    """A loss per token and a mask; rows of padding have neither."""
    generator = torch.Generator().manual_seed(1)
    losses_NT = torch.rand(num_rows, LONGEST, generator=generator)
    lengths_N = 1 + torch.arange(padded) % LONGEST
    mask_NT = (torch.arange(LONGEST) < lengths_N[:, None]).float()
    mask_NT[num_rows:] = 0.0
    return torch.cat([losses_NT, torch.ones(padded - num_rows, LONGEST)]), mask_NT


CASES = [(40, 16), (41, 16), (41, 1), (7, 3), (40, 4)]


@pytest.mark.parametrize("mode", ["seq-mean-token-sum", "seq-mean-token-mean"])
@pytest.mark.parametrize(("num_rows", "num_processes"), CASES)
def test_the_policys_loss_over_padded_rows_is_that_over_the_real_ones(
    mode, num_rows, num_processes
):
    """40 rows, 2 updates, 16 processes: 64 rows with padding, 20 real ones an update, not 32."""
    padded, (divisor, _) = sizes(num_rows, num_processes)
    assert divisor == num_rows / UPDATES
    assert padded == UPDATES * num_processes * math.ceil(num_rows / UPDATES / num_processes)
    losses_NT, mask_NT = row_losses(num_rows, padded)

    def loss(rows, processes, size):
        options = {"dp_size": processes, "global_batch_size": size}
        return agg_loss(losses_NT[rows], mask_NT[rows], mode, **options).item()

    # FSDP takes the mean of the processes' gradients.
    found = sum(
        loss(rows, num_processes, divisor) / num_processes
        for update in parts(num_rows, padded, num_processes)
        for rows in update
    )
    # One process without padding, both updates together: each row weighs 2 / num_rows.
    expected = loss(torch.arange(num_rows), 1, num_rows / UPDATES)
    assert found == pytest.approx(expected, rel=1e-5)
    # verl's own divisor would leave num_rows / padded of it: 40 / 64 = 0.625.
    verls = loss(torch.arange(padded), 1, padded / UPDATES)
    assert verls == pytest.approx(expected * num_rows / padded, rel=1e-5)


@pytest.mark.parametrize(("num_rows", "num_processes"), CASES)
def test_the_critics_loss_over_padded_rows_is_that_over_the_real_ones(
    monkeypatch, num_rows, num_processes
):
    """Errors of 1 in each of 40 rows, 2 updates: half of 1 each, 1 in all, not 0.625."""
    padded, (_, divisor) = sizes(num_rows, num_processes)
    monkeypatch.setattr(critic, "no_padding_2_padding", lambda values, data: values)
    total = 0.0
    for update in parts(num_rows, padded, num_processes):
        for rows in update:
            # A row of two tokens; that of padding has none in the loss, and an error of 1 too.
            masks = [torch.full((2,), float(row < num_rows)) for row in rows]
            columns = {"returns": [torch.ones(2)] * len(rows), "response_mask": masks}
            nested = {
                name: torch.nested.as_nested_tensor(each, layout=torch.jagged)
                for name, each in columns.items()
            }
            data = TensorDict(nested, batch_size=len(rows))
            tu.assign_non_tensor(data, dp_size=num_processes, global_batch_size=divisor)
            loss, _ = turn_value_loss({"values": torch.zeros(len(rows), 2)}, data)
            total += loss.item() / num_processes
    assert total == pytest.approx(1.0, rel=1e-5)

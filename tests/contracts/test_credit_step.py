"""The steps of verl that a method with its own credit changes: sizes, padding, loss, KL."""

from types import SimpleNamespace

import pytest
from credit_trainer import Trainer, filled, score
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1 import PPOTrainerSync

from recipe.hint.adapter.critic import turn_value_loss
from recipe.hint.methods.archer import Archer, ArcherSettings
from recipe.hint.methods.grpo import Grpo

LITE = Archer(settings=ArcherSettings(variant="lite"))


class Critic:
    """The critic's workers: the loss that they were given last."""

    world_size = 1

    def set_loss_fn(self, loss):
        self.loss = loss


@pytest.mark.parametrize(("method", "is_ours"), [(LITE, True), (Grpo(), False)])
def test_verls_critic_gets_the_loss_of_turns_for_a_method_with_its_own_credit_alone(
    monkeypatch, method, is_ours
):
    trainer = Trainer(method)
    trainer.use_critic, trainer.critic_wg = True, Critic()
    # verl's own start sets its loss.
    monkeypatch.setattr(PPOTrainerSync, "_setup", lambda self: self.critic_wg.set_loss_fn("verl's"))
    trainer._setup()
    assert trainer.critic_wg.loss == (turn_value_loss if is_ours else "verl's")


def balanced(monkeypatch, method, *, num_rows):
    """So many rows of 4 prompts, of 1 prompt an update, as verl balances them for one process."""
    queue, batch = filled(monkeypatch, method, [{0: [1, 0], 1: [1, 0]}] * 4)
    batch = KVBatchMeta(
        partition_id="train", keys=batch.keys[:num_rows], tags=batch.tags[:num_rows]
    )
    trainer = Trainer(method, prompts=4, mini=1)
    trainer.actor_rollout_wg = SimpleNamespace(_dispatch_info={"actor": [0]})
    return trainer._balance_batch(batch, {})


def test_the_padding_of_a_balanced_batch_is_spread_over_its_updates(monkeypatch):
    """5 rows, 4 updates: 2 rows each, 8 in all. Appended, the padding would leave 2, 2, 1, 0."""
    batch = balanced(monkeypatch, score(), num_rows=5)
    is_real = [not tag.get("is_padding") for tag in batch.tags]
    assert len(is_real) == 8
    assert sorted(sum(is_real[at : at + 2]) for at in range(0, 8, 2)) == [1, 1, 1, 2]
    # Keys move with their tags.
    assert [key.startswith("uid") for key in batch.keys] == is_real


def test_a_batch_of_another_method_stays_as_verl_balances_it(monkeypatch):
    """5 rows, and updates of 1 prompt x G = 2 rows: one row of padding, and no order of ours."""
    ordered = []
    monkeypatch.setattr(KVBatchMeta, "reorder", lambda self, order: ordered.append(order))
    balanced(monkeypatch, Grpo(), num_rows=5)
    assert [sorted(order) for order in ordered] == [list(range(6))]


def test_a_share_between_two_syncs_has_its_part_of_the_updates():
    """8 prompts in 2 shares of 4, 2 an update: 2 updates of a share's 16 rows, 8 rows each."""
    trainer = Trainer(score(), prompts=8, mini=2)
    trainer.parameter_sync_step, trainer._num_rows = 2, 16
    assert trainer._get_required_batch_multiple(1) == 16
    assert (trainer._num_updates, trainer._rows_per_update) == (2, 8)


def test_an_update_is_whole_for_numbers_of_processes_that_do_not_divide_each_other():
    """7 rows for 2 processes of the policy and 3 of the critic: 12, as 8 or 9 fit only one."""
    trainer = Trainer(score(), prompts=1, mini=1)
    trainer.use_critic, trainer.critic_wg = True, SimpleNamespace(world_size=3)
    trainer._num_rows = 7
    assert trainer._get_required_batch_multiple(2) == 12
    assert trainer._rows_per_update % 6 == 0

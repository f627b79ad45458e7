"""The steps of verl that a method with its own credit changes: sizes, padding, loss, KL."""

from types import SimpleNamespace

import pytest
from credit_trainer import Trainer, score
from verl.trainer.ppo.v1 import PPOTrainerSync

from recipe.hint.adapter.critic import turn_value_loss
from recipe.hint.methods.grpo import Grpo

WITH_CRITIC = score(baseline="value")


class Critic:
    """The critic's workers: the loss that they were given last."""

    world_size = 1

    def set_loss_fn(self, loss):
        self.loss = loss


@pytest.mark.parametrize(("method", "is_ours"), [(WITH_CRITIC, True), (Grpo(), False)])
def test_verls_critic_gets_the_loss_of_turns_for_a_method_with_its_own_credit_alone(
    monkeypatch, method, is_ours
):
    trainer = Trainer(method)
    trainer.use_critic, trainer.critic_wg = True, Critic()
    # verl's own start sets its loss.
    monkeypatch.setattr(PPOTrainerSync, "_setup", lambda self: self.critic_wg.set_loss_fn("verl's"))
    trainer._setup()
    assert trainer.critic_wg.loss == (turn_value_loss if is_ours else "verl's")


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

"""The models beside the policy that a method with credit of its own has verl build."""

from __future__ import annotations

from omegaconf import DictConfig, open_dict

from recipe.hint.methods import Method


def ask_for_models(config: DictConfig, method: Method) -> None:
    """Have verl build the critic and the reference policy that a method reads.

    verl builds the reference for a KL in the reward, here with the coefficient 0, or in the loss.
    The queue has both log-probabilities then, and the method's own coefficients act on the
    advantages.
    """
    if not method.has_own_credit:
        return
    with open_dict(config):
        if method.needs_critic:
            config.critic.enable = True
        if method.needs_reference:
            config.algorithm.use_kl_in_reward = True
            config.algorithm.kl_ctrl.type = "fixed"
            config.algorithm.kl_ctrl.kl_coef = 0.0

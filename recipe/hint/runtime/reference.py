"""verl's reference policy for methods whose turns have KL coefficients of their own."""

from __future__ import annotations

from omegaconf import DictConfig, open_dict

from recipe.hint.methods import Method


def ask_for_reference(config: DictConfig, method: Method) -> None:
    """Have verl build the reference policy for a method with KL coefficients of its own.

    verl builds it for a KL in the reward, here with the coefficient 0, or in the loss. The queue
    has both log-probabilities then, and the method's own coefficients act on the advantages.
    """
    if method.has_own_credit and method.needs_reference:
        with open_dict(config):
            config.algorithm.use_kl_in_reward = True
            config.algorithm.kl_ctrl.type = "fixed"
            config.algorithm.kl_ctrl.kl_coef = 0.0

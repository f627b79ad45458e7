"""The models beside the policy that a method with credit of its own has verl build."""

from __future__ import annotations

from omegaconf import DictConfig, open_dict

from recipe.hint.methods import Method, OwnCredit


def ask_for_models(config: DictConfig, method: Method) -> None:
    """Have verl build the critic and the reference policy that a method reads.

    verl builds the reference for a KL in the reward, here with the coefficient 0, or in the loss.
    The queue has both log-probabilities then, and the method's own coefficients act on the
    advantages.
    """
    if not isinstance(method, OwnCredit):
        return
    with open_dict(config):
        if method.needs_critic:
            config.critic.enable = True
        if method.needs_reference:
            config.algorithm.use_kl_in_reward = True
            config.algorithm.kl_ctrl.type = "fixed"
            config.algorithm.kl_ctrl.kl_coef = 0.0


def has_adapter(config: DictConfig) -> bool:
    """Return whether a LoRA adapter is trained, not the model under it."""
    return bool(config.actor_rollout_ref.model.get("lora_rank"))


def read_base_of_adapter(config: DictConfig) -> None:
    """Have vLLM read the model under an adapter from its folder.

    With verl's ``load_format=dummy`` the first sync sends it, in fp32 through the memory of every
    process, and hangs at a weight above a bucket, such as Qwen2.5-7B's embedding.
    """
    merges = config.actor_rollout_ref.model.get("lora", {}).get("merge")
    if has_adapter(config) and not merges:
        config.actor_rollout_ref.rollout.load_format = "auto"

"""The trainer's attention, and the models beside the policy that a method reads."""

from __future__ import annotations

import importlib
from typing import Any

from omegaconf import DictConfig, open_dict

from recipe.hint.methods import Method
from recipe.run.config import MODEL_NODE, setting
from recipe.run.errors import ConfigError, one_line

_ULYSSES = "fsdp_config.ulysses_sequence_parallel_size"


def ask_for_models(config: DictConfig, method: Method) -> None:
    """Have verl build the critic and the reference policy that a method reads.

    verl builds the reference for a KL in the reward, here with the coefficient 0; the method's own
    coefficients act on the advantages.
    """
    if method.credit is None:
        return
    with open_dict(config):
        if method.needs.critic:
            config.critic.enable = True
        if method.needs.reference:
            config.algorithm.use_kl_in_reward = True
            config.algorithm.kl_ctrl.type = "fixed"
            config.algorithm.kl_ctrl.kl_coef = 0.0


def read_base_of_adapter(config: DictConfig) -> None:
    """Have vLLM read the model under a LoRA adapter from its folder.

    With verl's ``load_format=dummy`` the first sync sends it, in fp32 through the memory of every
    process, and hangs at a weight above a bucket, such as Qwen2.5-7B's embedding.
    """
    model = config.actor_rollout_ref.model
    if model.get("lora_rank") and not model.get("lora", {}).get("merge"):
        config.actor_rollout_ref.rollout.load_format = "auto"


def flash_attn_missing() -> str | None:
    """Return why flash-attn cannot be imported; ``None`` if it can."""
    try:
        importlib.import_module("flash_attn")
    except ImportError as error:
        return one_line(error, 200)
    return None


def choose_attention(config: DictConfig) -> list[str]:
    """Write the trainer's attention into the settings where nothing else is given.

    verl's own default is flash-attn. Without it torch's attention serves, or transformers' plain
    one for a model that caps its attention logits, which torch's cannot; a line to show says so.
    """
    if setting(config, "trainer.eval_only") or (reason := flash_attn_missing()) is None:
        return []
    # verl shares a row out in flash-attn's call alone; another would see a part of it.
    for name in (f"actor_rollout_ref.{engine}.{_ULYSSES}" for engine in ("actor", "ref")):
        if (setting(config, name) or 1) > 1:
            raise ConfigError(
                f"{name} above 1 needs flash-attn, which cannot be imported ({reason})"
            )
    if setting(config, f"{MODEL_NODE}.override_config.attn_implementation") is not None:
        return []
    chosen = "eager" if _caps_attention(setting(config, f"{MODEL_NODE}.path")) else "sdpa"
    with open_dict(config):
        config.actor_rollout_ref.model.override_config.attn_implementation = chosen
    return [f"attention {chosen}: flash-attn cannot be imported ({reason})"]


def _caps_attention(path: Any) -> bool:
    """Return whether the model caps its attention logits; other checks report a broken file."""
    from transformers import PretrainedConfig

    try:
        found, _ = PretrainedConfig.get_config_dict(path)
    except (OSError, ValueError, TypeError):
        return False
    return found.get("text_config", found).get("attn_logit_softcapping") is not None

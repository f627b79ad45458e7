"""Choose the trainer's attention: flash-attn if it can be imported, otherwise another one."""

from __future__ import annotations

import importlib
from typing import Any

from omegaconf import DictConfig, open_dict

from recipe.hint.adapter.preflight.settings import MODEL_NODE, setting
from recipe.run.errors import ConfigError, one_line

NAME = f"{MODEL_NODE}.override_config.attn_implementation"
FLASH = "flash_attention_2"
_MODEL = f"{MODEL_NODE}.path"
_ULYSSES = "ulysses_sequence_parallel_size"


def choose_attention(config: DictConfig) -> list[str]:
    """Write the trainer's attention into the settings where nothing else is given.

    verl's own default is flash-attn. Without it torch's attention serves, or transformers' plain
    one for a model that caps its attention logits, which torch's cannot.

    Returns:
        A line to show, where flash-attn would have been taken.

    Raises:
        ConfigError: If a setting needs flash-attn and it cannot be imported, or if the model caps
            its attention logits and the attention given leaves that out.
    """
    if setting(config, "trainer.eval_only"):
        return []
    given, is_capped = setting(config, NAME), _caps_attention(config)
    if given == "sdpa" and is_capped:
        raise ConfigError(
            f"{NAME}=sdpa leaves out the cap on attention logits of {setting(config, _MODEL)} "
            f"(attn_logit_softcapping), so trainer and vLLM would differ; give eager"
        )
    reason = flash_attn_missing()
    if reason is None:
        return []
    _refuse_what_needs_flash(config, given, reason)
    if given is not None:
        return []
    chosen = "eager" if is_capped else "sdpa"
    with open_dict(config):
        config.actor_rollout_ref.model.override_config.attn_implementation = chosen
    return [f"attention {chosen}: flash-attn cannot be imported ({reason})"]


def flash_attn_missing() -> str | None:
    """Return why flash-attn cannot be imported; ``None`` if it can."""
    try:
        importlib.import_module("flash_attn")
    except ImportError as error:
        return one_line(error, 200)
    return None


def _refuse_what_needs_flash(config: DictConfig, given: Any, reason: str) -> None:
    gap = f"needs flash-attn, which cannot be imported ({reason})"
    if isinstance(given, str) and given == FLASH:
        raise ConfigError(f"{NAME}={given} {gap}; build it, or give sdpa")
    for engine in ("actor", "ref"):
        for name in (_ULYSSES, f"fsdp_config.{_ULYSSES}"):
            name = f"actor_rollout_ref.{engine}.{name}"
            if (size := setting(config, name) or 1) > 1:
                raise ConfigError(
                    f"{name}={size} {gap}: verl shares a row out in flash-attn's call; build it, "
                    f"or set it to 1"
                )
    estimator = setting(config, "algorithm.adv_estimator")
    has_critic = setting(config, "critic.enable")
    if has_critic is None:
        has_critic = estimator == "gae"
    if has_critic and setting(config, "trainer.device") == "cuda":
        raise ConfigError(
            f"algorithm.adv_estimator={estimator} with a critic {gap}: verl loads the value model "
            f"with {FLASH} and nothing else; build it, or choose an estimator, a method or a "
            f"baseline without a critic"
        )


def _caps_attention(config: DictConfig) -> bool:
    """Return whether the model caps its attention logits; other checks report a broken file."""
    path = setting(config, _MODEL)
    if not isinstance(path, str) or not path.strip():
        return False
    from transformers import AutoConfig

    trust = bool(setting(config, "actor_rollout_ref.model.trust_remote_code"))
    try:
        found = AutoConfig.from_pretrained(path, trust_remote_code=trust)
    except (OSError, ValueError, TypeError, KeyError):
        return False
    text = getattr(found, "text_config", found)
    return getattr(text, "attn_logit_softcapping", None) is not None

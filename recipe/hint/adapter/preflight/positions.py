"""How long a sequence of a model may be, as verl and vLLM see it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from recipe.hint.adapter.preflight.settings import ROLLOUT, setting
from recipe.run.errors import ConfigError

_POSITIONS = "max_position_embeddings"
_SERVED = f"{ROLLOUT}.engine_kwargs.vllm.hf_overrides"
# vLLM multiplies the positions by the factor of other kinds of RoPE.
_SCALED_ALREADY = (None, "default", "su", "longrope", "llama3")


def read_model_config(config: DictConfig, section: str, place: str | Path) -> tuple[Any, int]:
    """Return a model's configuration as verl overrides it, and its positions.

    Args:
        config: The run's.
        section: ``actor_rollout_ref.model`` or ``critic.model``.
        place: A folder, or a name on the hub.

    Raises:
        ConfigError: If verl could not override it.
        OSError, ValueError, TypeError, KeyError: If it cannot be read.
    """
    from transformers import AutoConfig
    from verl.utils.model import update_model_config
    from verl.workers.rollout.utils import get_max_position_embeddings

    trust = bool(setting(config, f"{section}.trust_remote_code"))
    found = AutoConfig.from_pretrained(place, trust_remote_code=trust)
    overrides = _plain(config, f"{section}.override_config")
    overrides = overrides.get("model_config", overrides)
    try:
        update_model_config(found, overrides)
    except AttributeError as error:  # verl sets attributes, also where the model has a mapping
        raise ConfigError(
            f"{section}.override_config={overrides} cannot be set in the configuration of {place} "
            f"({error}): verl changes single values and parts that are configurations, no mapping "
            f"such as rope_parameters; change it in the config.json of a copy of the model"
        ) from error
    return found, get_max_position_embeddings(found)


def check_served(config: DictConfig, place: str | Path, length: int) -> None:
    """Make sure that vLLM takes a length that verl's override of the model allows.

    vLLM reads the model's own files, with its own overrides.

    Raises:
        ConfigError: If it would refuse it.
    """
    from transformers import AutoConfig
    from verl.workers.rollout.utils import get_max_position_embeddings

    overrides = _plain(config, "actor_rollout_ref.model.override_config")
    name = f"actor_rollout_ref.model.override_config.{_POSITIONS}"
    if _POSITIONS not in str(overrides) or os.environ.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1":
        return
    trust = bool(setting(config, "actor_rollout_ref.model.trust_remote_code"))
    found = AutoConfig.from_pretrained(
        place, trust_remote_code=trust, **_plain(config, _SERVED)
    ).get_text_config()
    most, rope = get_max_position_embeddings(found), getattr(found, "rope_parameters", None) or {}
    if rope.get("rope_type") == "yarn":
        most = rope.get(f"original_{_POSITIONS}", most)
    if rope.get("rope_type") not in _SCALED_ALREADY:
        most *= rope.get("factor") or 1
    if length > most:
        raise ConfigError(
            f"{name} lets verl take {length} tokens, and vLLM, which reads {place}/config.json, "
            f"takes {most:g}; give +{_SERVED}.{_POSITIONS}={length} too, or "
            f"{ROLLOUT}.max_model_len={most:g} or less"
        )


def _plain(config: DictConfig, name: str) -> dict[str, Any]:
    node: Any = setting(config, name)
    if isinstance(node, str):  # vLLM's options take JSON too
        node = json.loads(node)
    found: Any = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
    return found if isinstance(found, dict) else {}

"""Where the policy's model is, and the models beside it that a method has verl build."""

from __future__ import annotations

import os

from omegaconf import DictConfig, open_dict

from recipe.hint.adapter.preflight.settings import MODEL_NODE, setting
from recipe.hint.methods import Method
from recipe.run.errors import ConfigError, one_line
from recipe.run.paths import model_folder

_MODEL = f"{MODEL_NODE}.path"
_PROBE_S = 10.0


def check_is_reached(config: DictConfig) -> None:
    """Ask the hub once for a model that is not here, before libraries ask again and again.

    Raises:
        ConfigError: If it does not give the model.
    """
    path = setting(config, _MODEL)
    if not isinstance(path, str) or path.count("/") != 1 or path[0] in "./~" or model_folder(path):
        return
    from httpx import HTTPError
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    try:
        get_hf_file_metadata(hf_hub_url(path, "config.json"), timeout=_PROBE_S)
    except (HTTPError, OSError) as error:
        offline = os.environ.get("HF_HUB_OFFLINE", "0")
        raise ConfigError(
            f"{_MODEL}={path}: no such folder here, no such model in the hub's cache, and the hub "
            f"does not give it (HF_HUB_OFFLINE={offline}; {one_line(error, 300)}); give the folder "
            f"of a model, or fetch it where the hub is reached: hf download {path}"
        ) from error


def ask_for_models(config: DictConfig, method: Method) -> None:
    """Have verl build the critic and the reference policy that a method reads.

    verl builds the reference for a KL in the reward, here with the coefficient 0, or in the loss.
    The queue has both log-probabilities then, and the method's own coefficients act on the
    advantages.
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

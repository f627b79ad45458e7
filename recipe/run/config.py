"""Read settings by their dotted names, and refuse values by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hydra.core.override_parser.types import Quote, QuotedString
from omegaconf import DictConfig, ListConfig, OmegaConf

from recipe.run.errors import ConfigError


def names(section: str, keys: str) -> tuple[str, ...]:
    """Return the dotted names of several settings of one section."""
    return tuple(f"{section}.{key}" for key in keys.split())


ACTOR, ROLLOUT, REF, MODEL_NODE = names("actor_rollout_ref", "actor rollout ref model")
PROMPT_LENGTH = f"{ROLLOUT}.prompt_length"
MINI, GROUP = f"{ACTOR}.ppo_mini_batch_size", f"{ROLLOUT}.n"
FUNCTION, KWARGS = names("reward", "custom_reward_function reward_kwargs")


def setting(config: DictConfig, name: str) -> Any:
    """Return the value of a dotted name; ``None`` where the config has no such node."""
    return OmegaConf.select(config, name)


def override(name: str, value: object) -> str:
    """Return a setting as a command line gives it, whatever characters a text has."""
    if isinstance(value, int | float):
        return f"{name}={str(value).lower()}"
    return f"{name}={QuotedString(str(value), Quote.single).with_quotes()}"


def files_of(config: DictConfig, name: str) -> list[str]:
    """Return a setting that is one file or a list of files as a list."""
    value = setting(config, name)
    many = list(value) if isinstance(value, list | tuple | ListConfig) else [value]
    return [str(each) for each in many if each is not None and str(each).strip()]


def leaves(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and the value of each setting; an empty mapping is a value."""
    for key, value in node.items():
        if isinstance(value, Mapping) and value:
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def is_separate(config: DictConfig) -> bool:
    """Return whether the run trains with rollouts on devices of their own."""
    mode = setting(config, "trainer.v1.trainer_mode")
    return mode == "separate_async" and not setting(config, "trainer.eval_only")


def world_size(config: DictConfig) -> int:
    """Return the number of trainer processes."""
    return setting(config, "trainer.nnodes") * setting(config, "trainer.n_gpus_per_node")


def rollout_devices(config: DictConfig) -> int:
    """Return the number of devices that only roll out."""
    nodes, each = (setting(config, f"{ROLLOUT}.{key}") for key in ("nnodes", "n_gpus_per_node"))
    return (nodes or 0) * (each or 0) if is_separate(config) else 0


def check(is_fine: object, message: str) -> None:
    """Raise ``ConfigError`` with the message unless all is fine."""
    if not is_fine:
        raise ConfigError(message)


def demand(config: DictConfig, name: str, choices: tuple[Any, ...], why: str = "") -> None:
    """Refuse a value that is none of the choices; null is always taken."""
    value = setting(config, name)
    if value is not None and value not in choices:
        told = f"{name}={value} is not supported {why}".rstrip()
        raise ConfigError(f"{told}; choose one of {', '.join(map(str, choices))}")

"""Which configuration a command has, and which of the given settings it does not read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

from recipe.hint.adapter.preflight.settings import ROLLOUT, check_sections, setting
from recipe.hint.command.aliases import given_settings
from recipe.hint.settings import (
    HintSettings,
    check_settings_are_read,
    evaluated_method,
    read_settings,
    settings_of,
)
from recipe.run.errors import ConfigError

_SAMPLING = ("temperature", "top_p", "top_k")
# Settings of a training that an evaluation would silently ignore.
_NOT_EVALUATED = {
    "data.val_max_samples": "would not be read: an evaluation is of whole files; drop it, or give "
    "a file of fewer rows",
    "actor_rollout_ref.model.lora_adapter_path": "would not be read: an evaluation serves the "
    "weights of actor_rollout_ref.model.path alone; give a checkpoint of the training, whose "
    "adapter is merged, or a folder with the adapter merged",
}


def resolved(config: DictConfig) -> tuple[DictConfig, HintSettings]:
    """Return the configuration without interpolations, and its typed ``hint:`` settings.

    Raises:
        ConfigError: Naming the setting.
    """
    node: Any = OmegaConf.to_container(config, resolve=True)
    config = DictConfig(node)
    check_sections(config)
    return config, read_settings(node["hint"])


def method_name(config: DictConfig) -> str:
    """Return the name of the method; whether there is one of that name is not looked up.

    Raises:
        ConfigError: If it is not a name.
    """
    name = setting(config, "trainer.method")
    if not isinstance(name, str):
        raise ConfigError(f"trainer.method={name} must be the name of a method")
    return name


def check_given_to_evaluation(config: DictConfig, argv: Sequence[str]) -> None:
    """Refuse settings that an evaluation does not read; the settings are still as they were given.

    A command line with a method, an experiment or the order of the training data may be that of a
    run whose weights are evaluated: it gives what its method reads.

    Raises:
        ConfigError: Naming the setting, and the one that is read.
    """
    given, settings = given_settings(argv), settings_of(config)
    check_settings_are_read(method_name(config), given, settings)
    for name, told in _NOT_EVALUATED.items():
        if setting(config, name) not in (None, -1):
            raise ConfigError(f"{name}={setting(config, name)} {told}")
    if given.keys() & {"trainer.method", "experiment", "data.seed"}:
        return
    check_settings_are_read(
        evaluated_method(config), given, settings, who="trainer.eval_only=true, without hints"
    )
    _check_sampling_given(given, ROLLOUT, f"{ROLLOUT}.val_kwargs", "an evaluation")


def check_given_to_question(config: DictConfig, argv: Sequence[str]) -> None:
    """Refuse settings that a question to a model does not read: it samples as training does."""
    given = given_settings(argv)
    check_settings_are_read(method_name(config), given, settings_of(config))
    _check_sampling_given(given, f"{ROLLOUT}.val_kwargs", ROLLOUT, "main_ask.py")


def _check_sampling_given(given: Collection[str], unread: str, read: str, who: str) -> None:
    for name in _SAMPLING:
        if f"{unread}.{name}" in given and f"{read}.{name}" not in given:
            raise ConfigError(
                f"{unread}.{name} would not be read: {who} samples with {read}.{name}; give that"
            )

"""Keys that nothing reads: verl takes them without a word, from a `+` and from a file alike."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from recipe.hint.command.compose import flat_names, nearest
from recipe.hint.errors import ConfigError

_VERL_SETTINGS = "_generated_ppo_trainer.yaml"
_ROLLOUT = "actor_rollout_ref.rollout"
# Settings of ours inside verl's sections; `hint` is read by `read_settings`, which knows its keys.
OURS = (
    "preflight_only",
    "trainer.method",
    "trainer.hint_accuracy_min_threshold",
    "trainer.hint_accuracy_max_threshold",
    "trainer.eval_only",
)
# What verl 0.9.1 reads (`.get("...")`) but leaves out of its files; the test of this file finds
# these in the installed source, and no others.
READ_BY_VERL = (
    "model_engine",
    "data.cache_dir",
    "data.chat_template_func",
    "data.filter_prompts",
    "data.need_tools_kwargs",
    "trainer.remove_previous_ckpt_in_save",
    "trainer.wandb_proxy",
)
# Fields of verl's dataclasses that the presets give: known without importing verl.
_TYPED = (
    f"{_ROLLOUT}.enable_sleep_mode",
    f"{_ROLLOUT}.agent.agent_loop_manager_class",
    "actor_rollout_ref.actor.fsdp_config.mixed_precision",
)
# Sections with entries in verl's file whose keys belong to somebody else: Ray, TransferQueue's
# backends, engines by name, teachers by name.
OPEN = (
    "hint",
    "ray_kwargs.ray_init",
    "transfer_queue",
    f"{_ROLLOUT}.engine_kwargs",
    "distillation.teacher_models",
    "reward",  # preflight_rewards looks at each of its keys
)


def check_keys(config: DictConfig) -> None:
    """Refuse a key that neither verl nor this recipe reads, wherever it was given.

    A mapping that is empty or null in verl's file is somebody else's (vLLM's arguments, the model's
    configuration): what is in it is not looked at. In a section with a dataclass of verl's, the
    fields of that dataclass are known too.

    Raises:
        ConfigError: Naming the key and the one that was probably meant.
    """
    known = _known(Path(os.environ["HINT_VERL_CONFIG"]) / _VERL_SETTINGS)
    found = OmegaConf.to_container(config, resolve=False)
    assert isinstance(found, dict)
    for name, target in _unknown(found, known):
        section, _, key = name.rpartition(".")
        fields = _fields(target)
        if key in fields:
            continue
        hints = flat_names({"hint": found["hint"]})
        meant = nearest(
            name, [*flat_names(known), *(f"{section}.{each}" for each in fields), *hints]
        )
        raise ConfigError(
            f"{name} is a key that neither verl nor this recipe reads: it would change nothing"
            f"{f'; did you mean {meant}?' if meant else '; drop it'}"
        )


@functools.cache
def _known(file: Path) -> dict[str, Any]:
    """verl's settings with their defaults, and ours among them."""
    known = OmegaConf.to_container(OmegaConf.load(file), resolve=False)
    assert isinstance(known, dict)
    for name in (*OURS, *READ_BY_VERL, *_TYPED):
        *sections, key = name.split(".")
        node = known
        for section in sections:
            node = node[section]
        node[key] = None
    return known


def _unknown(
    found: Mapping[str, Any], known: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str]]:
    """Keys that are not there in verl's file, each with the dataclass of its section."""
    target = found.get("_target_") or ""  # of the composed section: it may be another engine's
    for key, value in found.items():
        name = f"{prefix}{key}"
        if name in OPEN:
            continue
        if key not in known:
            yield name, target
        elif isinstance(value, Mapping) and isinstance(known[key], Mapping) and known[key]:
            yield from _unknown(value, known[key], f"{name}.")


def _fields(target: str) -> set[str]:
    """Fields of one of verl's dataclasses; the import takes seconds, so it is done on demand."""
    if not target:
        return set()
    from hydra.utils import get_class

    return {field.name for field in dataclasses.fields(get_class(target))}

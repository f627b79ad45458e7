"""Checks of verl's reward settings: each is read, or refused with the reason."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from recipe.hint.errors import ConfigError, VerifierError
from recipe.hint.runtime.rewards import (
    FUNCTION,
    KWARGS,
    MANAGER,
    grade_options,
    leaves,
    overlong_of,
)
from recipe.hint.settings import HintSettings
from recipe.hint.verify import GradeOptions
from recipe.hint.verify.pool.processes import WorkerFactory
from recipe.hint.verify.pool.workers import GRADE

_START_LIMIT_S = 120.0
_VERIFIER = "rewards come from the project's verifier (hint.verify.*) or your own function"
# What is read: whole names, and beginnings with a dot at the end.
_READ = (
    MANAGER,
    f"{FUNCTION}.path",
    f"{FUNCTION}.name",
    f"{FUNCTION}.reward_kwargs.",
    f"{KWARGS}.max_resp_len",
    *(f"{KWARGS}.overlong_buffer_cfg.{name}" for name in ("enable", "len", "penalty_factor")),
)
_MANAGERS = ("naive", "dapo")
# The beginning of a name -> why nothing reads it.
_REASONS = {
    "reward.num_workers": "answers are graded in the processes of hint.verify.num_workers",
    "reward.reward_manager.": "the search needs an accuracy per answer between two groups, so no "
    "reward manager of verl's runs; give the function to reward.custom_reward_function",
    "reward.reward_model.": f"no reward model is started: {_VERIFIER}",
    "reward.sandbox_fusion.": "programs run in the project's own sandbox (hint.verify.program_*)",
    f"{KWARGS}.overlong_buffer_cfg.log": "records.jsonl has what every answer trained with",
    f"{KWARGS}.": "only max_resp_len and overlong_buffer_cfg are read",
}
# verl 0.9.1's old places of the same settings; its synchronous trainers do not read them either.
_LEGACY = ("custom_reward_function", "reward_model", "sandbox_fusion")


def check_rewards(config: DictConfig, settings: HintSettings) -> None:
    """Refuse what would be ignored, and load the user's own function in a process.

    Raises:
        ConfigError: On the first reward setting that is not read, or cannot work.
    """
    for name in _LEGACY:
        for leaf, value in leaves(_plain(config, name), name):
            if value is not None:
                raise ConfigError(
                    f"{leaf}={value} would not be read: verl has moved this node to reward.{name}, "
                    f"and {_VERIFIER}; drop the setting"
                )
    defaults = dict(leaves(_defaults(), "reward"))
    # Its default here: verl's reward workers have nothing to do.
    defaults["reward.num_workers"] = 0
    for name, value in leaves(_plain(config, "reward"), "reward"):
        if name.startswith(_READ) or value == defaults.get(name):
            continue
        reason = next((text for head, text in _REASONS.items() if name.startswith(head)), _VERIFIER)
        raise ConfigError(f"{name}={value} would not be read: {reason}; drop the setting")
    manager = OmegaConf.select(config, MANAGER)
    if manager not in _MANAGERS:
        raise ConfigError(
            f"{MANAGER}={manager} would not be read: {_REASONS['reward.reward_manager.']}; "
            f"choose one of {', '.join(_MANAGERS)}"
        )
    overlong_of(config)
    _check_function(grade_options(settings.verify, config))


def _check_function(options: GradeOptions) -> None:
    """Start what the run will start, and see that it gets ready."""
    if not options.function_path:
        return
    factory = WorkerFactory(GRADE, options, _START_LIMIT_S)
    try:
        factory.check()
    except VerifierError as problem:
        raise ConfigError(f"{FUNCTION}.path={options.function_path}: {problem}") from problem
    finally:
        factory.close()


def _plain(config: DictConfig, name: str) -> Any:
    node = OmegaConf.select(config, name)
    return OmegaConf.to_container(node) if OmegaConf.is_config(node) else {}


@cache
def _defaults() -> dict[str, Any]:
    """verl's own values of its reward settings."""
    spec = importlib.util.find_spec("verl")
    assert spec is not None and spec.submodule_search_locations
    folder = Path(next(iter(spec.submodule_search_locations))) / "trainer" / "config" / "reward"
    return yaml.safe_load((folder / "reward.yaml").read_text("utf-8"))

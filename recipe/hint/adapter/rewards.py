"""What verl's ``reward`` node chooses, and the one grader of training and validation."""

from __future__ import annotations

from dataclasses import fields

from omegaconf import DictConfig, OmegaConf

from recipe.hint.settings import VerifySettings
from recipe.run.config import FUNCTION, KWARGS
from recipe.run.errors import ConfigError
from recipe.verify.options import GradeOptions
from recipe.verify.overlong import Overlong
from recipe.verify.pool.workers import VerifierPool

MANAGER = "reward.reward_manager.name"
_BUFFER = f"{KWARGS}.overlong_buffer_cfg"


def grade_options(settings: VerifySettings, config: DictConfig) -> GradeOptions:
    """Return the grading options, and the user's own function.

    Raises:
        ConfigError: If an option is out of range.
    """
    shared = {item.name for item in fields(GradeOptions)} & {item.name for item in fields(settings)}
    node = OmegaConf.select(config, FUNCTION)
    given = OmegaConf.to_container(node, resolve=True) if node is not None else {}
    assert isinstance(given, dict)
    return GradeOptions(
        **{name: getattr(settings, name) for name in shared},
        function_path=str(given.get("path") or ""),
        function_name=str(given.get("name") or ""),
        function_kwargs=given.get("reward_kwargs") or {},
    )


def build_grader(settings: VerifySettings, config: DictConfig) -> VerifierPool:
    """Make a pool of grading processes; they start with the first response that needs one.

    Args:
        settings: Limits, and the grading options that have a setting of the same name.
        config: The run's, for the user's own reward function.
    """
    return VerifierPool(
        num_workers=settings.num_workers,
        timeout_s=settings.timeout_s,
        options=grade_options(settings, config),
    )


def overlong_of(config: DictConfig) -> Overlong | None:
    """Return the over-long penalty, if ``reward.reward_manager.name=dapo`` asks for it.

    Raises:
        ConfigError: If the buffer has no length or does not fit, or has a part that is not read.
    """
    node = OmegaConf.select(config, _BUFFER)
    if node is None or not node.get("enable"):
        return None
    if OmegaConf.select(config, MANAGER) != "dapo":
        raise ConfigError(f"{_BUFFER}.enable=true is read by {MANAGER}=dapo only; set it")
    numbers = {
        f"{KWARGS}.max_resp_len": OmegaConf.select(config, f"{KWARGS}.max_resp_len"),
        f"{_BUFFER}.len": node.get("len"),
        f"{_BUFFER}.penalty_factor": node.get("penalty_factor"),
    }
    for name, value in numbers.items():
        kind = int | float if name.endswith("factor") else int
        if isinstance(value, bool) or not isinstance(value, kind):
            raise ConfigError(
                f"{name}={value} must be a {'' if kind is not int else 'whole '}number"
            )
    return Overlong(*numbers.values())

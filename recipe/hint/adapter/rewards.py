"""What verl's ``reward`` node chooses, and the one grader of training and validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

from omegaconf import DictConfig, OmegaConf

from recipe.hint.settings import VerifySettings
from recipe.run.config import FUNCTION, KWARGS
from recipe.run.errors import ConfigError
from recipe.verify.functions import overlong_penalty
from recipe.verify.options import GradeOptions
from recipe.verify.pool import VerifierPool

MANAGER = "reward.reward_manager.name"


def grade_options(settings: VerifySettings, config: DictConfig) -> GradeOptions:
    """Return the grading options, and the user's own function."""
    shared = {item.name for item in fields(GradeOptions)} & {item.name for item in fields(settings)}
    own = OmegaConf.select(config, FUNCTION) or {}
    return GradeOptions(
        **{name: getattr(settings, name) for name in shared},
        function_path=str(own.get("path") or ""),
        function_name=str(own.get("name") or ""),
        function_kwargs=OmegaConf.to_container(own.get("reward_kwargs") or OmegaConf.create()),  # pyright: ignore[reportArgumentType]
    )


def build_grader(settings: VerifySettings, config: DictConfig) -> VerifierPool:
    """Make a pool of grading processes; they start with the first response that needs one."""
    options = grade_options(settings, config)
    return VerifierPool(settings.num_workers, settings.timeout_s, options=options)


def overlong_of(config: DictConfig) -> Callable[[int], float] | None:
    """Return the over-long penalty, if ``reward.reward_manager.name=dapo`` asks for it."""
    node = OmegaConf.select(config, f"{KWARGS}.overlong_buffer_cfg")
    if node is None or not node.get("enable"):
        return None
    longest = OmegaConf.select(config, f"{KWARGS}.max_resp_len")
    given = (longest, node.get("len"), node.get("penalty_factor"))
    is_dapo = OmegaConf.select(config, MANAGER) == "dapo" and None not in given
    if not is_dapo or not 0 < given[1] <= longest:
        raise ConfigError(
            f"{KWARGS}.overlong_buffer_cfg.enable=true is read by {MANAGER}=dapo only, with "
            f"{KWARGS}.max_resp_len, overlong_buffer_cfg.len and .penalty_factor; "
            "set them, len above 0 and at most max_resp_len"
        )
    return lambda num_tokens: overlong_penalty(num_tokens, *given)

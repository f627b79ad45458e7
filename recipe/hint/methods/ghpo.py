"""GHPO: a longer beginning of the reference solution until the group is no longer difficult."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from recipe.hint.errors import ConfigError
from recipe.hint.methods.base import Method, Refresh
from recipe.hint.schema import FINAL_HINT_FAILURES, Attempt, Keep, Plan, Problem, ProblemState


@dataclass(frozen=True)
class GhpoSettings:
    """The decision of GHPO and of the baselines it is compared with.

    Attributes:
        mode: ``adaptive`` is GHPO; ``fixed_difficult`` hints difficult groups once, at ``level``;
            ``fixed_all`` hints every group at ``level``; ``none`` never hints.
        level: Level of the fixed modes.
        cold_start_steps: First steps of the run without hints.
        max_solved: A group is difficult when at most so many of its rollouts are right.
        on_all_failed: What trains when the highest level is difficult too.
        accuracy_weight: Factor of the accuracy in the reward.
        format_weight: Factor of the form in the reward.

    Raises:
        ConfigError: If a number is negative, or no reward is left.
    """

    mode: Literal["adaptive", "fixed_difficult", "fixed_all", "none"] = "adaptive"
    level: int = 2
    cold_start_steps: int = 20
    max_solved: int = 0
    on_all_failed: Literal["keep_last", "keep_level0", "drop"] = "keep_last"
    accuracy_weight: float = 1.0
    format_weight: float = 0.5

    def __post_init__(self) -> None:
        for name in ("cold_start_steps", "max_solved", "accuracy_weight", "format_weight"):
            if getattr(self, name) < 0:
                raise ConfigError(f"hint.ghpo.{name}={getattr(self, name)} must not be negative")
        if self.accuracy_weight == 0:
            raise ConfigError(
                "hint.ghpo.accuracy_weight=0 rewards no right answer; give it above 0"
            )


class Ghpo(Method):
    """Sample without a hint; where nobody is right, extend the prompt by more of the solution.

    Source: Liu et al. 2025, arXiv:2507.10628. Accuracy alone decides what is difficult; the form
    only adds to the reward. Every group trains under the prompt it was sampled from
    (docs/deviations.md#ghpo).
    """

    settings_cls = GhpoSettings
    uses_hints = True
    source = "solution_prefix"

    def __init__(
        self,
        *,
        max_level: int = 3,
        settings: GhpoSettings | None = None,
        refresh: Refresh | None = None,
    ) -> None:
        super().__init__(max_level=max_level, settings=settings, refresh=refresh)
        mode, level = self.settings.mode, self.settings.level
        if mode.startswith("fixed") and not 1 <= level <= max_level:
            raise ConfigError(
                f"hint.ghpo.level={level} must be from 1 to {max_level}, the number of levels "
                f"(that of hint.prefix.ratios)"
            )

    def open(self, problem: Problem, state: ProblemState) -> Plan:
        """No hint, but in the baseline that hints every group."""
        if state.step <= self.settings.cold_start_steps or self.settings.mode == "none":
            return Plan(level=0, is_plain=True)
        return Plan(level=self.settings.level if self.settings.mode == "fixed_all" else 0)

    def react(self, problem: Problem, attempts: Sequence[Attempt]) -> Plan | Keep:
        """A longer prefix while the group is difficult; a failed verifier decides nothing."""
        last, mode = attempts[-1], self.settings.mode
        if last.is_sampled and last.num_ungraded == len(last.rewards_G):
            return replace(Keep.last_sampled(attempts), is_dropped=True)
        if mode == "fixed_all":
            return super().react(problem, attempts)
        if last.plan.is_plain or last.is_ungraded or self._is_easy(last):
            return Keep.last_sampled(attempts)
        end = self.max_level if mode == "adaptive" else self.settings.level
        if last.hint_status in FINAL_HINT_FAILURES or last.plan.level >= end:
            return self._all_failed(attempts)
        return Plan(level=last.plan.level + 1 if mode == "adaptive" else self.settings.level)

    def reward(self, accuracy: float, form: float) -> float:
        """Accuracy and form, weighted."""
        return self.settings.accuracy_weight * accuracy + self.settings.format_weight * form

    def _is_easy(self, attempt: Attempt) -> bool:
        return sum(reward > 0 for reward in attempt.rewards_G) > self.settings.max_solved

    def _all_failed(self, attempts: Sequence[Attempt]) -> Keep:
        if self.settings.on_all_failed == "keep_level0":
            return Keep.group(attempts, 0)
        is_dropped = self.settings.on_all_failed == "drop"
        return replace(Keep.last_sampled(attempts), is_dropped=is_dropped)

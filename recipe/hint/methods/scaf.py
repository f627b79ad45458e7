"""Scaf-GRPO: the weakest hint that works replaces one failed rollout of the un-hinted group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recipe.hint.errors import ConfigError
from recipe.hint.methods.base import Method, Refresh
from recipe.hint.schema import Attempt, Keep, Plan, Problem, ProblemState


@dataclass(frozen=True)
class ScafSettings:
    """The scaffold.

    Attributes:
        increments: Pieces of each tier, shown one after the other.
        rollouts: Answers sampled at each of these steps.
        warmup_steps: First steps of the run without guidance.

    Raises:
        ConfigError: If a number is too small.
    """

    increments: int = 4
    rollouts: int = 1
    warmup_steps: int = 50

    def __post_init__(self) -> None:
        for name, smallest in (("increments", 1), ("rollouts", 1), ("warmup_steps", 0)):
            if getattr(self, name) < smallest:
                raise ConfigError(
                    f"hint.scaf.{name}={getattr(self, name)} must be at least {smallest}"
                )


class Scaf(Method):
    """Where a whole group fails, one guided rollout takes the place of one that failed.

    Level (t - 1) * increments + i shows the first i pieces of tier t: knowledge, planning,
    solution. The group stays one group: its advantages come from all G rewards, and each rollout
    trains under the prompt that it was sampled from (docs/methods/scaf.md).

    Source: Zhang et al. 2025, arXiv:2510.19807. Deviation: the levels are tried one after the
    other instead of all at once (docs/deviations.md#scaf).
    """

    settings_cls = ScafSettings
    uses_hints = True
    source = "dataset"

    def __init__(
        self,
        *,
        max_level: int = 3,
        settings: ScafSettings | None = None,
        refresh: Refresh | None = None,
    ) -> None:
        super().__init__(max_level=max_level, settings=settings, refresh=refresh)
        self.increments = self.settings.increments
        self.max_level = max_level * self.increments

    def open(self, problem: Problem, state: ProblemState) -> Plan:
        """No guidance before the group has failed, and none at all while it warms up."""
        return Plan(level=0, is_plain=state.step <= self.settings.warmup_steps)

    def react(self, problem: Problem, attempts: Sequence[Attempt]) -> Plan | Keep:
        """The next weakest hint until one works; a failed verifier ends the search."""
        group, last = attempts[0], attempts[-1]
        if last.is_solved and last is not group:
            return _replace_one(attempts)
        if self._is_climb_over(last):
            return Keep.group(attempts, 0)
        return Plan(last.plan.level + 1, rollouts=self.settings.rollouts)


def _replace_one(attempts: Sequence[Attempt]) -> Keep:
    """The first guided rollout that is right, for the last of the group, which all failed."""
    group, guided = attempts[0], attempts[-1]
    right = next(row for row, reward in enumerate(guided.rewards_G) if reward > 0)
    rows = tuple(range(len(group.rewards_G) - 1))
    return Keep(0, rows, borrowed=((len(attempts) - 1, right),))

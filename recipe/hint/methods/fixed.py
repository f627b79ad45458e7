"""One hint level for every problem at every visit."""

from __future__ import annotations

from dataclasses import dataclass

from recipe.hint.errors import ConfigError
from recipe.hint.methods.base import Method, Refresh
from recipe.hint.schema import Plan, Problem, ProblemState


@dataclass(frozen=True)
class FixedSettings:
    """``level`` is the constant level, from 1 to the number of levels."""

    level: int = 2


class Fixed(Method):
    """Always hint at the same level (ablation of arXiv:2602.03143, Fig. 3 and 5)."""

    settings_cls = FixedSettings
    uses_hints = True
    can_refresh = True

    def __init__(
        self,
        *,
        max_level: int = 3,
        settings: FixedSettings | None = None,
        refresh: Refresh | None = None,
    ) -> None:
        super().__init__(max_level=max_level, settings=settings, refresh=refresh)
        if not 1 <= self.settings.level <= max_level:
            raise ConfigError(
                f"hint.fixed.level={self.settings.level} must be from 1 to {max_level}, the "
                f"number of levels (hint.max_level, or that of hint.prefix.ratios)"
            )

    def open(self, problem: Problem, state: ProblemState) -> Plan:
        """The constant level, or none at a visit that refreshes."""
        if self.refresh.is_due(problem, state):
            return Plan(level=0, is_plain=True)
        return Plan(level=self.settings.level)

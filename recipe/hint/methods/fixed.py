"""Fixed level: always use the same hint level, for every problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recipe.hint.methods.base import Method, MethodSettings
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Hinted, Sample
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError


@dataclass(frozen=True)
class FixedSettings(MethodSettings):
    """``level`` is the constant level, from 1 to the number of levels."""

    level: int = 2


class Fixed(Method):
    """Always hint at the same level (ablation of arXiv:2602.03143, Fig. 3 and 5)."""

    settings_cls = FixedSettings
    settings_node = "hint.fixed"
    uses_hints = True

    def __init__(self, *, max_level: int = 3, **given: Any) -> None:
        super().__init__(max_level=max_level, **given)
        if not 1 <= self.settings.level <= max_level:
            raise ConfigError(
                f"hint.fixed.level={self.settings.level} must be from 1 to {max_level}, the "
                f"number of levels (hint.max_level, or that of hint.prefix.ratios)"
            )

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return the constant level."""
        return Sample(Hinted(self.settings.level))

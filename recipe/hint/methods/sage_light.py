"""SAGE-LIGHT: no search; the level follows the problem's last accuracy."""

from __future__ import annotations

from dataclasses import dataclass

from recipe.hint.errors import ConfigError
from recipe.hint.methods.base import Method
from recipe.hint.schema import Plan, Problem, ProblemState


@dataclass(frozen=True)
class LightSettings:
    """Thresholds on the accuracy of the previous visit, both in [0, 1].

    Raises:
        ConfigError: If they are out of range or in the wrong order.
    """

    hint_accuracy_min_threshold: float = 0.1
    hint_accuracy_max_threshold: float = 0.35

    def __post_init__(self) -> None:
        low, high = self.hint_accuracy_min_threshold, self.hint_accuracy_max_threshold
        for name, value in (("min", low), ("max", high)):
            if not 0.0 <= value <= 1.0:
                raise ConfigError(
                    f"trainer.hint_accuracy_{name}_threshold={value} is outside [0, 1]"
                )
        if low > high:
            raise ConfigError(
                f"trainer.hint_accuracy_min_threshold={low} is above "
                f"trainer.hint_accuracy_max_threshold={high}; give min <= max"
            )


def next_level(level: int, accuracy: float, max_level: int, settings: LightSettings) -> int:
    """Level of the next visit.

    ``accuracy`` below zero means unknown (first visit, failed hint, failed verifier): no change.
    """
    if accuracy < 0:
        return level
    if accuracy <= settings.hint_accuracy_min_threshold:
        return min(level + 1, max_level)
    if accuracy > settings.hint_accuracy_max_threshold:
        return max(level - 1, 0)
    return level


class SageLight(Method):
    """Move one level per visit: up when the accuracy was low, down when it was high.

    Source: Liao et al. 2026, arXiv:2602.03143, section on SAGE-LIGHT; thresholds as in the
    authors' script. The paper's own rule (raise below 0.35, never lower) is
    ``hint_accuracy_min_threshold=0.35 hint_accuracy_max_threshold=1.0``.
    """

    settings_cls = LightSettings
    uses_hints = True
    can_refresh = True

    def open(self, problem: Problem, state: ProblemState) -> Plan:
        """The level that the last visit's accuracy asks for; none at a visit that refreshes."""
        if self.refresh.is_due(problem, state):
            return Plan(level=0, is_plain=True)
        level = next_level(state.level, state.accuracy, self.max_level, self.settings)
        return Plan(level=level)

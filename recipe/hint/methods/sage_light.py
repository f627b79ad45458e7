"""SAGE-LIGHT: no search; the level follows the problem's last accuracy."""

from __future__ import annotations

from dataclasses import dataclass

from recipe.hint.methods.base import Method, MethodSettings, Share
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Sample, at_level
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError


@dataclass(frozen=True)
class SageLightSettings(MethodSettings):
    """Thresholds on the problem's last accuracy, both in [0, 1]."""

    hint_accuracy_min_threshold: Share = 0.1
    hint_accuracy_max_threshold: Share = 0.35

    def __post_init__(self) -> None:
        low, high = self.hint_accuracy_min_threshold, self.hint_accuracy_max_threshold
        if low > high:
            raise ConfigError(
                f"trainer.hint_accuracy_min_threshold={low} is above "
                f"trainer.hint_accuracy_max_threshold={high}; give min <= max"
            )


def next_level(
    level: int, accuracy: float | None, max_level: int, settings: SageLightSettings
) -> int:
    """Return the level of the next prompt rollout.

    An unknown ``accuracy`` (none before, failed hint, failed verifier) changes nothing.
    """
    if accuracy is None:
        return level
    if accuracy <= settings.hint_accuracy_min_threshold:
        return min(level + 1, max_level)
    if accuracy > settings.hint_accuracy_max_threshold:
        return max(level - 1, 0)
    return level


class SageLight(Method):
    """Move one level at a time: up when the accuracy was low, down when it was high.

    Source: Liao et al. 2026, arXiv:2602.03143, section on SAGE-LIGHT; thresholds as in the
    authors' script. The paper's own rule (raise below 0.35, never lower) is
    ``hint_accuracy_min_threshold=0.35 hint_accuracy_max_threshold=1.0``.
    """

    settings_cls = SageLightSettings
    settings_node = "trainer"
    uses_hints = True

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return the level that the last accuracy asks for."""
        level = next_level(state.level, state.accuracy, self.max_level, self.settings)
        return Sample(at_level(level))

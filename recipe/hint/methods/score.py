"""SCoRe: learn in two stages to revise a first attempt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from recipe.hint.methods.dialogue import Dialogue, SolverSettings


@dataclass(frozen=True)
class ScoreSettings(SolverSettings):
    """As the paper's for mathematics."""

    node: ClassVar[str] = "hint.score"


class Score(Dialogue):
    """Answer, then revise: the first turn earns its accuracy, the last its change.

    Credit stays in its turn. Source: Kumar et al. 2024, arXiv:2409.12917. Deviations:
    docs/lab/deviations.md#score.
    """

    settings_cls = ScoreSettings
    settings_node = ScoreSettings.node

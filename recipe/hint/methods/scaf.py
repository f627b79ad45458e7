"""Scaf-GRPO: the weakest hint that works replaces one failed rollout of the un-hinted group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from recipe.hint.methods.base import Count, Method, MethodSettings, Steps
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Bare, Decision, Hinted, Place, Round, Sample, Train
from recipe.problems.schema import Problem


@dataclass(frozen=True)
class ScafSettings(MethodSettings):
    """How guidance is cut into pieces and tried.

    Attributes:
        increments: Pieces of each tier, shown one after the other.
        rollouts: Responses sampled per piece.
        warmup_steps: First steps of the run without guidance.
    """

    increments: Count = 4
    rollouts: Count = 1
    warmup_steps: Steps = 50


class Scaf(Method):
    """If a whole group fails, an injected right response replaces one of the failed ones.

    Level (t - 1) * increments + i shows the first i pieces of tier t: knowledge, planning,
    solution. The group stays one group: its advantages come from all G rewards, and each rollout
    trains under the prompt that it was sampled from (docs/methods/scaf.md).

    Source: Zhang et al. 2025, arXiv:2510.19807. Deviation: the levels are tried one after the
    other instead of all at once (docs/lab/deviations.md#scaf).
    """

    settings_cls = ScafSettings
    settings_node = "hint.scaf"
    uses_hints = True
    source = "dataset"
    below_group = "rollouts"
    first_phase = "warmup_steps"

    def __init__(self, *, max_level: int = 3, **given: Any) -> None:
        super().__init__(max_level=max_level, **given)
        self.increments = self.settings.increments
        self.max_level = max_level * self.increments

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return no guidance before the group has failed, and none at all during the warm-up."""
        return Sample(Bare(), is_off_schedule=state.schedule_step <= self.settings.warmup_steps)

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Escalate until a hint works; a failed verifier ends the search."""
        group, last = rounds[0], rounds[-1]
        if last.is_solved and last is not group:
            # The first right response replaces the last row of the group, all of which failed.
            right = next(turn for turn, each in enumerate(last.accuracies_G) if each > 0)
            own = self.train_round(rounds, 0).rows[:-1]
            return Train((*own, self.row(rounds, Place(len(rounds) - 1, right))))
        if self.ends_escalation(last):
            return self.train_round(rounds, 0)
        return Sample(Hinted(last.level + 1), n=self.settings.rollouts)

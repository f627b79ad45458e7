"""SFT: imitate the reference solutions, optionally followed by GRPO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recipe.hint.credit.base import Credit, CreditRow
from recipe.hint.credit.baselines import grpo_advantages
from recipe.hint.methods.base import Count, Method, MethodSettings, Needs
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Decision, Place, Round, Row, Sample, Train
from recipe.problems.schema import Problem


@dataclass(frozen=True)
class SftSettings(MethodSettings):
    """How long the method imitates.

    Attributes:
        steps: First steps of the run that imitate; the others are GRPO. ``None``: all of them.
    """

    steps: Count | None = None


class SftCredit(Credit):
    """Imitation of solutions, GRPO for what was sampled."""

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return 1 for solutions and the advantages of GRPO for sampled rows, shape (N,)."""
        return np.where([row.is_given for row in rows], 1.0, grpo_advantages(rows))


class Sft(Method):
    """Raise the log-probability of the solutions' tokens; nothing is sampled meanwhile.

    Every row has the advantage 1, with which verl's loss at ratio 1 has the gradient of the
    log-likelihood.
    """

    settings_cls = SftSettings
    settings_node = "hint.sft"
    first_phase = "steps"
    phase_may_fill_run = True
    credit = SftCredit()

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        followed = self.settings.steps is not None  # by GRPO, which compares a group
        self.needs = Needs(solution=True, log_probs=True, group=followed)

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return the solution in the first steps, then a group."""
        if self.settings.steps is None or state.schedule_step <= self.settings.steps:
            return Sample(given=(problem.solution,), role="reference")
        return Sample()

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Train on the solution or the group; a solution that is missing or cut is dropped."""
        if not rounds[0].request.given:
            return self.train_round(rounds, 0)
        train = Train((Row(Place(0, 0), 1.0),))
        is_uncut = problem.solution.strip() and not rounds[0].turns[0].response.is_truncated
        return train if is_uncut else self.dropped(train)

"""Credit of solver and guide: rewards against a baseline, MLMT's bonus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from recipe.hint.credit.base import Credit
from recipe.hint.credit.baselines import Baseline, minus_baseline, state_values
from recipe.hint.credit.rows import CreditRow

# Facts of rows: a guide's turn, by its number in its round, and the number of the turn that a last
# turn continues.
GUIDE_TURN, PARENT_TURN = "guide_turn", "parent_turn"


@dataclass(frozen=True)
class DialogueCredit(Credit):
    """Reward minus baseline, with the bonus of MLMT-RL.

    ``bonus`` is lambda, the weight of V after the feedback in the guide's reward. With
    ``critic_ascends`` the critic ascends the guide's objective too: half the squared error minus
    lambda V has the gradient V - (reward + lambda), so after the feedback the target is lambda
    higher.
    """

    baseline: Baseline = "leave_one_out"
    bonus: float = 0.0
    critic_ascends: bool = False

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return reward, with the guide's bonus, minus baseline, shape (N,)."""
        return minus_baseline(self._with_bonus(rows), self.baseline)

    def value_targets(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return the rewards, shape (N,), with the guide's bonus where V is its baseline."""
        earning = self._with_bonus(rows) if self.baseline == "value" else rows
        ascends = self.bonus if self.critic_ascends else 0.0
        is_after_N = np.array([PARENT_TURN in row.facts for row in rows])
        return super().value_targets(earning) + ascends * is_after_N

    def _with_bonus(self, rows: Sequence[CreditRow]) -> Sequence[CreditRow]:
        """Add to each feedback's reward lambda times the mean V of the states that it leads to."""
        if not self.bonus:
            return rows
        after: dict[tuple[str, float], list[float]] = {}
        for row, value in zip(rows, state_values(rows), strict=True):
            if PARENT_TURN in row.facts:
                after.setdefault((row.prompt_uid, row.facts[PARENT_TURN]), []).append(value)
        return [
            replace(row, reward=row.reward + self.bonus * fmean(after[row.prompt_uid, turn]))
            if (turn := row.facts.get(GUIDE_TURN)) is not None
            else row
            for row in rows
        ]

"""Credit of solver and guide: rewards against a baseline, SCoRe's scaled KL, MLMT's bonus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from recipe.hint.credit.base import Credit
from recipe.hint.credit.baselines import Baseline, minus_baseline, state_values
from recipe.hint.credit.rows import CreditRow

# Facts of rows: whether the step is in stage I; a guide's turn, by its number in its round; and
# the number of the turn that a last turn continues.
STAGE1, GUIDE_TURN, PARENT_TURN = "is_stage1", "guide_turn", "parent_turn"


@dataclass(frozen=True)
class DialogueCredit(Credit):
    """Reward minus baseline, with what two of the methods add.

    With ``adaptive_kl`` stage I scales the first turns' KL coefficient to the last turns'
    advantages, by a factor of at most 10 either way. ``bonus`` is lambda, the weight of V after the
    feedback in the guide's reward. With ``critic_ascends`` the critic ascends the guide's objective
    too: half the squared error minus lambda V has the gradient V - (reward + lambda), so after the
    feedback the target is lambda higher.
    """

    baseline: Baseline = "leave_one_out"
    adaptive_kl: bool = False
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

    def kl_coefs(self, rows: Sequence[CreditRow], kls_N: np.ndarray) -> np.ndarray:
        """Return the rows' own coefficients, shape (N,); with ``adaptive_kl`` scaled."""
        coefs_N = super().kl_coefs(rows, kls_N)
        # In asynchronous modes a batch may hold rows of both stages. Guides have no stage.
        is_stage1_N = np.array([bool(row.facts.get(STAGE1)) for row in rows])
        is_first_N = is_stage1_N & np.array([not row.turn for row in rows])
        is_last_N = is_stage1_N & ~is_first_N
        if not self.adaptive_kl or not is_first_N.any() or not is_last_N.any():
            return coefs_N
        # The KL is the mean of log-ratios of either sign, not that of their magnitudes.
        penalty = abs((coefs_N * kls_N)[is_first_N].mean())
        earned = np.abs(self.advantages(rows))[is_last_N].mean()
        scale = np.clip(earned / max(penalty, 1e-12), 0.1, 10.0)
        return np.where(is_first_N, scale * coefs_N, coefs_N)

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

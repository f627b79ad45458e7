"""SCoRe: a second attempt after the instruction to revise, learnt in two stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from recipe.hint.credit.baselines import advantages
from recipe.hint.credit.rows import CreditRow
from recipe.hint.credit.shaping import progress_reward
from recipe.hint.errors import ConfigError
from recipe.hint.methods.base import Method
from recipe.hint.methods.final_turns import FinalTurns
from recipe.hint.schema import Problem, ProblemState
from recipe.hint.turns import Place, Revise, Round, Row, Sample, Train, path, places

_NOT_NEGATIVE = ("stage1_steps", "alpha", "beta1", "beta2", "offline_attempts")


@dataclass(frozen=True)
class ScoreSettings:
    """The two stages; the defaults are the paper's for mathematics.

    Attributes:
        stage1_steps: Steps of stage I; stage II is the rest of the run.
        alpha: Weight of the change from the first to the second turn, in stage II.
        beta1: KL coefficient of both turns; in stage I of the second.
        beta2: KL coefficient of the first turn in stage I.
        adaptive_beta2: Scale ``beta2`` at each step so that the KL of the first turns is as large
            as the advantages of the second, by a factor of at most 10 either way.
        solver_credit: What the first turn earns in stage II: ``score``, its own reward, or
            ``joint``, that of the second turn.
        offline_attempts: Conversations per prompt, beside the group, whose first turn is taken
            from the column ``first_attempts`` of the data; their second turns train.
        baseline: What a reward is compared with: the others of its turn, nothing, or the critic's
            value of the state before the turn.

    Raises:
        ConfigError: If a number is negative.
    """

    stage1_steps: int = 1500
    alpha: float = 10.0
    beta1: float = 0.01
    beta2: float = 0.1
    adaptive_beta2: bool = False
    solver_credit: Literal["score", "joint"] = "score"
    offline_attempts: int = 0
    baseline: Literal["leave_one_out", "none", "value"] = "leave_one_out"

    def __post_init__(self) -> None:
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise ConfigError(f"hint.score.{name}={getattr(self, name)} must not be negative")


class Score(Method):
    """Answer, then revise: the second turn earns what it changes, the first what it is worth.

    Stage I holds the first turn to the reference policy and trains the second; stage II trains
    both. Credit stays in its turn. Source: Kumar et al. 2024, arXiv:2409.12917. Deviations:
    docs/deviations.md#score.
    """

    settings_cls: ClassVar[type] = ScoreSettings
    settings_node: ClassVar[str] = "hint.score"
    has_own_credit: ClassVar[bool] = True

    @property
    def needs_reference(self) -> bool:
        """Whether a KL coefficient is above 0."""
        return self.settings.beta1 > 0 or self.settings.beta2 > 0

    @property
    def needs_critic(self) -> bool:
        """Whether the baseline is the critic's."""
        return self.settings.baseline == "value"

    def react(
        self, problem: Problem, state: ProblemState, rounds: Sequence[Round]
    ) -> Sample | Train:
        """Go on from every first turn, then train on all turns."""
        if len(rounds) == 1 and (given := problem.attempts[: self.settings.offline_attempts]):
            return Sample(given=given)
        if rounds[-1].request.parents is None:
            first = tuple(place for index in range(len(rounds)) for place in places(rounds, index))
            return Sample(Revise(), n=1, parents=first)
        is_stage1 = state.step <= self.settings.stage1_steps
        revised = places(rounds, len(rounds) - 1)
        return Train(
            (
                *self._first_rows(rounds, revised, is_stage1=is_stage1),
                *(self._last_row(rounds, place, is_stage1=is_stage1) for place in revised),
            )
        )

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return reward minus baseline, shape (N,): a turn is compared with the same turn."""
        return advantages(rows, self.settings.baseline)

    def kl_coefs(self, rows: Sequence[CreditRow], kls_N: np.ndarray) -> np.ndarray:
        """Return the rows' own coefficients, shape (N,); with ``adaptive_beta2`` scaled."""
        coefs_N = super().kl_coefs(rows, kls_N)
        is_first_N = np.array([bool(row.facts.get("is_stage1")) and not row.turn for row in rows])
        is_last_N = np.array([row.turn > 0 for row in rows])
        if not self.settings.adaptive_beta2 or not is_first_N.any() or not is_last_N.any():
            return coefs_N
        penalty = np.abs(coefs_N * kls_N)[is_first_N].mean()
        signal = np.abs(self.advantages(rows))[is_last_N].mean()
        scale = np.clip(signal / max(penalty, 1e-12), 0.1, 10.0) if signal else 1.0
        return np.where(is_first_N, scale * coefs_N, coefs_N)

    def validation(self) -> Method:
        """Return the same conversations, of which the last turns count."""
        settings = replace(self.settings, offline_attempts=0)
        return FinalTurns(type(self)(settings=settings))

    def _first_rows(
        self, rounds: Sequence[Round], revised: Sequence[Place], *, is_stage1: bool
    ) -> list[Row]:
        """Return the rows of the sampled first turns."""
        after = {path(rounds, place)[0]: place for place in revised}
        rows = []
        for place in places(rounds, 0):
            joint = self.settings.solver_credit == "joint"
            own = self._reward(rounds, after.get(place, place) if joint else place)
            kl_coef = self.settings.beta2 if is_stage1 else self.settings.beta1
            rows.append(
                Row(
                    *(place, 0.0 if is_stage1 else own, "turn1", kl_coef),
                    facts={"is_stage1": float(is_stage1)},
                )
            )
        return rows

    def _last_row(self, rounds: Sequence[Round], place: Place, *, is_stage1: bool) -> Row:
        """Return the row of a revision; a turn that could not be graded shows no change."""
        first = path(rounds, place)[0]
        before, after = self._reward(rounds, first), self._reward(rounds, place)
        verdicts = [rounds[each.round].turns[each.turn].verdict for each in (first, place)]
        is_ungraded = any(verdict and verdict.is_ungraded for verdict in verdicts)
        alpha = 0.0 if is_ungraded or is_stage1 else self.settings.alpha
        return Row(
            *(place, progress_reward(before, after, alpha), "turn2", self.settings.beta1),
            facts={"is_stage1": float(is_stage1)},
        )

    def _reward(self, rounds: Sequence[Round], place: Place) -> float:
        return self.reward(rounds[place.round].turns[place.turn])

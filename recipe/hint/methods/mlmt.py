"""MLMT-RL: solver and guide learn from the reward of the refined answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any, ClassVar, Literal

import numpy as np

from recipe.hint.credit.baselines import state_values
from recipe.hint.credit.rows import CreditRow
from recipe.hint.methods.score import PARENT_TURN
from recipe.hint.methods.score_guided import GUIDE, GUIDE_TURN, ScoreGuided, ScoreGuidedSettings
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Place, Row
from recipe.run.errors import ConfigError


@dataclass(frozen=True)
class MlmtSettings(ScoreGuidedSettings):
    """The tree of a prompt's turns, and who trains when.

    Attributes:
        solver_credit: ``joint``: both of the solver's turns earn the refinement's reward.
            ``score``: in stage II each earns its own, the last with ``alpha`` times the change.
        feedbacks: Feedback sampled per first turn, m.
        refinements: Refinements sampled per feedback, k.
        value_bonus: lambda, the weight of the critic's value after the feedback in the guide's
            reward (:attr:`bonus`).
        value_grad: ``stop``: the critic learns from rewards alone. ``full``: it ascends the guide's
            objective too, which adds lambda to its target after the feedback.
        t_low: Steps in a row that train the solver (the lower level) alone; ``t_high`` steps
            follow. Both 0: every step trains both roles.
        t_high: Steps in a row that train the guide (the higher level) alone.
    """

    stage1_steps: int = 0
    solver_credit: Literal["score", "joint"] = "joint"
    baseline: Literal["leave_one_out", "none", "value"] = "value"
    feedbacks: int = 1
    refinements: int = 1
    value_bonus: float = 0.1
    value_grad: Literal["stop", "full"] = "full"
    t_low: int = 0
    t_high: int = 0

    node: ClassVar[str] = "hint.mlmt"
    roles_alternate: ClassVar[bool] = True
    not_negative: ClassVar[tuple[str, ...]] = (
        *ScoreGuidedSettings.not_negative,
        "t_low",
        "t_high",
        "value_bonus",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("feedbacks", "refinements"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{self.node}.{name}={getattr(self, name)} must be at least 1")
        if (self.t_low == 0) != (self.t_high == 0):
            raise ConfigError(
                f"{self.node}.t_low={self.t_low} and t_high={self.t_high} take turns; give both "
                f"above 0, or both 0 to train both roles at every step (train_solver=false or "
                f"train_guide=false holds one of them)"
            )
        if self.t_low and not (self.train_solver and self.train_guide):
            raise ConfigError(
                f"{self.node}.t_low={self.t_low} alternates between two roles, but one of "
                f"train_solver and train_guide is false; drop t_low and t_high"
            )

    @property
    def bonus(self) -> float:
        """lambda, or 0 where no guide trains or V does not predict R.

        The critic sees only the policy's turns; with ``solver_credit=score`` it predicts
        r2 + alpha (r2 - r1).
        """
        predicts = self.solver_credit == "joint" or not self.alpha
        is_read = self.train_guide and self.solver == "policy" and predicts
        return self.value_bonus if is_read else 0.0

    def unread(self) -> dict[str, str]:
        """Return the settings without effect -> what would give them one."""
        found = super().unread()
        if not self.bonus:
            needs = "value_bonus above 0, train_guide=true, solver=policy and solver_credit=joint"
            found |= dict.fromkeys(("value_bonus", "value_grad"), needs)
        return found


class Mlmt(ScoreGuided):
    """Attempt, feedback, refinement: both roles earn the reward of the refinement.

    A turn is compared with its siblings: first turns of one prompt, feedback on one attempt,
    refinements of one feedback where there are several.
    Source: MLMT-RL (docs/methods/mlmt.md). Deviations: docs/lab/deviations.md#mlmt.
    """

    settings_cls = MlmtSettings
    settings_node = MlmtSettings.node
    roles_alternate: ClassVar[bool] = MlmtSettings.roles_alternate
    validation_settings: ClassVar[dict[str, Any]] = {
        **ScoreGuided.validation_settings,
        "feedbacks": 1,
        "refinements": 1,
    }

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.feedbacks = self.settings.feedbacks
        self.refinements = self.settings.refinements

    @property
    def needs_critic(self) -> bool:
        """Whether the baseline or the guide's bonus is the critic's."""
        return super().needs_critic or self.settings.bonus > 0

    @property
    def publishes_critic_rows(self) -> bool:
        """Whether the critic sees turns that do not train (:meth:`critic_rows`)."""
        settings = self.settings
        reads_solver = settings.bonus > 0 and not settings.train_solver
        return reads_solver or (self.needs_critic and settings.t_low > 0)

    @property
    def role_steps(self) -> tuple[int, int]:
        """``t_low`` and ``t_high``."""
        return self.settings.t_low, self.settings.t_high

    def check_steps(self, num_steps: int) -> None:
        """Refuse phases that leave a role out, and a stage I that outlasts the solver's phase."""
        super().check_steps(num_steps)
        first, t_low = self.settings.stage1_steps, self.settings.t_low
        if t_low >= num_steps:
            raise ConfigError(
                f"{self.settings_node}.t_low={t_low} leaves none of the run's {num_steps} steps to "
                f"the guide; give fewer, or train_guide=false"
            )
        if first > t_low > 0:
            raise ConfigError(
                f"{self.settings_node}.stage1_steps={first} is above t_low={t_low}: stages count "
                f"all steps, so that the guide's would be a part of stage I; give at most {t_low}"
            )

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return reward minus baseline, shape (N,), with the bonus in the guide's reward.

        The bonus is lambda times V of the state after the feedback; V* of the optimal solver is
        taken as 0 (docs/lab/deviations.md#mlmt).
        """
        return super().advantages(self._with_bonus(rows) if self.settings.bonus else rows)

    def value_targets(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return the rewards, shape (N,), with the guide's bonus where V is its baseline.

        ``value_grad=full``: half the squared error minus lambda V has the gradient
        V - (reward + lambda), so after the feedback the target is lambda higher.
        """
        settings = self.settings
        has_bonus = settings.bonus and settings.baseline == "value"
        targets_N = super().value_targets(self._with_bonus(rows) if has_bonus else rows)
        if settings.value_grad == "stop":
            return targets_N
        is_last_N = np.array([PARENT_TURN in row.facts for row in rows])
        return targets_N + settings.bonus * is_last_N

    def _with_bonus(self, rows: Sequence[CreditRow]) -> list[CreditRow]:
        """Add to each feedback's reward lambda times the mean V of the states that it leads to."""
        after: dict[tuple[str, float], list[float]] = {}
        for row, value in zip(rows, state_values(rows), strict=True):
            if PARENT_TURN in row.facts:
                after.setdefault((row.prompt_uid, row.facts[PARENT_TURN]), []).append(value)
        bonus = self.settings.bonus
        return [
            replace(
                row, reward=row.reward + bonus * mean(after[row.prompt_uid, row.facts[GUIDE_TURN]])
            )
            if GUIDE_TURN in row.facts
            else row
            for row in rows
        ]

    def critic_rows(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """Return the waiting role's rows; of a role that never trains, those that a bonus reads.

        These are refinements, which earn R alone beside a bonus.
        """
        settings = self.settings
        if not self.needs_critic:
            return ()
        if not settings.t_low:
            reads = settings.bonus > 0
            rows = tuple(row for row in rows if reads and PARENT_TURN in row.facts)
        return tuple(replace(row, weight=0.0, kl_coef=0.0) for row in rows)

    def trained_roles(self, state: ProblemState) -> tuple[bool, bool]:
        """Return whether the solver and whether the guide train at this step."""
        low, high = self.role_steps
        if not low:
            return super().trained_roles(state)
        is_low = (state.schedule_step - 1) % (low + high) < low
        return is_low, not is_low

    def guide_group(self, conversation: Sequence[Place]) -> str:
        """Return one group per attempt if it gets several feedbacks, else one for the prompt."""
        return f"{GUIDE}{_name(conversation[0])}" if self.feedbacks > 1 else GUIDE

    def last_group(self, conversation: Sequence[Place]) -> str:
        """Return the group of the nearest turn that several refinements continue."""
        if self.refinements > 1:
            return f"turn2{_name(conversation[-2])}"
        return f"turn2{_name(conversation[0])}" if self.feedbacks > 1 else "turn2"


def _name(place: Place) -> str:
    return f"-{place.round}.{place.turn}"

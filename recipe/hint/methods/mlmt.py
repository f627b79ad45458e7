"""MLMT-RL: solver and guide learn from the reward of the refined answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from recipe.hint.credit.baselines import Baseline
from recipe.hint.methods.base import Coefficient, Count, FinalTurns, Method, Steps
from recipe.hint.methods.dialogue import Dialogue, GuideSettings
from recipe.run.errors import ConfigError


@dataclass(frozen=True)
class MlmtSettings(GuideSettings):
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

    stage1_steps: Steps = 0
    solver_credit: Literal["score", "joint"] = "joint"
    baseline: Baseline = "value"
    feedbacks: Count = 1
    refinements: Count = 1
    value_bonus: Coefficient = 0.1
    value_grad: Literal["stop", "full"] = "full"
    t_low: Steps = 0
    t_high: Steps = 0

    node: ClassVar[str] = "hint.mlmt"

    def __post_init__(self) -> None:
        super().__post_init__()
        trains_both = self.train_solver and self.train_guide
        if (self.t_low == 0) != (self.t_high == 0) or (self.t_low and not trains_both):
            raise ConfigError(
                f"{self.node}.t_low={self.t_low} and t_high={self.t_high} take turns between two "
                f"roles that train; give both above 0, or both 0 (train_solver=false or "
                f"train_guide=false holds one of them)"
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


class Mlmt(Dialogue):
    """Attempt, feedback, refinement: both roles earn the reward of the refinement.

    Source: MLMT-RL (docs/methods/mlmt.md). Deviations: docs/lab/deviations.md#mlmt.
    """

    settings_cls = MlmtSettings
    settings_node = MlmtSettings.node
    roles_alternate = True

    def validation(self) -> Method:
        """Return the same conversations without branches, scored by their last turns."""
        return FinalTurns(Mlmt(settings=replace(self.settings, feedbacks=1, refinements=1)))

"""SCoRe: learn in two stages to revise a first attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from recipe.hint.credit.baselines import minus_baseline
from recipe.hint.credit.rows import CreditRow
from recipe.hint.methods.base import Method, MethodSettings
from recipe.hint.methods.final_turns import FinalTurns
from recipe.hint.methods.multi_turn import MultiTurn
from recipe.hint.methods.prompts import Revise
from recipe.hint.schema import ProblemState
from recipe.hint.turns import (
    Decision,
    Place,
    Round,
    Row,
    Sample,
    Train,
    conversation_to,
    places,
    turn_at,
)
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError

# Fact of a last turn: the index, in its round, of the turn that it continues.
PARENT_TURN = "parent_turn"


@dataclass(frozen=True)
class ScoreSettings(MethodSettings):
    """The two stages; the defaults are the paper's for mathematics.

    Attributes:
        stage1_steps: Steps of stage I; stage II is the rest of the run.
        alpha: Weight of the change from the first to the last turn, in stage II.
        beta1: KL coefficient of both turns in stage II, of the last turn in stage I.
        beta2: KL coefficient of the first turn in stage I.
        adaptive_beta2: Scale ``beta2`` at each step so that the KL of the first turns is as large
            as the advantages of the last ones, by a factor of at most 10 either way.
        solver_credit: ``score``: in stage II the first turn earns its own reward and the last one
            the change on top. ``joint``: both earn the last one's reward.
        offline_attempts: Further conversations per prompt that begin with a text of the column
            ``first_attempts``; their later turns train.
        baseline: What a reward is compared with: the others of its turn, nothing, or the critic's
            value of the state before the turn.
        show_failed_test: Whether the next prompt shows the test that a program failed.
    """

    stage1_steps: int = 250
    alpha: float = 10.0
    beta1: float = 0.01
    beta2: float = 0.1
    adaptive_beta2: bool = False
    solver_credit: Literal["score", "joint"] = "score"
    offline_attempts: int = 0
    baseline: Literal["leave_one_out", "none", "value"] = "leave_one_out"
    show_failed_test: bool = False

    node: ClassVar[str] = "hint.score"
    not_negative: ClassVar[tuple[str, ...]] = (
        "stage1_steps",
        "alpha",
        "beta1",
        "beta2",
        "offline_attempts",
    )

    def __post_init__(self) -> None:
        for name in self.not_negative:
            if getattr(self, name) < 0:
                raise ConfigError(f"{self.node}.{name}={getattr(self, name)} must not be negative")

    def unread(self) -> dict[str, str]:
        """Return the settings without effect -> what would give them one."""
        found = {}
        if self.solver_credit == "joint":
            found["alpha"] = "solver_credit=score"
        if not self.stage1_steps:
            found |= dict.fromkeys(("beta2", "adaptive_beta2"), "stage1_steps above 0")
        elif not self.beta2:
            found["adaptive_beta2"] = "beta2 above 0"
        return found


class Score(MultiTurn):
    """Answer, then revise: the first turn earns its accuracy, the last its change.

    Stage I holds the first turn to the reference policy and trains the last; stage II trains
    both. Credit stays in its turn. Source: Kumar et al. 2024, arXiv:2409.12917. Deviations:
    docs/lab/deviations.md#score.
    """

    settings_cls: ClassVar[type] = ScoreSettings
    settings_node: ClassVar[str] = ScoreSettings.node
    phase_may_fill_run: ClassVar[bool] = True
    stage1: ClassVar[str] = "stage1_steps"
    # In validation every conversation is sampled.
    validation_settings: ClassVar[dict[str, Any]] = {"offline_attempts": 0}

    @property
    def verdict_dependent_settings(self) -> tuple[str, ...]:
        """The failed test that a prompt shows."""
        return ("show_failed_test",) if self.settings.show_failed_test else ()

    @property
    def first_phase(self) -> tuple[str, int]:
        """Stage I."""
        return self.stage1, self.settings.stage1_steps

    @property
    def num_first_attempts(self) -> int:
        """``offline_attempts``."""
        return self.settings.offline_attempts

    @property
    def needs_reference(self) -> bool:
        """Whether a KL coefficient is above 0 at some step."""
        settings = self.settings
        return settings.beta1 > 0 or (settings.beta2 > 0 and settings.stage1_steps > 0)

    @property
    def needs_critic(self) -> bool:
        """Whether the baseline is the critic's."""
        return self.settings.baseline == "value"

    @property
    def compares_group(self) -> bool:
        """Whether the baseline is the other conversations'."""
        return self.settings.baseline == "leave_one_out"

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Continue every first turn, then train on all turns."""
        return self.next_turn(problem, rounds) or self.after_last(state, rounds)

    def next_turn(self, problem: Problem, rounds: Sequence[Round]) -> Sample | None:
        """Request the given first attempts, then the turns that follow all first ones."""
        given = problem.first_attempts[: self.settings.offline_attempts]
        if len(rounds) == 1 and given:
            return Sample(given=given)
        if rounds[-1].request.parents is None:
            first = tuple(place for index in range(len(rounds)) for place in places(rounds, index))
            return self.after_first(rounds, first)
        return None

    def after_first(self, rounds: Sequence[Round], first: tuple[Place, ...]) -> Sample:
        """Return the request that follows the first turns."""
        return Sample(Revise(self.settings.show_failed_test), n=1, parents=first)

    def after_last(self, state: ProblemState, rounds: Sequence[Round]) -> Train:
        """Return the decision on whole conversations."""
        return self.train_or_drop(self.solver_rows(state, rounds), rounds)

    def train_or_drop(self, rows: tuple[Row, ...], rounds: Sequence[Round]) -> Train:
        """Return the decision to train on rows; without any, publish a round that is dropped."""
        if rows:
            return Train(rows)
        sampled = [
            index
            for index, each in enumerate(rounds)
            if each.has_responses and not each.request.given
        ]
        # A round of the policy if there is one: a teacher's texts have no tokens.
        index = min(sampled, key=lambda index: rounds[index].request.asks_teacher)
        return self.dropped(Train(tuple(Row(place, 0.0) for place in places(rounds, index))))

    def solver_rows(self, state: ProblemState, rounds: Sequence[Round]) -> tuple[Row, ...]:
        """Return the rows of the sampled first turns and of the last turns.

        A reward is a difference or a mean of grades. Where a grade failed it is unknown, and there
        is no row: 0 would be the worst reward of some groups and the best of others.
        """
        settings, is_stage1 = self.settings, self.is_stage1(state)
        facts = {"is_stage1": float(is_stage1)}
        ended = [conversation_to(rounds, place) for place in places(rounds, len(rounds) - 1)]
        is_joint = settings.solver_credit == "joint"
        lasts: dict[Place, list[Place]] = {}  # first turn -> last turns whose mean it earns
        for first, *_, place in ended if is_joint else ():
            lasts.setdefault(first, []).append(place)
        rows = []
        for place in places(rounds, 0):
            earned = 0.0 if is_stage1 else self._mean_reward(rounds, lasts.get(place, [place]))
            if earned is None:
                continue
            kl_coef = settings.beta2 if is_stage1 else settings.beta1
            rows.append(Row(place, earned, "turn1", kl_coef, facts=facts))
        for conversation in ended:
            place = conversation[-1]
            earned = self.last_reward(rounds, conversation, is_stage1=is_stage1)
            if earned is None:
                continue
            group = self.last_group(conversation)
            own = {**facts, PARENT_TURN: float(conversation[-2].turn)}
            rows.append(Row(place, earned, group, settings.beta1, facts=own))
        return tuple(rows)

    def last_group(self, conversation: Sequence[Place]) -> str:
        """Return the group of a last turn, named after the solver's second one."""
        return "turn2"

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return reward minus baseline, shape (N,)."""
        return minus_baseline(rows, self.settings.baseline)

    def kl_coefs(self, rows: Sequence[CreditRow], kls_N: np.ndarray) -> np.ndarray:
        """Return the rows' own coefficients, shape (N,); with ``adaptive_beta2`` scaled."""
        coefs_N = super().kl_coefs(rows, kls_N)
        # In asynchronous modes a batch may hold rows of both stages. Guides have no stage.
        is_stage1_N = np.array([bool(row.facts.get("is_stage1")) for row in rows])
        is_first_N = is_stage1_N & np.array([not row.turn for row in rows])
        is_last_N = is_stage1_N & ~is_first_N
        if not self.settings.adaptive_beta2 or not is_first_N.any() or not is_last_N.any():
            return coefs_N
        # The KL is the mean of log-ratios of either sign, not that of their magnitudes.
        penalty = abs((coefs_N * kls_N)[is_first_N].mean())
        signal = np.abs(self.advantages(rows))[is_last_N].mean()
        scale = np.clip(signal / max(penalty, 1e-12), 0.1, 10.0)
        return np.where(is_first_N, scale * coefs_N, coefs_N)

    def validation(self) -> Method:
        """Return the same conversations, scored by their last turns."""
        settings = replace(self.settings, **self.validation_settings)
        return FinalTurns(type(self)(settings=settings))

    def is_stage1(self, state: ProblemState) -> bool:
        """Return whether the step belongs to stage I."""
        return state.schedule_step <= self.settings.stage1_steps

    def _mean_reward(self, rounds: Sequence[Round], earning: Sequence[Place]) -> float | None:
        """Return the mean reward of graded turns; ``None`` without a grade."""
        turns = [turn_at(rounds, place) for place in earning]
        known = [self.reward(turn) for turn in turns if turn.is_graded]
        return sum(known) / len(known) if known else None

    def last_reward(
        self, rounds: Sequence[Round], conversation: Sequence[Place], *, is_stage1: bool
    ) -> float | None:
        """Return what the last turn of a conversation earns; ``None`` without the grades."""
        first, last = turn_at(rounds, conversation[0]), turn_at(rounds, conversation[-1])
        if is_stage1 or self.settings.solver_credit == "joint":
            return self.reward(last) if last.is_graded else None
        if not (first.is_graded and last.is_graded):
            return None
        assert first.verdict and last.verdict
        # What the reward has beside the grade, such as a penalty on the length, counts once.
        own = self.reward(last) - last.verdict.score
        return progress_reward(first.verdict.score, last.verdict.score, self.settings.alpha) + own


def progress_reward(before: float, after: float, alpha: float) -> float:
    """Return ``after + alpha x (after - before)``, what a revision earns in stage II.

    For rewards 0 and 1: wrong to wrong 0, right to right 1, wrong to right 1 + alpha, right to
    wrong -alpha.
    """
    return after + alpha * (after - before)

"""Conversations of a solver, with a guide or without: who speaks next, and what each turn earns.

SCoRe, RL-guided SCoRe and MLMT-RL are this one game with different settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, ClassVar, Literal

import numpy as np

from recipe.hint.conversations import unanswered
from recipe.hint.credit.base import Credit, CreditRow
from recipe.hint.credit.baselines import Baseline, minus_baseline, state_values
from recipe.hint.methods.base import Coefficient, Count, Method, MethodSettings, Needs, Steps
from recipe.hint.schema import ProblemState
from recipe.hint.turns import (
    Decision,
    Feedback,
    Place,
    Refine,
    Revise,
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

GUIDE = "guide"
# Facts of rows: a guide's turn, by its number in its round, and the number of the turn that a last
# turn continues.
GUIDE_TURN, PARENT_TURN = "guide_turn", "parent_turn"


@dataclass(frozen=True)
class SolverSettings(MethodSettings):
    """The solver's two stages; the defaults are those of SCoRe for mathematics.

    Attributes:
        stage1_steps: Steps of stage I; stage II is the rest of the run.
        alpha: Weight of the change from the first to the last turn, in stage II.
        beta1: KL coefficient of both turns in stage II, of the last turn in stage I.
        beta2: KL coefficient of the first turn in stage I.
        solver_credit: ``score``: in stage II the first turn earns its own reward and the last one
            the change on top. ``joint``: both earn the last one's reward.
        baseline: What a reward is compared with: the others of its turn, nothing, or the critic's
            value of the state before the turn.
    """

    stage1_steps: Steps = 250
    alpha: Coefficient = 10.0
    beta1: Coefficient = 0.01
    beta2: Coefficient = 0.1
    solver_credit: Literal["score", "joint"] = "score"
    baseline: Baseline = "leave_one_out"

    node: ClassVar[str] = "hint.score"


@dataclass(frozen=True)
class GuideSettings(SolverSettings):
    """What the guide is and earns, beside the solver's two stages.

    Attributes:
        guide: Who gives feedback: the ``policy`` in another role, or the ``teacher``, an untrained
            model behind the endpoint of ``hint.teacher``.
        solver: Who answers and refines: ``policy`` or ``teacher``.
        train_guide: Whether the guide's turns train. If the guide is the policy it changes with
            the solver in any case.
        train_solver: Whether the solver's turns train.
        guide_kl_coef: KL coefficient of the guide's turns.
        guide_weight: Factor of the guide's advantages.
        guide_max_tokens: Longest feedback in tokens, at most ``data.max_response_length``.
        leak_penalty: What the guide earns less for feedback that gives the final answer away, on an
            attempt that is not correct.
    """

    guide: Literal["policy", "teacher"] = "policy"
    solver: Literal["policy", "teacher"] = "policy"
    train_guide: bool = True
    train_solver: bool = True
    guide_kl_coef: Coefficient = 0.05
    guide_weight: Coefficient = 1.0
    guide_max_tokens: Count = 1024
    leak_penalty: Coefficient = 0.0

    node: ClassVar[str] = "hint.score_guided"

    def __post_init__(self) -> None:
        if not self.train_guide and not self.train_solver:
            raise ConfigError(
                f"{self.node}.train_guide=false and train_solver=false: nothing would train; set "
                f"one of them to true"
            )
        for role, trains in (("guide", self.train_guide), ("solver", self.train_solver)):
            if getattr(self, role) == "teacher" and trains:
                raise ConfigError(
                    f"{self.node}.{role}=teacher needs {self.node}.train_{role}=false: a model "
                    f"behind an endpoint is not trained here"
                )

    @property
    def asks_teacher(self) -> bool:
        """Whether one of the roles is the teacher's."""
        return "teacher" in (self.guide, self.solver)


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


class Dialogue(Method):
    """Answer; hear feedback where there is a guide; answer again.

    Stage I holds the first turn to the reference policy and trains the last; stage II trains both.
    A guide earns what the refinement is worth. A turn is compared with its siblings: first turns
    of one prompt, feedback on one attempt, refinements of one feedback where there are several.
    """

    is_multi_turn: ClassVar[bool] = True
    phase_may_fill_run: ClassVar[bool] = True

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        settings = self.settings
        self.guide = guide = settings if isinstance(settings, GuideSettings) else None
        self.trains = (guide.train_solver, guide.train_guide) if guide else (True, False)
        # One that a server plays may train in the next phase (`main_alternate.py`).
        trains_next = self.roles_alternate and self._is_teacher("solver")
        self.solver_never_trains = not (self.trains[0] or trains_next)
        self.first_phase = "stage1_steps" if self.trains[0] else ""
        # Of a tree, which `MlmtSettings` has alone.
        self.feedbacks = getattr(settings, "feedbacks", 1)
        self.refinements = getattr(settings, "refinements", 1)
        self.role_steps = (getattr(settings, "t_low", 0), getattr(settings, "t_high", 0))
        bonus = getattr(settings, "bonus", 0.0)
        ascends = getattr(settings, "value_grad", "stop") == "full"
        self.credit = DialogueCredit(settings.baseline, bonus, ascends)
        has_kl = settings.beta1 > 0 or (settings.beta2 > 0 and settings.stage1_steps > 0)
        has_critic = settings.baseline == "value" or bonus > 0
        self.needs = Needs(
            reference=(self.trains[0] and has_kl)
            or bool(guide and self.trains[1] and guide.guide_kl_coef > 0),
            turn_critic=has_critic,
            critic_rows=bool(bonus and not self.trains[0])
            or (has_critic and self.role_steps[0] > 0),
            group=settings.baseline == "leave_one_out",
        )

    def check_steps(self, num_steps: int) -> None:
        """Refuse phases that leave a role out, and a stage I that outlasts the solver's phase."""
        super().check_steps(num_steps)
        first, t_low = self.settings.stage1_steps, self.role_steps[0]
        if t_low >= num_steps or first > t_low > 0:
            raise ConfigError(
                f"{self.settings_node}.t_low={t_low} must be below the run's {num_steps} steps, "
                f"and at least stage1_steps={first}, which counts all steps"
            )

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return the first turns' request."""
        return Sample(asks_teacher=self._is_teacher("solver"))

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Continue every first turn, then train on complete conversations."""
        return self.next_turn(problem, rounds) or self._train(state, rounds)

    def next_turn(self, problem: Problem, rounds: Sequence[Round]) -> Sample | None:
        """Request the feedback on all first turns, then the last turns."""
        earlier = places(rounds, len(rounds) - 1)
        if rounds[-1].request.role == GUIDE:
            return Sample(
                Refine(),
                n=self.refinements,
                parents=earlier,
                asks_teacher=self._is_teacher("solver"),
            )
        if len(rounds) > 1:
            return None
        if self.guide is None:
            return Sample(Revise(), n=1, parents=earlier)
        return Sample(
            Feedback(),
            n=self.feedbacks,
            parents=earlier,
            is_graded=False,
            role=GUIDE,
            max_tokens=self.guide.guide_max_tokens,
            asks_teacher=self._is_teacher("guide"),
            finds_leaks=True,
        )

    def trained_roles(self, state: ProblemState) -> tuple[bool, bool]:
        """Return whether the solver and whether the guide train at this step."""
        low, high = self.role_steps
        if not low:
            return self.trains
        is_low = (state.schedule_step - 1) % (low + high) < low
        return is_low, not is_low

    def _is_teacher(self, role: str) -> bool:
        return getattr(self.guide, role, "policy") == "teacher"

    def _train(self, state: ProblemState, rounds: Sequence[Round]) -> Train:
        """Return the policy's rows: of roles that train, and those that the critic needs.

        Without any, a round is published that is dropped.
        """
        solver, guide = self._solver_rows(state, rounds), self._guide_rows(state, rounds)
        trains_solver, trains_guide = self.trained_roles(state)
        rows = solver if trains_solver else self._critic_rows(solver)
        rows += guide if trains_guide else self._critic_rows(guide)
        ours = [row for row in rows if not rounds[row.place.round].request.asks_teacher]
        if ours:
            return Train(tuple(ours))
        sampled = [index for index, each in enumerate(rounds) if each.turns]
        # A round of the policy if there is one: a teacher's texts have no tokens.
        index = min(sampled, key=lambda index: rounds[index].request.asks_teacher)
        return self.dropped(Train(tuple(Row(place, 0.0) for place in places(rounds, index))))

    def _critic_rows(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """Return what the critic learns from, of a role that does not train.

        The waiting role's rows; of a role that never trains, those that a bonus reads: refinements,
        which earn R alone beside a bonus.
        """
        if not self.needs.critic_rows:
            return ()
        if not self.role_steps[0]:
            rows = tuple(row for row in rows if PARENT_TURN in row.facts)
        return tuple(replace(row, weight=0.0, kl_coef=0.0) for row in rows)

    def _solver_rows(self, state: ProblemState, rounds: Sequence[Round]) -> tuple[Row, ...]:
        """Return the rows of the sampled first turns and of the last turns.

        A reward is a difference or a mean of grades. Where a grade failed it is unknown, and there
        is no row: 0 would be the worst reward of some groups and the best of others. So are
        conversations that a teacher left unanswered: they cannot be compared with the others. A
        conversation that was not to go on, or whose next prompt does not fit, has ended.
        """
        settings, is_stage1 = self.settings, self._is_stage1(state)
        ended = [conversation_to(rounds, place) for place in places(rounds, len(rounds) - 1)]
        # Of a tree, one branch may have ended.
        unknown = unanswered(rounds) - {conversation[0] for conversation in ended}
        lasts: dict[Place, list[Place]] = {}  # first turn -> last turns whose mean it earns
        for first, *_, place in ended if settings.solver_credit == "joint" else ():
            lasts.setdefault(first, []).append(place)
        rows = []
        for place in places(rounds, 0):
            turns = [turn_at(rounds, each) for each in lasts.get(place, [place])]
            known = [0.0] if is_stage1 else [self.reward(turn) for turn in turns if turn.is_graded]
            if known and place not in unknown:
                kl_coef = settings.beta2 if is_stage1 else settings.beta1
                rows.append(Row(place, fmean(known), "turn1", kl_coef))
        for conversation in ended:
            earned = self._last_reward(rounds, conversation, is_stage1=is_stage1)
            if earned is not None and conversation[0] not in unknown:
                facts = {PARENT_TURN: float(conversation[-2].turn)}
                # Of the nearest turn that several of them continue.
                parents = conversation[-2] if self.refinements > 1 else conversation[0]
                is_tree = max(self.refinements, self.feedbacks) > 1
                group = f"turn2{_name(parents)}" if is_tree else "turn2"
                rows.append(Row(conversation[-1], earned, group, settings.beta1, facts=facts))
        return tuple(rows)

    def _guide_rows(self, state: ProblemState, rounds: Sequence[Round]) -> tuple[Row, ...]:
        """Return the rows of the feedback that was shown and whose refinement's reward is known."""
        settings = self.guide
        if settings is None:
            return ()
        refined: dict[Place, list[float]] = {}
        for place in places(rounds, len(rounds) - 1):
            turn, conversation = turn_at(rounds, place), conversation_to(rounds, place)
            earned = self._last_reward(rounds, conversation, is_stage1=self._is_stage1(state))
            if turn.parent and earned is not None:
                refined.setdefault(turn.parent, []).append(self.reward(turn))
        rows = []
        for place, rewards in refined.items():
            reward = fmean(rewards) - settings.leak_penalty * turn_at(rounds, place).has_leak
            branches = self.feedbacks > 1
            group = f"{GUIDE}{_name(conversation_to(rounds, place)[0])}" if branches else GUIDE
            facts = {GUIDE_TURN: float(place.turn)}
            rows.append(
                Row(place, reward, group, settings.guide_kl_coef, settings.guide_weight, facts)
            )
        return tuple(rows)

    def _is_stage1(self, state: ProblemState) -> bool:
        return state.schedule_step <= self.settings.stage1_steps

    def _last_reward(
        self, rounds: Sequence[Round], conversation: Sequence[Place], *, is_stage1: bool
    ) -> float | None:
        """Return what the last turn of a conversation earns; ``None`` without the grades.

        Its own reward alone in stage I, with joint credit, and if the solver never trains.
        """
        first, last = turn_at(rounds, conversation[0]), turn_at(rounds, conversation[-1])
        is_plain = is_stage1 or self.solver_never_trains
        if is_plain or self.settings.solver_credit == "joint":
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


def _name(place: Place) -> str:
    return f"-{place.round}.{place.turn}"

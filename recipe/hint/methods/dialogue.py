"""Conversations of a solver, with a guide or without: who speaks next, and what each turn earns.

SCoRe, RL-guided SCoRe and MLMT-RL are this one game with different settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, ClassVar, Literal

from recipe.hint.conversations import unanswered
from recipe.hint.credit.baselines import Baseline
from recipe.hint.credit.dialogue import GUIDE_TURN, PARENT_TURN, STAGE1, DialogueCredit
from recipe.hint.methods.base import (
    Coefficient,
    Count,
    FinalTurns,
    Method,
    MethodSettings,
    Needs,
    Steps,
)
from recipe.hint.methods.prompts import Feedback, Refine, Revise
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

GUIDE = "guide"


@dataclass(frozen=True)
class Tree:
    """How a prompt's conversations branch, and who trains when; see ``MlmtSettings``."""

    feedbacks: int = 1
    refinements: int = 1
    bonus: float = 0.0
    critic_ascends: bool = False
    role_steps: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class SolverSettings(MethodSettings):
    """The solver's two stages; the defaults are those of SCoRe for mathematics.

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

    stage1_steps: Steps = 250
    alpha: Coefficient = 10.0
    beta1: Coefficient = 0.01
    beta2: Coefficient = 0.1
    adaptive_beta2: bool = False
    solver_credit: Literal["score", "joint"] = "score"
    offline_attempts: Steps = 0
    baseline: Baseline = "leave_one_out"
    show_failed_test: bool = False

    node: ClassVar[str] = "hint.score"

    @property
    def guided(self) -> GuideSettings | None:
        """The guide's settings, if there is one."""
        return None

    @property
    def tree(self) -> Tree:
        """How the conversations branch."""
        return Tree()


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
        guide_reward: ``right``: 1 for a correct refinement and 0 for a wrong one; ``signed``:
            1, -1.
        guide_max_tokens: Longest feedback in tokens, at most ``data.max_response_length``.
        feedback_leaks: Feedback that gives the final answer away, on attempts that are not correct:
            ``measure`` (count it), ``drop`` (the solver does not see it, and it does not train),
            ``penalise`` (the guide earns ``leak_penalty`` less). Validation measures.
        leak_penalty: See ``feedback_leaks``.
    """

    guide: Literal["policy", "teacher"] = "policy"
    solver: Literal["policy", "teacher"] = "policy"
    train_guide: bool = True
    train_solver: bool = True
    guide_kl_coef: Coefficient = 0.05
    guide_weight: Coefficient = 1.0
    guide_reward: Literal["right", "signed"] = "right"
    guide_max_tokens: Count = 1024
    feedback_leaks: Literal["measure", "drop", "penalise"] = "measure"
    leak_penalty: Coefficient = 1.0

    roles_alternate: ClassVar[bool] = False  # whether one that does not train may do so next

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
    def guided(self) -> GuideSettings | None:
        """These."""
        return self

    @property
    def asks_teacher(self) -> bool:
        """Whether one of the roles is the teacher's."""
        return "teacher" in (self.guide, self.solver)

    @property
    def solver_never_trains(self) -> bool:
        """Whether the solver trains neither in this run nor in a later phase."""
        may_train_next = self.roles_alternate and self.solver == "teacher"
        return not self.train_solver and not may_train_next


class Dialogue(Method):
    """Answer; hear feedback where there is a guide; answer again.

    Stage I holds the first turn to the reference policy and trains the last; stage II trains both.
    A guide earns what the refinement is worth. A turn is compared with its siblings: first turns
    of one prompt, feedback on one attempt, refinements of one feedback where there are several.
    """

    is_multi_turn: ClassVar[bool] = True
    phase_may_fill_run: ClassVar[bool] = True
    stage1: ClassVar[str] = "stage1_steps"

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        settings, guide = self.settings, self.settings.guided
        self.tree: Tree = settings.tree
        self.role_steps = self.tree.role_steps
        self.trains = (True, False) if not guide else (guide.train_solver, guide.train_guide)
        self.credit = DialogueCredit(
            settings.baseline, settings.adaptive_beta2, self.tree.bonus, self.tree.critic_ascends
        )
        has_kl = settings.beta1 > 0 or (settings.beta2 > 0 and settings.stage1_steps > 0)
        has_critic = settings.baseline == "value" or self.tree.bonus > 0
        self.needs = Needs(
            first_attempts=settings.offline_attempts,
            reference=(self.trains[0] and has_kl)
            or bool(guide and self.trains[1] and guide.guide_kl_coef > 0),
            turn_critic=has_critic,
            critic_rows=bool(self.tree.bonus and not self.trains[0])
            or (has_critic and self.role_steps[0] > 0),
            group=settings.baseline == "leave_one_out",
        )

    @property
    def first_phase(self) -> tuple[str, int]:
        """Stage I, if the solver trains."""
        return (self.stage1, self.settings.stage1_steps) if self.trains[0] else ("", 0)

    def check_steps(self, num_steps: int) -> None:
        """Refuse phases that leave a role out, and a stage I that outlasts the solver's phase."""
        super().check_steps(num_steps)
        first, t_low = self.settings.stage1_steps, self.role_steps[0]
        if t_low >= num_steps or first > t_low > 0:
            raise ConfigError(
                f"{self.settings_node}.t_low={t_low} must be below the run's {num_steps} steps, "
                f"and at least stage1_steps={first}, which counts all steps"
            )

    def validation(self) -> Method:
        """Return the same conversations without branches, scored by their last turns.

        All are sampled, and the reference answer does not decide what the solver sees.
        """
        changes = {
            "offline_attempts": 0,
            "feedback_leaks": "measure",
            "feedbacks": 1,
            "refinements": 1,
        }
        known = {name: value for name, value in changes.items() if hasattr(self.settings, name)}
        return FinalTurns(type(self)(settings=replace(self.settings, **known)))

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return the first turns' request."""
        return Sample(asks_teacher=self._is_teacher("solver"))

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Continue every first turn, then train on complete conversations."""
        return self.next_turn(problem, rounds) or self._train(state, rounds)

    def next_turn(self, problem: Problem, rounds: Sequence[Round]) -> Sample | None:
        """Request the given first attempts, the feedback on all first turns, the last turns."""
        settings, guide, last = self.settings, self.settings.guided, rounds[-1].request
        given = problem.first_attempts[: settings.offline_attempts]
        if len(rounds) == 1 and given:
            return Sample(given=given)
        if last.role == GUIDE:
            return Sample(
                Refine(withholds_leaks=guide.feedback_leaks == "drop"),
                n=self.tree.refinements,
                parents=places(rounds, len(rounds) - 1),
                asks_teacher=self._is_teacher("solver"),
            )
        if last.parents is not None:
            return None
        first = tuple(place for index in range(len(rounds)) for place in places(rounds, index))
        if guide is None:
            return Sample(Revise(settings.show_failed_test), n=1, parents=first)
        return Sample(
            Feedback(settings.show_failed_test),
            n=self.tree.feedbacks,
            parents=first,
            is_graded=False,
            role=GUIDE,
            max_tokens=guide.guide_max_tokens,
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
        return getattr(self.settings.guided, role, "policy") == "teacher"

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
        sampled = [
            index
            for index, each in enumerate(rounds)
            if each.has_responses and not each.request.given
        ]
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
        facts = {STAGE1: float(is_stage1)}
        ended = [conversation_to(rounds, place) for place in places(rounds, len(rounds) - 1)]
        # Of a tree, one branch may have ended.
        unknown = unanswered(rounds) - {conversation[0] for conversation in ended}
        lasts: dict[Place, list[Place]] = {}  # first turn -> last turns whose mean it earns
        for first, *_, place in ended if settings.solver_credit == "joint" else ():
            lasts.setdefault(first, []).append(place)
        rows = []
        for place in places(rounds, 0):
            earned = 0.0 if is_stage1 else self._mean_reward(rounds, lasts.get(place, [place]))
            if earned is not None and place not in unknown:
                kl_coef = settings.beta2 if is_stage1 else settings.beta1
                rows.append(Row(place, earned, "turn1", kl_coef, facts=facts))
        for conversation in ended:
            earned = self._last_reward(rounds, conversation, is_stage1=is_stage1)
            if earned is not None and conversation[0] not in unknown:
                own = {**facts, PARENT_TURN: float(conversation[-2].turn)}
                group = self._last_group(conversation)
                rows.append(Row(conversation[-1], earned, group, settings.beta1, facts=own))
        return tuple(rows)

    def _guide_rows(self, state: ProblemState, rounds: Sequence[Round]) -> tuple[Row, ...]:
        """Return the rows of the feedback that was shown and whose refinement's reward is known."""
        settings = self.settings.guided
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
            has_leak = turn_at(rounds, place).has_leak
            if has_leak and settings.feedback_leaks == "drop":
                continue  # the solver did not see it
            reward = fmean(rewards)
            if settings.guide_reward == "signed":
                reward = 2 * reward - 1
            if has_leak and settings.feedback_leaks == "penalise":
                reward -= settings.leak_penalty
            branches = self.tree.feedbacks > 1
            group = f"{GUIDE}{_name(conversation_to(rounds, place)[0])}" if branches else GUIDE
            facts = {"leaks": float(has_leak), GUIDE_TURN: float(place.turn)}
            rows.append(
                Row(place, reward, group, settings.guide_kl_coef, settings.guide_weight, facts)
            )
        return tuple(rows)

    def _last_group(self, conversation: Sequence[Place]) -> str:
        """Return the group of a last turn: of the nearest turn that several of them continue."""
        if self.tree.refinements > 1:
            return f"turn2{_name(conversation[-2])}"
        return f"turn2{_name(conversation[0])}" if self.tree.feedbacks > 1 else "turn2"

    def _is_stage1(self, state: ProblemState) -> bool:
        return state.schedule_step <= self.settings.stage1_steps

    def _mean_reward(self, rounds: Sequence[Round], earning: Sequence[Place]) -> float | None:
        """Return the mean reward of graded turns; ``None`` without a grade."""
        turns = [turn_at(rounds, place) for place in earning]
        known = [self.reward(turn) for turn in turns if turn.is_graded]
        return fmean(known) if known else None

    def _last_reward(
        self, rounds: Sequence[Round], conversation: Sequence[Place], *, is_stage1: bool
    ) -> float | None:
        """Return what the last turn of a conversation earns; ``None`` without the grades.

        Its own reward alone in stage I, with joint credit, and if the solver never trains.
        """
        first, last = turn_at(rounds, conversation[0]), turn_at(rounds, conversation[-1])
        guide = self.settings.guided
        is_plain = is_stage1 or bool(guide and guide.solver_never_trains)
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

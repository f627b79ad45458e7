"""RL-Guided SCoRe: a guide reads the first attempt and says what to look at again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from recipe.hint.conversations import unanswered
from recipe.hint.methods.prompts import Feedback, Refine
from recipe.hint.methods.score import Score, ScoreSettings
from recipe.hint.schema import ProblemState
from recipe.hint.turns import (
    Place,
    RoleSampling,
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
# Fact of a guide's turn: its number in its round.
GUIDE_TURN = "guide_turn"


@dataclass(frozen=True)
class ScoreGuidedSettings(ScoreSettings):
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
        guide_reward: ``right``: 1 for a right refinement and 0 for a wrong one; ``signed``: 1, -1.
        guide_max_tokens: Longest feedback in tokens, at most ``data.max_response_length``.
        guide_temperature: Temperature of a guide that does not train; ``null``: the rollouts'.
        guide_top_p: Top-p of a guide that does not train; ``null``: the rollouts'.
        feedback_leaks: Feedback that gives the final answer away, on attempts that are not right:
            ``measure`` (count it), ``drop`` (the solver does not see it, and it does not train),
            ``penalise`` (the guide earns ``leak_penalty`` less). Validation measures.
        leak_penalty: See ``feedback_leaks``.
        feedback_only_if_wrong: Give no feedback on right attempts (an ablation: the verifier
            decides; an ungraded attempt gets feedback).
    """

    guide: Literal["policy", "teacher"] = "policy"
    solver: Literal["policy", "teacher"] = "policy"
    train_guide: bool = True
    train_solver: bool = True
    guide_kl_coef: float = 0.05
    guide_weight: float = 1.0
    guide_reward: Literal["right", "signed"] = "right"
    guide_max_tokens: int = 1024
    guide_temperature: float | None = None
    guide_top_p: float | None = None
    feedback_leaks: Literal["measure", "drop", "penalise"] = "measure"
    leak_penalty: float = 1.0
    feedback_only_if_wrong: bool = False

    node: ClassVar[str] = "hint.score_guided"
    roles_alternate: ClassVar[bool] = False  # whether one that does not train may do so next
    not_negative: ClassVar[tuple[str, ...]] = (
        *ScoreSettings.not_negative,
        "guide_kl_coef",
        "guide_weight",
        "leak_penalty",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
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
        if self.guide_max_tokens < 1:
            raise ConfigError(
                f"{self.node}.guide_max_tokens={self.guide_max_tokens} must be at least 1"
            )
        for name in ("guide_temperature", "guide_top_p"):
            value = getattr(self, name)
            if value is not None and self.train_guide:
                raise ConfigError(
                    f"{self.node}.{name}={value} with train_guide=true: what trains is sampled as "
                    f"the trainer computes its log-probabilities; drop the setting or set "
                    f"{self.node}.train_guide=false"
                )
            if value is not None and not 0 < value <= (1.0 if name == "guide_top_p" else 100.0):
                raise ConfigError(f"{self.node}.{name}={value} is out of range; give 1.0 or null")

    @property
    def asks_teacher(self) -> bool:
        """Whether one of the roles is the teacher's."""
        return "teacher" in (self.guide, self.solver)

    def unread(self) -> dict[str, str]:
        """Return the settings without effect -> what would give them one."""
        found = super().unread()
        if self.feedback_leaks != "penalise":
            found["leak_penalty"] = "feedback_leaks=penalise"
        if not self.train_guide and not self._may_train_next(self.guide):
            names = ["guide_kl_coef", "guide_weight", "guide_reward", "leak_penalty"]
            names += ["feedback_leaks"] if self.feedback_leaks == "penalise" else []
            found |= dict.fromkeys(names, "train_guide=true")
        if self.solver_never_trains:
            names = ["stage1_steps", "alpha", "beta1", "beta2", "adaptive_beta2", "solver_credit"]
            found |= dict.fromkeys(names, "train_solver=true")
        return found

    @property
    def solver_never_trains(self) -> bool:
        """Whether the solver trains neither in this run nor in a later phase."""
        return not self.train_solver and not self._may_train_next(self.solver)

    def _may_train_next(self, role: str) -> bool:
        """Return whether a role may be served now and train later, in ``main_alternate.py``."""
        return self.roles_alternate and role == "teacher"


class ScoreGuided(Score):
    """Answer, get feedback, refine; the guide earns what the refinement is worth.

    The guide is the policy in another role, under its own prompt and its own KL coefficient.
    Source: the hierarchical-reasoning repository's RL-guided variant of SCoRe
    (docs/methods/score-guided.md). Deviations: docs/lab/deviations.md#score-guided.
    """

    settings_cls = ScoreGuidedSettings
    settings_node = ScoreGuidedSettings.node
    # In validation the reference answer must not decide what the solver sees.
    validation_settings: ClassVar[dict[str, Any]] = {
        **Score.validation_settings,
        "feedback_leaks": "measure",
    }
    feedbacks: int = 1  # per first turn
    refinements: int = 1  # per feedback

    @property
    def needs_reference(self) -> bool:
        """Whether a KL coefficient of a role that trains is above 0."""
        of_guide = self.settings.train_guide and self.settings.guide_kl_coef > 0
        return of_guide or (self.settings.train_solver and super().needs_reference)

    @property
    def verdict_dependent_settings(self) -> tuple[str, ...]:
        """``show_failed_test`` and ``feedback_only_if_wrong``, where they are set."""
        own = ("feedback_only_if_wrong",) if self.settings.feedback_only_if_wrong else ()
        return (*super().verdict_dependent_settings, *own)

    @property
    def first_phase(self) -> tuple[str, int]:
        """Stage I, if the solver trains."""
        return super().first_phase if self.settings.train_solver else ("", 0)

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return the first turns' request."""
        return Sample(asks_teacher=self.settings.solver == "teacher")

    def next_turn(self, problem: Problem, rounds: Sequence[Round]) -> Sample | None:
        """Return the request for feedback, or for the refinements after it; then ``None``."""
        if rounds[-1].request.role != GUIDE:
            return super().next_turn(problem, rounds)
        return Sample(
            Refine(withholds_leaks=self.settings.feedback_leaks == "drop"),
            n=self.refinements,
            parents=places(rounds, len(rounds) - 1),
            asks_teacher=self.settings.solver == "teacher",
        )

    def after_first(self, rounds: Sequence[Round], first: tuple[Place, ...]) -> Sample:
        """Return the request for feedback."""
        settings = self.settings
        if settings.feedback_only_if_wrong:
            first = tuple(place for place in first if not turn_at(rounds, place).is_right)
        return Sample(
            Feedback(settings.show_failed_test),
            n=self.feedbacks,
            parents=first,
            is_graded=False,
            role=GUIDE,
            sampling=RoleSampling(
                settings.guide_max_tokens, settings.guide_temperature, settings.guide_top_p
            ),
            asks_teacher=settings.guide == "teacher",
            finds_leaks=True,
        )

    def after_last(self, state: ProblemState, rounds: Sequence[Round]) -> Train:
        """Return the policy's rows: of roles that train, and those that the critic needs."""
        solver, guide = self.solver_rows(state, rounds), self.guide_rows(state, rounds)
        trains_solver, trains_guide = self.trained_roles(state)
        rows = solver if trains_solver else self.critic_rows(solver)
        rows += guide if trains_guide else self.critic_rows(guide)
        ours = (row for row in rows if not rounds[row.place.round].request.asks_teacher)
        return self.train_or_drop(tuple(ours), rounds)

    def solver_rows(self, state: ProblemState, rounds: Sequence[Round]) -> tuple[Row, ...]:
        """Return the solver's rows, without conversations that a teacher left unanswered.

        Their outcome is unknown, so their first turns cannot be compared with the others. A
        conversation that was not to go on, or whose next prompt does not fit, has ended.
        """
        rows = super().solver_rows(state, rounds)
        ended = {conversation_to(rounds, place)[0] for place in places(rounds, len(rounds) - 1)}
        unknown = unanswered(rounds) - ended  # of a tree, one branch may have ended
        return tuple(row for row in rows if conversation_to(rounds, row.place)[0] not in unknown)

    def last_reward(
        self, rounds: Sequence[Round], conversation: Sequence[Place], *, is_stage1: bool
    ) -> float | None:
        """Return what the last turn earns: its own reward alone if the solver never trains."""
        is_plain = is_stage1 or self.settings.solver_never_trains
        return super().last_reward(rounds, conversation, is_stage1=is_plain)

    def critic_rows(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """Return what the critic learns from, of a role that does not train: nothing reads it."""
        return ()

    def trained_roles(self, state: ProblemState) -> tuple[bool, bool]:
        """Return whether the solver and whether the guide train at this step."""
        return self.settings.train_solver, self.settings.train_guide

    def guide_rows(self, state: ProblemState, rounds: Sequence[Round]) -> tuple[Row, ...]:
        """Return the rows of the feedback that was shown and whose refinement's reward is known."""
        refined: dict[Place, list[float]] = {}
        for place in places(rounds, len(rounds) - 1):
            turn, conversation = turn_at(rounds, place), conversation_to(rounds, place)
            earned = self.last_reward(rounds, conversation, is_stage1=self.is_stage1(state))
            if turn.parent and earned is not None:
                refined.setdefault(turn.parent, []).append(self.reward(turn))
        settings = self.settings
        rows = []
        for place, rewards in refined.items():
            has_leak = turn_at(rounds, place).has_leak
            if has_leak and settings.feedback_leaks == "drop":
                continue  # the solver did not see it
            reward = sum(rewards) / len(rewards)
            if settings.guide_reward == "signed":
                reward = 2 * reward - 1
            if has_leak and settings.feedback_leaks == "penalise":
                reward -= settings.leak_penalty
            group = self.guide_group(conversation_to(rounds, place))
            facts = {"leaks": float(has_leak), GUIDE_TURN: float(place.turn)}
            rows.append(
                Row(place, reward, group, settings.guide_kl_coef, settings.guide_weight, facts)
            )
        return tuple(rows)

    def guide_group(self, conversation: Sequence[Place]) -> str:
        """Return the group of the feedback that ends a conversation."""
        return GUIDE

"""What a method is: one decision before sampling, one after each round, and what it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from recipe.hint.conversations import conversations
from recipe.hint.credit.archer import UtteranceCriticSettings
from recipe.hint.credit.base import DROPPED, Credit
from recipe.hint.prompt import Style
from recipe.hint.schema import FINAL_HINT_FAILURES, ProblemState
from recipe.hint.turns import Decision, Place, Round, Row, Sample, Train, Turn, places, turn_at
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError, TeacherSilentError

# Ranges of settings, which the typed reader checks.
Count = Annotated[int, Field(ge=1)]
Steps = Annotated[int, Field(ge=0)]  # or another number that may be 0
Coefficient = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class MethodSettings:
    """Settings of a method, as fields of a subclass; as it is, a method has none."""

    @property
    def asks_teacher(self) -> bool:
        """Whether some turn is written by the endpoint of ``hint.teacher``."""
        return False


@dataclass(frozen=True)
class Needs:
    """What a method needs of its run, with the settings that it has.

    Attributes:
        solution: It trains on the reference solutions.
        closed_prompt: The response itself must open <think>, not the chat template.
        reference: Some row can have a KL coefficient above 0.
        log_probs: The trainer's log-probabilities before the update, which verl's bypass mode does
            not compute.
        turn_critic: verl's critic, whose value is read before each turn.
        utterance_critic: A critic of whole utterances, and how it learns.
        critic_rows: Turns of the policy that do not train are published for the critic.
        group: Advantages compare the responses of one group.
    """

    solution: bool = False
    closed_prompt: bool = False
    reference: bool = False
    log_probs: bool = False
    turn_critic: bool = False
    utterance_critic: UtteranceCriticSettings | None = None
    critic_rows: bool = False
    group: bool = True

    @property
    def critic(self) -> bool:
        """Whether there is a critic of either kind."""
        return self.turn_critic or self.utterance_critic is not None


class Method:
    """Decide what is sampled and what trains; as it is: one group without a hint, as GRPO.

    A method is pure and holds no state.

    Attributes:
        settings_cls: A frozen dataclass of its settings; their defaults are the configuration's. It
            raises ``ConfigError`` on values that are out of range or exclude each other.
        settings_node: Their node in the configuration: ``hint.NAME``, or ``trainer``.
        uses_hints: Whether it needs a source of hints.
        source: The source of hints if ``hint.source`` names none.
        style: How hints enter the prompt if ``hint.style`` does not say.
        is_multi_turn: Whether conversations go on, in validation too: :meth:`next_turn`. The number
            of rows varies, which verl's estimators do not take, so it has credit of its own.
        below_group: Name of a setting, a number of rollouts that has to be below the group size.
        phase_may_fill_run: Whether the first phase may take all steps of the run.
        roles_alternate: Whether a solver and a guide can train in turns, as one policy or as two.
        first_phase: Name of the setting of the first phase's length in steps; 0 or null: no phase.
        max_level: Strongest hint level; 0 without hints.
        increments: Pieces that each level of the source is cut into, each a level of its own.
        needs: What the run has to provide.
        credit: Credit of its own; ``None``: verl's estimator.
        role_steps: Steps in a row that train the solver alone, then the guide alone; 0: both.
    """

    settings_cls: ClassVar[type[MethodSettings]] = MethodSettings
    settings_node: ClassVar[str] = ""
    uses_hints: ClassVar[bool] = False
    source: ClassVar[str] = "self_generated"
    style: ClassVar[Style] = "paper"
    is_multi_turn: ClassVar[bool] = False
    below_group: ClassVar[str] = ""
    phase_may_fill_run: ClassVar[bool] = False
    roles_alternate: ClassVar[bool] = False
    first_phase: str = ""
    max_level: int = 0
    increments: int = 1
    needs: Needs = Needs()
    credit: Credit | None = None
    role_steps: tuple[int, int] = (0, 0)

    def __init__(self, *, max_level: int = 0, settings: Any = None) -> None:
        self.max_level = max_level
        self.settings: Any = self.settings_cls() if settings is None else settings

    def check_run(self, *, group_size: int, use_kl_in_reward: bool) -> None:
        """Refuse settings that do not fit the run's.

        Args:
            group_size: Responses of a complete group, G.
            use_kl_in_reward: Whether verl subtracts the KL from each reward.

        Raises:
            ConfigError: Naming both settings.
        """
        value = getattr(self.settings, self.below_group, 0)
        if value >= group_size:
            raise ConfigError(
                f"{self.settings_node}.{self.below_group}={value} must be below the group size "
                f"actor_rollout_ref.rollout.n={group_size}"
            )

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Decide what is sampled first: here a group without a hint."""
        return Sample()

    def next_turn(self, problem: Problem, rounds: Sequence[Round]) -> Sample | None:
        """Return the next turn's request; ``None`` where conversations end."""
        return None

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Decide after each round: here train on it; without turns, sample a bare group."""
        if not rounds[-1].turns:
            return Sample()
        return self.train_round(rounds, len(rounds) - 1)

    def reward(self, turn: Turn) -> float:
        """Return the reward that a turn with a verdict trains with."""
        assert turn.verdict is not None, "a turn without a grade has no reward of its own"
        return turn.verdict.train_reward

    def validation(self) -> Method:
        """Return what validation plays: one group without hints, or the same conversations."""
        return FinalTurns(self) if self.is_multi_turn else Method()

    def check_steps(self, num_steps: int) -> None:
        """Refuse a run that is too short for the first phase.

        Raises:
            ConfigError: Naming the setting.
        """
        first = getattr(self.settings, self.first_phase, None) or 0
        is_too_long = first > num_steps if self.phase_may_fill_run else first >= num_steps
        if first and is_too_long:
            raise ConfigError(
                f"{self.settings_node}.{self.first_phase}={first} leaves no step of the run's "
                f"{num_steps} for what follows; lower it, or raise trainer.total_training_steps"
            )

    def train_round(self, rounds: Sequence[Round], index: int) -> Train:
        """Return the decision to train on all turns of a round."""
        return Train(tuple(self.row(rounds, place) for place in places(rounds, index)))

    def train_last_sampled(self, rounds: Sequence[Round]) -> Train:
        """Return the decision to train on the newest round that has turns."""
        sampled = [index for index, each in enumerate(rounds) if each.turns]
        return self.train_round(rounds, sampled[-1])

    def row(self, rounds: Sequence[Round], place: Place, group: str = "") -> Row:
        """Return a turn that trains with its own reward."""
        return Row(place, self.reward(turn_at(rounds, place)), group)

    def dropped(self, train: Train) -> Train:
        """Return the same rows without a gradient: they change neither policy nor critic."""
        rows = (
            Row(row.place, 0.0, row.group, weight=0.0, facts={**row.facts, DROPPED: 1.0})
            for row in train.rows
        )
        return Train(tuple(rows), is_dropped=True)

    def ends_escalation(self, last: Round) -> bool:
        """Return whether the search is over: solved, ungraded, off schedule, or no hint left."""
        return (
            last.request.is_off_schedule
            or last.is_solved
            or last.is_inconclusive
            or last.hint_status in FINAL_HINT_FAILURES
            or last.level >= self.max_level
        )


class FinalTurns(Method):
    """Validate a multi-turn method: play its turns, keep each conversation's last graded one.

    The row's facts compare that turn with the first one. Turns that would not train count too.
    """

    def __init__(self, method: Method) -> None:
        super().__init__()
        self._method = method

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return what the method samples first."""
        return self._method.open(problem, state)

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Return the method's next turn, in the end the last turns with their facts.

        Raises:
            TeacherSilentError: If a teacher left a turn unanswered.
        """
        if request := self._method.next_turn(problem, rounds):
            return request
        for each in rounds:
            if each.hint_status == "generation_failed":
                raise TeacherSilentError(each.request.role)
        found = conversations(rounds)
        return Train(tuple(Row(each.last, each.acc_last, facts=each.facts) for each in found))

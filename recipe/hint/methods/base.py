"""Base class of all methods: one decision before sampling, and one after each round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from recipe.hint.credit.rows import DROPPED
from recipe.hint.prompt import Style
from recipe.hint.schema import FINAL_HINT_FAILURES, ProblemState, seed_at
from recipe.hint.turns import Bare, Decision, Place, Round, Row, Sample, Train, Turn, turn_at
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError


@dataclass(frozen=True)
class MethodSettings:
    """Settings of a method, as fields of a subclass; as it is, a method has none."""

    @property
    def asks_teacher(self) -> bool:
        """Whether some turn is written by the endpoint of ``hint.teacher``."""
        return False

    def unread(self) -> dict[str, str]:
        """Return the settings without effect beside the others -> what would give them one."""
        return {}


@dataclass(frozen=True)
class Draws:
    """A method's random draws, from the run's seed, the problem and its visits so far.

    ``hint_dropout``: the probability that the visit after a hinted one goes without a hint.
    """

    seed: int = 1
    hint_dropout: float = 0.0

    def uniform(self, what: str, problem: Problem, state: ProblemState) -> float:
        """Return this visit's number in [0, 1) for the draw named ``what``."""
        return seed_at(self.seed, what, problem.id, state.visits) / 2**31

    def drops_hint(self, problem: Problem, state: ProblemState) -> bool:
        """Return whether this prompt rollout goes without a hint."""
        if not self.hint_dropout or not state.highest_level:
            return False
        # The former name of hint dropout, kept so that a resumed run draws the same numbers.
        return self.uniform("refresh", problem, state) < self.hint_dropout


class Method:
    """Decide what is sampled and what trains; as a base class: one group without a hint, as GRPO.

    A method is pure and holds no state. Its attributes declare what it needs. Own credit is that of
    ``OwnCredit`` (own_credit.py), several turns are those of ``MultiTurn`` (multi_turn.py).

    Attributes:
        settings_cls: A frozen dataclass of its settings; their defaults are the configuration's. It
            raises ``ConfigError`` on values that are out of range or exclude each other.
        settings_node: Their node in the configuration: ``hint.NAME``, or ``trainer``.
        uses_hints: Whether it needs a source of hints.
        source: The source of hints if ``hint.source`` names none.
        style: How hints enter the prompt if ``hint.style`` does not say.
        supports_dropout: Whether ``hint.dropout_share`` is read.
        max_level: Strongest hint level; 0 without hints.
        increments: Pieces that each level of the source is cut into, each a level of its own.
        drops_groups: Whether a group may be dropped under verl's estimator, which makes its rewards
            equal; not read where the method has credit of its own.
        has_own_credit: Whether it is an ``OwnCredit``, which alone may say so.
        is_multi_turn: Whether it is a ``MultiTurn``, likewise.
        needs_solution: Whether it trains on the reference solutions.
        must_open_think: Whether the response itself must open <think>; a chat template that opens
            it is refused.
        phase_may_fill_run: Whether the first phase may take all steps of the run.
    """

    settings_cls: ClassVar[type[MethodSettings]] = MethodSettings
    settings_node: ClassVar[str] = ""
    uses_hints: ClassVar[bool] = False
    source: ClassVar[str] = "self_generated"
    style: ClassVar[Style] = "paper"
    supports_dropout: ClassVar[bool] = False
    max_level: int = 0
    increments: int = 1
    drops_groups: ClassVar[bool] = False
    has_own_credit: ClassVar[bool] = False
    is_multi_turn: ClassVar[bool] = False
    needs_solution: ClassVar[bool] = False
    must_open_think: bool = False
    phase_may_fill_run: ClassVar[bool] = False

    def __init__(
        self, *, max_level: int = 0, settings: Any = None, draws: Draws | None = None
    ) -> None:
        self.max_level = max_level
        self.settings: Any = self.settings_cls() if settings is None else settings
        self.draws = draws or Draws()

    def check_run(self, *, group_size: int, use_kl_in_reward: bool, num_updates: int = 1) -> None:
        """Refuse settings that do not fit the run's.

        Args:
            group_size: Responses of a whole group, G.
            use_kl_in_reward: Whether verl subtracts the KL from each reward.
            num_updates: Mini-batches of one batch.

        Raises:
            ConfigError: Naming both settings.
        """

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Decide what is sampled first: here a group without a hint."""
        return Sample()

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Decide after each round: here train on it; without turns, sample a bare group."""
        if not rounds[-1].has_responses:
            return Sample()
        return self.train_round(rounds, len(rounds) - 1)

    def reward(self, turn: Turn) -> float:
        """Return the reward that a turn with a verdict trains with."""
        assert turn.verdict is not None, "a turn without a grade has no reward of its own"
        return turn.verdict.train_reward

    def validation(self) -> Method:
        """Return what validation plays: one group without hints, unless the method has turns."""
        return Method()

    def check_steps(self, num_steps: int) -> None:
        """Refuse a run that is too short for the first phase.

        Raises:
            ConfigError: Naming the setting.
        """
        name, first = self.first_phase
        is_too_long = first > num_steps if self.phase_may_fill_run else first >= num_steps
        if first and is_too_long:
            raise ConfigError(
                f"{self.settings_node}.{name}={first} leaves no step of the run's {num_steps} for "
                f"what follows; lower it, or raise trainer.total_training_steps"
            )

    @property
    def first_phase(self) -> tuple[str, int]:
        """Name and value, in steps, of the setting of the first phase's length; 0: no phase."""
        return "", 0

    def metrics(self) -> dict[str, float]:
        """Return constants to log at every step, names relative to ``hint/``."""
        return {}

    def train_round(self, rounds: Sequence[Round], index: int) -> Train:
        """Return the decision to train on all turns of a round."""
        turns = rounds[index].turns
        return Train(tuple(self.row(rounds, Place(index, turn)) for turn in range(len(turns))))

    def train_last_sampled(self, rounds: Sequence[Round]) -> Train:
        """Return the decision to train on the newest round that has turns.

        Raises:
            ValueError: If none has.
        """
        for index in reversed(range(len(rounds))):
            if rounds[index].has_responses:
                return self.train_round(rounds, index)
        raise ValueError("no round was sampled; a method must sample one before it trains")

    def row(self, rounds: Sequence[Round], place: Place, group: str = "") -> Row:
        """Return a turn that trains with its own reward."""
        return Row(place, self.reward(turn_at(rounds, place)), group)

    def dropped(self, train: Train) -> Train:
        """Return the same rows without a signal: they change neither policy nor critic."""
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


def check_below_group(name: str, value: int, group_size: int) -> None:
    """Refuse a number of rollouts that is not below the group size.

    Raises:
        ConfigError: Naming the setting.
    """
    if value >= group_size:
        raise ConfigError(
            f"{name}={value} must be below the group size actor_rollout_ref.rollout.n={group_size}"
        )


def unhinted() -> Sample:
    """Return the request that leaves the hint out, outside the method's schedule."""
    return Sample(Bare(), is_off_schedule=True)

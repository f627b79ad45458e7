"""Base class of all methods: one decision before sampling, and one after each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from recipe.hint.credit.archer import UtteranceCriticSettings
from recipe.hint.credit.rows import DROPPED, CreditRow
from recipe.hint.credit.tokens import TokenStats, token_advantages
from recipe.hint.errors import ConfigError
from recipe.hint.prompt import Style
from recipe.hint.schema import FINAL_HINT_FAILURES, Problem, ProblemState, seed_at
from recipe.hint.turns import Bare, Decision, Place, Round, Row, Sample, Train, Turn, turn_at


@dataclass(frozen=True)
class NoSettings:
    """A method without settings of its own."""


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

    A method is pure and holds no state. Its attributes declare what it needs. In ``advantages`` and
    the other hooks of credit, ``rows`` are those of one batch, in any order, and ``tokens`` their
    log-probabilities and entropies under the policy.

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
        has_own_credit: Whether :meth:`advantages` takes the place of verl's estimator.
        is_multi_turn: Whether its conversations have several turns, in training and in validation.
        needs_solution: Whether it trains on the reference solutions.
        must_open_think: Whether the response itself must open <think>; a chat template that opens
            it is refused.
        needs_log_probs: Whether it needs the trainer's log-probabilities before the update, which
            verl's bypass mode does not compute.
        phase_may_fill_run: Whether the first phase may take all steps of the run.
        aliases: Names of settings in other implementations -> ours; a name with dots may be any
            setting.
        alias_values: Name in another implementation -> its values -> ours.
    """

    settings_cls: ClassVar[type] = NoSettings
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
    needs_log_probs: ClassVar[bool] = False
    phase_may_fill_run: ClassVar[bool] = False
    aliases: ClassVar[Mapping[str, str]] = {}
    alias_values: ClassVar[Mapping[str, Mapping[str, str]]] = {}

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

    def next_turn(self, problem: Problem, rounds: Sequence[Round]) -> Sample | None:
        """Return the next turn's request, in validation too; ``None`` where conversations end."""
        return None

    def reward(self, turn: Turn) -> float:
        """Return the reward that a turn with a verdict trains with."""
        assert turn.verdict is not None, "a turn without a grade has no reward of its own"
        return turn.verdict.train_reward

    @property
    def verdict_dependent_settings(self) -> tuple[str, ...]:
        """Names of active settings that let a later turn depend on the verdict."""
        return ()

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

    @property
    def num_first_attempts(self) -> int:
        """How many of ``Problem.first_attempts`` conversations continue."""
        return 0

    @property
    def needs_reference(self) -> bool:
        """Whether some row can have a KL coefficient above 0."""
        return False

    @property
    def needs_critic(self) -> bool:
        """Whether :meth:`advantages` reads the value of a row."""
        return False

    @property
    def compares_group(self) -> bool:
        """Whether :meth:`advantages` compares the responses of one group."""
        return True

    @property
    def publishes_critic_rows(self) -> bool:
        """Whether turns of the policy that do not train are published for the critic."""
        return False

    @property
    def asks_teacher(self) -> bool:
        """Whether some turn is written by the endpoint of ``hint.teacher``."""
        return False

    @property
    def utterance_critic(self) -> UtteranceCriticSettings | None:
        """How a critic of whole utterances learns; ``None``: there is none, or verl's."""
        return None

    def value_targets(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return the critic's target for the state before each turn, shape (N,)."""
        return np.array([row.reward for row in rows])

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return the advantage of each row, shape (N,), before its weight and its KL."""
        raise NotImplementedError("only a method with has_own_credit has advantages")

    def token_weights(self, rows: Sequence[CreditRow], tokens: TokenStats) -> np.ndarray:
        """Return the factor of each token's advantage, shape (N, T) or (N, 1): 1."""
        return np.ones((len(rows), 1))

    def kl_coefs(self, rows: Sequence[CreditRow], kls_N: np.ndarray) -> np.ndarray:
        """Return the KL coefficient of each row, shape (N,): the row's own.

        ``kls_N`` are log-ratios to the reference policy, summed over a row's tokens, in nats.
        """
        return np.array([row.kl_coef for row in rows])

    def token_advantages(
        self, rows: Sequence[CreditRow], tokens: TokenStats
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return :meth:`advantages`, (N,), and each token's, (N, T), with weight and KL."""
        advantages_N = self.advantages(rows)
        weights_NT = np.array([[row.weight] for row in rows]) * self.token_weights(rows, tokens)
        kl_coefs_N = self.kl_coefs(rows, tokens.kls_N)
        return advantages_N, token_advantages(advantages_N, weights_NT, kl_coefs_N, tokens)

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

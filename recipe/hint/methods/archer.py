"""ArCHer: an off-policy, utterance-level critic gives the advantages of the turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from recipe.hint.credit.archer import UtteranceCriticSettings, utterance_advantages
from recipe.hint.credit.baselines import rewards_of, state_values
from recipe.hint.credit.rows import CreditRow
from recipe.hint.credit.turn_level import next_rows, turn_gae
from recipe.hint.methods.base import MethodSettings
from recipe.hint.methods.multi_turn import MultiTurn
from recipe.hint.methods.prompts import Revise
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Decision, Round, Row, Sample, Train, conversation_to, places, turn_at
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError


@dataclass(frozen=True)
class ArcherSettings(MethodSettings):
    """The critic and the conversation; defaults as in the original but ``updates``, ``batch_size``.

    Attributes:
        variant: ``full``: two turns, double Q and V, slow target and replay. ``bandit``: the same
            critic on one turn, which makes it regression on the reward. ``lite``: two turns with
            turn-level GAE on verl's critic: no Q, no replay, not ArCHer.
        rewards_first: Whether the first turn earns its own accuracy; otherwise only the last one
            earns.
        kl_coef: KL coefficient of every turn; the original has none.
        gamma: Discount per turn.
        lam: Trace decay of ``lite``.
        tau: Share of the new weights that the slow target takes over after each update.
        updates: Updates of the critic per training step.
        batch_size: Transitions of one update.
        capacity: Transitions in the replay buffer.
        expectile: ``null``: V learns from the utterances of this step, which are the present
            policy's. A number from 0.5 to below 1: from replayed ones, towards the best of them.
    """

    variant: Literal["full", "bandit", "lite"] = "full"
    rewards_first: bool = False
    kl_coef: float = 0.0
    gamma: float = 0.95
    lam: float = 0.95
    tau: float = 0.1
    updates: int = 8
    batch_size: int = 64
    capacity: int = 100_000
    expectile: float | None = None

    def __post_init__(self) -> None:
        for name in ("updates", "batch_size", "capacity"):
            if getattr(self, name) < 1:
                raise ConfigError(f"hint.archer.{name}={getattr(self, name)} must be at least 1")
        for name in ("gamma", "lam", "tau"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"hint.archer.{name}={getattr(self, name)} must be in [0, 1]")
        if self.tau == 0:
            raise ConfigError("hint.archer.tau=0 never moves the target; give it above 0")
        if self.kl_coef < 0:
            raise ConfigError(f"hint.archer.kl_coef={self.kl_coef} must not be negative")
        if self.expectile is not None and not 0.5 <= self.expectile < 1:
            raise ConfigError(
                f"hint.archer.expectile={self.expectile} must be from 0.5 to below 1, or null"
            )

    def unread(self) -> dict[str, str]:
        """Return the settings without effect -> what would give them one."""
        if self.variant == "lite":
            of_critic = ("tau", "updates", "batch_size", "capacity", "expectile")
            return dict.fromkeys(of_critic, "variant=full or bandit")
        found = {"lam": "variant=lite"}
        if self.variant == "bandit":
            found |= dict.fromkeys(("gamma", "rewards_first"), "variant=full or lite")
        return found


class Archer(MultiTurn):
    """Answer, then revise; each utterance earns Q - V of a critic that learns off policy.

    Source: Zhou et al. 2024, arXiv:2402.19446. Deviations: docs/lab/deviations.md#archer.
    """

    settings_cls = ArcherSettings
    settings_node = "hint.archer"

    @property
    def needs_reference(self) -> bool:
        """Whether there is a KL coefficient above 0."""
        return self.settings.kl_coef > 0

    @property
    def needs_critic(self) -> bool:
        """Always."""
        return True

    @property
    def compares_group(self) -> bool:
        """Never: the baseline is the critic's value."""
        return False

    @property
    def utterance_critic(self) -> UtteranceCriticSettings | None:
        """The critic of utterances; ``lite`` uses verl's."""
        if self.settings.variant == "lite":
            return None
        names = [each.name for each in fields(UtteranceCriticSettings)]
        return UtteranceCriticSettings(**{name: getattr(self.settings, name) for name in names})

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Continue every first turn (``bandit`` does not), then train on all turns.

        A conversation without the grades that it needs has no rows: what it earned is unknown.
        """
        if request := self.next_turn(problem, rounds):
            return request
        continued = {turn.parent for turn in rounds[-1].turns}
        rows, unknown = [], set()
        for index in range(len(rounds)):
            for place in places(rounds, index):
                earns = self.settings.rewards_first or place not in continued
                turn = turn_at(rounds, place)
                if earns and not turn.is_graded:
                    unknown.update(conversation_to(rounds, place))
                reward = self.reward(turn) if earns else 0.0
                rows.append(Row(place, reward, f"turn{index + 1}", self.settings.kl_coef))
        known = tuple(row for row in rows if unknown.isdisjoint(conversation_to(rounds, row.place)))
        return Train(known) if known else self.dropped(Train(tuple(rows)))

    def next_turn(self, problem: Problem, rounds: Sequence[Round]) -> Sample | None:
        """Request the revisions; ``bandit`` has none."""
        if len(rounds) > 1 or self.settings.variant == "bandit":
            return None
        return Sample(Revise(), n=1, parents=places(rounds, 0))

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return min Q - min V of each utterance, shape (N,); for ``lite`` GAE over the turns."""
        if self.utterance_critic is None:
            return self._gae(rows)
        q_N2, v_N2 = (
            np.array([[row.facts[f"{head}{i}"] for i in (1, 2)] for row in rows]).reshape(-1, 2)
            for head in "qv"
        )
        return utterance_advantages(q_N2, v_N2)

    def value_targets(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return the lambda-returns for ``lite``, shape (N,), else the discounted rewards to come.

        The latter only measure V: the critic of utterances computes its own targets.
        """
        if self.utterance_critic is None:
            return state_values(rows) + self._gae(rows)
        gamma = self.settings.gamma
        return turn_gae(rewards_of(rows), np.zeros(len(rows)), next_rows(rows), gamma, 1.0)

    def _gae(self, rows: Sequence[CreditRow]) -> np.ndarray:
        gamma, lam = self.settings.gamma, self.settings.lam
        return turn_gae(rewards_of(rows), state_values(rows), next_rows(rows), gamma, lam)

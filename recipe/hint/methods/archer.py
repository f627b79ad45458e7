"""ArCHer: an off-policy, utterance-level critic gives the advantages of the turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from recipe.hint.credit.archer import (
    UtteranceCriticSettings,
    next_rows,
    returns_to_go,
    utterance_advantages,
)
from recipe.hint.credit.base import Credit, CreditRow
from recipe.hint.credit.baselines import rewards_of
from recipe.hint.methods.base import Coefficient, Method, MethodSettings, Needs
from recipe.hint.schema import ProblemState
from recipe.hint.turns import (
    Decision,
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


@dataclass(frozen=True)
class ArcherSettings(UtteranceCriticSettings, MethodSettings):
    """The critic, which :class:`UtteranceCriticSettings` describes, and the conversation.

    Attributes:
        variant: ``full``: two turns, double Q and V, slow target and replay. ``bandit``: the same
            critic on one turn, which makes it regression on the reward.
        rewards_first: Whether the first turn earns its own accuracy; otherwise only the last one
            earns.
        kl_coef: KL coefficient of every turn; the original has none.
    """

    variant: Literal["full", "bandit"] = "full"
    rewards_first: bool = False
    kl_coef: Coefficient = 0.0


@dataclass(frozen=True)
class UtteranceCredit(Credit):
    """What the critic of utterances says: min Q - min V."""

    gamma: float

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return the advantages, shape (N,)."""
        q_N2, v_N2 = (
            np.array([[row.facts[f"{head}{i}"] for i in (1, 2)] for row in rows]).reshape(-1, 2)
            for head in "qv"
        )
        return utterance_advantages(q_N2, v_N2)

    def value_targets(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return the discounted rewards to come, shape (N,).

        They only measure V: the critic computes its own targets.
        """
        return returns_to_go(rewards_of(rows), next_rows(rows), self.gamma)


class Archer(Method):
    """Answer, then revise; each utterance earns Q - V of a critic that learns off policy.

    Source: Zhou et al. 2024, arXiv:2402.19446. Deviations: docs/lab/deviations.md#archer.
    """

    settings_cls = ArcherSettings
    settings_node = "hint.archer"
    is_multi_turn = True

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        settings = self.settings
        self.credit = UtteranceCredit(settings.gamma)
        self.needs = Needs(
            reference=settings.kl_coef > 0,
            utterance_critic=settings,
            group=False,  # the baseline is the critic's value
        )

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

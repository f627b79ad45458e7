"""Describe one training row for credit: role, place in its conversation, and reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# Fact of a row without a training signal.
DROPPED = "is_dropped"


@dataclass(frozen=True, slots=True)
class CreditRow:
    """One published turn: it trains, or only the critic reads it (``weight``, ``kl_coef`` 0).

    Attributes:
        problem_id: The problem.
        prompt_uid: The prompt rollout: one problem at one step.
        group: Rows of one prompt rollout with the same name may share a baseline.
        role: Who speaks: ``solver``, ``guide``, ...
        turn: Its number in its conversation, from 0.
        session: Index of the conversation's first turn among those of the prompt rollout; all that
            branch from one first turn share it. In verl's keys a session is a row instead.
        reward: What the method gives the turn.
        kl_coef: Coefficient of the KL divergence from the reference policy, 0: none.
        weight: Multiplies the advantage.
        is_given: Whether the response was given, not sampled.
        value: The critic's value of the state before the turn; ``None`` without a critic.
        facts: Further numbers that the method keeps of the turn, by name.
    """

    problem_id: str
    prompt_uid: str
    group: str
    role: str
    turn: int
    session: int
    reward: float
    kl_coef: float = 0.0
    weight: float = 1.0
    is_given: bool = False
    value: float | None = None
    facts: Mapping[str, float] = field(default_factory=dict)


def has_signal(rewards: Sequence[float | None], groups: Sequence[str]) -> bool:
    """Return whether any group has a gradient.

    Its rewards differ, or its only row has a nonzero reward.

    Args:
        rewards: Of the rows that train; ``None`` is not a number.
        groups: The group of each; empty: one group.
    """
    by_group: dict[str, list[float | None]] = {}
    for name, reward in zip(groups or ("",) * len(rewards), rewards, strict=True):
        by_group.setdefault(name, []).append(reward)
    return any(
        len(set(each)) > 1 or (len(each) == 1 and each[0] != 0) for each in by_group.values()
    )

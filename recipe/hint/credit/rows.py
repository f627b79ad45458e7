"""Describe one training row for credit: role, place in its conversation, and reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# Fact of a row without a training signal.
DROPPED = "is_dropped"


@dataclass(frozen=True, slots=True)
class CreditRow:
    """One published turn: it trains, or only the critic reads it (``weight``, ``kl_coef`` 0).

    A row belongs to a problem and to one prompt rollout of it, ``prompt_uid``; ``group`` names the
    rows of a rollout that may share a baseline. ``turn`` is its number in its conversation, from 0,
    ``session`` that of the conversation's first turn. ``kl_coef`` is the coefficient of its KL from
    the reference policy, ``weight`` multiplies its advantage, ``is_given`` rows were not sampled.
    ``value`` is the critic's of the state before the turn, ``None`` without a critic; ``facts`` are
    further numbers that the method keeps.
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
    """Return whether any group has rewards that differ, or one nonzero reward alone.

    ``rewards`` are of the rows that train, ``None`` is not a number; without ``groups`` all are
    one.
    """
    by_group: dict[str, list[float | None]] = {}
    for name, reward in zip(groups or ("",) * len(rewards), rewards, strict=True):
        by_group.setdefault(name, []).append(reward)
    return any(
        len(set(each)) > 1 or (len(each) == 1 and each[0] != 0) for each in by_group.values()
    )

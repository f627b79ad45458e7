"""Baselines: what a reward is compared with.

No baseline of :func:`minus_baseline` depends on the row's own action, so none changes the expected
gradient (docs/lab/credit.md). Each function returns one number a row, shape ``(N,)``; a group is
the rows of one prompt rollout with one group name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from recipe.hint.credit.base import CreditRow

# What verl's GRPO adds to the deviation that it divides by.
EPSILON = 1e-6

Baseline = Literal["leave_one_out", "none", "value"]


def minus_baseline(rows: Sequence[CreditRow], baseline: Baseline = "leave_one_out") -> np.ndarray:
    """Return reward minus baseline of each row."""
    if baseline == "none":
        return rewards_of(rows)
    return rewards_of(rows) - (state_values if baseline == "value" else leave_one_out)(rows)


def rewards_of(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return the rewards of the rows."""
    return np.array([row.reward for row in rows], dtype=np.float64)


def leave_one_out(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return the mean reward of the *other* rows of each row's group; 0 for a row alone.

    Source: Kool et al. 2019, "Buy 4 REINFORCE samples, get a baseline for free".
    """
    rewards_N, members_N = rewards_of(rows), _members(rows)
    sums = np.bincount(members_N, weights=rewards_N)[members_N]
    others = np.bincount(members_N)[members_N] - 1
    return np.where(others > 0, (sums - rewards_N) / np.maximum(others, 1), 0.0)


def grpo_advantages(rows: Sequence[CreditRow], *, by_std: bool = True) -> np.ndarray:
    """Return (reward - mean) / (deviation + 1e-6) of each row's group: verl's GRPO.

    A row alone in its group keeps its raw reward, as in verl: its mean counts as 0. The deviation
    is the unbiased one, or 1 where it is 0. Dividing by it, unless ``by_std`` is false, weights
    problems of every difficulty alike; that is no longer the gradient of the mean reward.
    """
    rewards_N, members_N = rewards_of(rows), _members(rows)
    counts_N = np.bincount(members_N)[members_N]
    means_N = np.bincount(members_N, weights=rewards_N)[members_N] / counts_N
    centred_N = rewards_N - np.where(counts_N > 1, means_N, 0.0)
    if not by_std:
        return centred_N
    squares_N = np.bincount(members_N, weights=(rewards_N - means_N) ** 2)[members_N]
    spread_N = np.sqrt(squares_N / np.maximum(counts_N - 1, 1))
    return centred_N / (np.where(spread_N > 0, spread_N, 1.0) + EPSILON)


def state_values(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return the critic's value of the state before each turn.

    Raises:
        ValueError: If one is missing or not finite: verl would skip the update silently.
    """
    values_N = np.array([row.value for row in rows], dtype=np.float64)
    if wrong := int((~np.isfinite(values_N)).sum()):
        raise ValueError(
            f"{wrong} of {len(rows)} rows have no finite value of the critic; look at "
            f"critic/vf_loss and critic/grad_norm and give a lower critic.optim.lr, or another "
            f"baseline"
        )
    return values_N


def _members(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return the index of each row's group."""
    numbers: dict[tuple[str, str], int] = {}
    names = [(row.prompt_uid, row.group) for row in rows]
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)

"""Baselines: what a reward is compared with.

No baseline of :func:`minus_baseline` depends on the row's own action, so none changes the expected
gradient (docs/lab/credit.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from recipe.hint.credit.rows import CreditRow

# What verl's GRPO adds to the deviation that it divides by.
EPSILON = 1e-6

Baseline = Literal["leave_one_out", "none", "value"]


def minus_baseline(rows: Sequence[CreditRow], baseline: Baseline = "leave_one_out") -> np.ndarray:
    """Return reward minus baseline of each row, shape ``(N,)``."""
    return rewards_of(rows) - _BASELINES[baseline](rows)


def rewards_of(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return the rewards of the rows, shape ``(N,)``."""
    return np.array([row.reward for row in rows], dtype=np.float64)


def leave_one_out(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return the mean reward of the *other* rows of each row's group, shape ``(N,)``.

    A group is the rows of one prompt rollout with one group name. A row alone in its group is
    compared with 0.

    Source: Kool et al. 2019, "Buy 4 REINFORCE samples, get a baseline for free".
    """
    rewards_N = rewards_of(rows)
    members_N = _members(rows)
    sums = np.bincount(members_N, weights=rewards_N)[members_N]
    others = np.bincount(members_N)[members_N] - 1
    return np.where(others > 0, (sums - rewards_N) / np.maximum(others, 1), 0.0)


def grpo_advantages(rows: Sequence[CreditRow], *, by_std: bool = True) -> np.ndarray:
    """Return (reward - mean) / (deviation + 1e-6) of each row's group, shape ``(N,)``: verl's GRPO.

    A row alone in its group keeps its raw reward, as in verl: its mean counts as 0. The deviation
    is the unbiased one, or 1 where it is 0. Dividing by it weights problems of every difficulty
    alike; that is no longer the gradient of the mean reward.

    Args:
        rows: Those of one batch, in any order.
        by_std: Whether to divide.
    """
    rewards_N = rewards_of(rows)
    members_N = _members(rows)
    counts_N = np.bincount(members_N)[members_N]
    means_N = np.bincount(members_N, weights=rewards_N)[members_N] / counts_N
    centred_N = rewards_N - np.where(counts_N > 1, means_N, 0.0)
    if not by_std:
        return centred_N
    squares_N = np.bincount(members_N, weights=(rewards_N - means_N) ** 2)[members_N]
    spread_N = np.sqrt(squares_N / np.maximum(counts_N - 1, 1))
    return centred_N / (np.where(spread_N > 0, spread_N, 1.0) + EPSILON)


def state_values(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return the critic's value of the state before each turn, shape ``(N,)``.

    Raises:
        ValueError: If a row has none, because there is no critic, or one that is not finite: verl
            would skip the update silently.
    """
    values = [row.value for row in rows if row.value is not None]
    if len(values) != len(rows):
        raise ValueError(
            f"{len(rows) - len(values)} of {len(rows)} rows have no value; expected the critic's "
            f"for each: set critic.enable=true or another baseline"
        )
    if not (is_finite_N := np.isfinite(values)).all():
        raise ValueError(
            f"the critic's value of {(~is_finite_N).sum()} of {len(rows)} rows is not finite; look "
            f"at critic/vf_loss and critic/grad_norm, and give a lower critic.optim.lr"
        )
    return np.array(values, dtype=np.float64)


def _members(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return the index of each row's group, shape ``(N,)``."""
    numbers: dict[tuple[str, str], int] = {}
    return np.array(
        [numbers.setdefault((row.prompt_uid, row.group), len(numbers)) for row in rows],
        dtype=np.int64,
    )


_BASELINES: dict[Baseline, Callable[[Sequence[CreditRow]], np.ndarray]] = {
    "leave_one_out": leave_one_out,
    "none": lambda rows: np.zeros(len(rows)),
    "value": state_values,
}

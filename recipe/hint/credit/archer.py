"""ArCHer's utterance-level critic: two Q and V heads, bootstrapping over turns, slow target.

Source: Zhou et al. 2024, arXiv:2402.19446. Shapes: ``N`` utterances, 2 heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class UtteranceCriticSettings:
    """How a critic of utterances learns.

    Attributes:
        gamma: Discount per turn.
        tau: Share of the new weights that the slow target takes over after each update.
        updates: Updates per training step.
        batch_size: Transitions of one update.
        capacity: Transitions that are kept.
        expectile: V is this expectile of Q over the replayed actions; ``None``: the mean of Q over
            this step's actions, those of the present policy.
    """

    gamma: float
    tau: float
    updates: int
    batch_size: int
    capacity: int
    expectile: float | None


def q_targets(
    rewards_N: np.ndarray, next_values_N2: np.ndarray, is_done_N: np.ndarray, gamma: float
) -> np.ndarray:
    """Return what Q1 and Q2 regress on: r + gamma (1 - done) V_i(s'), shape ``(N, 2)``.

    ``next_values_N2`` are the slow target's values of the next states, not read where a
    conversation is done. If every utterance is the last one, this is regression on the reward.
    """
    bootstrap_N2 = np.where(is_done_N[:, None], 0.0, gamma * next_values_N2)
    return rewards_N[:, None] + bootstrap_N2


def utterance_advantages(q_N2: np.ndarray, v_N2: np.ndarray) -> np.ndarray:
    """Return min over the doubles of Q minus that of V, shape ``(N,)``."""
    return q_N2.min(axis=1) - v_N2.min(axis=1)


def expectile_weights(q: Any, v: Any, expectile: float) -> Any:
    """Return the weight of each squared error of V, for arrays and tensors alike.

    ``expectile`` where Q is above V, ``1 - expectile`` below. With 0.5 V is the mean of Q over the
    actions in the data, towards 1 it is the best of them (Kostrikov et al. 2021, arXiv:2110.06169).
    """
    return abs(expectile - (q < v) * 1.0)


def soft_update(target: Any, online: Any, tau: float) -> Any:
    """Return the slow target a step closer to the weights: (1 - tau) target + tau online."""
    return target + tau * (online - target)

"""ArCHer's utterance-level targets: doubles, bootstrap over turns, slow target, expectile.

Source: Zhou et al. 2024, arXiv:2402.19446. Shapes: ``N`` utterances, 2 doubles.
"""

from __future__ import annotations

import numpy as np


def q_targets(
    rewards_N: np.ndarray, next_values_N2: np.ndarray, is_done_N: np.ndarray, gamma: float
) -> np.ndarray:
    """Return what Q1 and Q2 regress on: r + gamma (1 - done) V_i(s'), shape ``(N, 2)``.

    ``next_values_N2`` are the slow target's values of the next states; where a conversation is
    done they are not read. With every utterance the last, this is regression on the reward.
    """
    bootstrap_N2 = np.where(is_done_N[:, None], 0.0, gamma * next_values_N2)
    return rewards_N[:, None] + bootstrap_N2


def utterance_advantages(q_N2: np.ndarray, v_N2: np.ndarray) -> np.ndarray:
    """Return min over the doubles of Q minus that of V, shape ``(N,)``."""
    return q_N2.min(axis=1) - v_N2.min(axis=1)


def expectile_weights(q_N2: np.ndarray, v_N2: np.ndarray, expectile: float) -> np.ndarray:
    """Return the weight of each squared error of V, shape ``(N, 2)``.

    ``expectile`` where Q is above V, the rest of 1 where it is not. 0.5 weighs all alike and gives
    V the mean of Q over the actions in the data; towards 1 V goes to the best of them, without an
    action of the present policy (Kostrikov et al. 2021, arXiv:2110.06169).
    """
    return np.where(q_N2 > v_N2, expectile, 1.0 - expectile)

"""Shape the reward of a turn by that of an earlier one."""

from __future__ import annotations


def progress_reward(before: float, after: float, alpha: float) -> float:
    """Return ``after + alpha x (after - before)``, what a revision earns.

    For rewards 0 and 1: wrong to wrong 0, right to right 1, wrong to right 1 + alpha, right to
    wrong -alpha.

    Source: Kumar et al. 2024, arXiv:2409.12917, stage II.
    """
    return after + alpha * (after - before)

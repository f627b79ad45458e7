"""Assign credit across the turns of a conversation: which turn follows which, GAE over turns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recipe.hint.credit.rows import CreditRow

LAST = -1


def next_rows(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return the index of the row that follows each in its conversation, shape ``(N,)``.

    ``LAST`` where none does. Turns without a row are skipped.

    Raises:
        ValueError: If two rows of a conversation are the same turn: it is a tree, and no single
            row follows.
    """
    conversations: dict[tuple[str, int], dict[int, int]] = {}
    for index, row in enumerate(rows):
        turns = conversations.setdefault((row.prompt_uid, row.session), {})
        if row.turn in turns:
            raise ValueError(
                f"conversation {row.session} of problem {row.problem_id!r} has two rows of turn "
                f"{row.turn}; expected a chain: sample one response per parent"
            )
        turns[row.turn] = index
    following = np.full(len(rows), LAST, dtype=np.int64)
    for turns in conversations.values():
        in_order = [turns[turn] for turn in sorted(turns)]
        following[in_order[:-1]] = in_order[1:]
    return following


def turn_gae(
    rewards_N: np.ndarray, values_N: np.ndarray, following_N: np.ndarray, gamma: float, lam: float
) -> np.ndarray:
    """Return advantages over turns by generalised advantage estimation, shape ``(N,)``.

    A turn is one action: delta_t = r_t + gamma V(s_{t+1}) - V(s_t), and
    A_t = delta_t + gamma lam A_{t+1}. With ``lam=1`` any V leaves the expected gradient as it is;
    below 1 it does only where V is exact. ``values_N + advantages`` is what V regresses on.

    Source: Schulman et al. 2015, arXiv:1506.02438, with a turn in place of a token.

    Args:
        rewards_N: What each turn earned by itself.
        values_N: V of the state before each turn.
        following_N: From :func:`next_rows`.
        gamma: Discount per turn.
        lam: Trace decay per turn.
    """

    def advantage(row: int) -> float:
        after = following_N[row]
        if after == LAST:
            return rewards_N[row] - values_N[row]
        delta = rewards_N[row] + gamma * values_N[after] - values_N[row]
        return delta + gamma * lam * advantage(after)

    return np.array([advantage(row) for row in range(len(rewards_N))], dtype=np.float64)

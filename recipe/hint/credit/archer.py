"""ArCHer's utterance-level critic: targets over turns, two Q and V heads, slow target, replay.

Source: Zhou et al. 2024, arXiv:2402.19446. Shapes: ``N`` utterances, 2 heads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from recipe.hint.credit.base import CreditRow

LAST = -1
_TOKENS = ("state_T", "action_T", "next_state_T")


@dataclass(frozen=True)
class UtteranceCriticSettings:
    """How a critic learns; defaults as in the original but ``updates`` and ``batch_size``.

    Attributes:
        gamma: Discount per turn.
        tau: Share of the new weights that the slow target takes over after each update.
        updates: Updates of the critic per training step.
        batch_size: Transitions of one update.
        capacity: Transitions in the replay buffer.
        expectile: ``null``: V learns from the utterances of this step, which are the present
            policy's. A number from 0.5 to below 1: from replayed ones, towards the best of them.
    """

    gamma: Annotated[float, Field(ge=0, le=1)] = 0.95
    tau: Annotated[float, Field(gt=0, le=1)] = 0.1  # at 0 the target would never move
    updates: Annotated[int, Field(ge=1)] = 8
    batch_size: Annotated[int, Field(ge=1)] = 64
    capacity: Annotated[int, Field(ge=1)] = 100_000
    expectile: Annotated[float, Field(ge=0.5, lt=1)] | None = None


def next_rows(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return the index of the row that follows each in its conversation, shape ``(N,)``.

    ``LAST`` where none does. Turns without a row are skipped; a turn has one row, for ArCHer's
    conversations do not branch.
    """
    conversations: dict[tuple[str, int], dict[int, int]] = {}
    for index, row in enumerate(rows):
        conversations.setdefault((row.prompt_uid, row.session), {})[row.turn] = index
    following = np.full(len(rows), LAST, dtype=np.int64)
    for turns in conversations.values():
        in_order = [turns[turn] for turn in sorted(turns)]
        following[in_order[:-1]] = in_order[1:]
    return following


def returns_to_go(rewards_N: np.ndarray, following_N: np.ndarray, gamma: float) -> np.ndarray:
    """Return each turn's reward and the discounted ones after it, shape ``(N,)``.

    ``following_N`` is from :func:`next_rows`.
    """

    def to_go(row: int) -> float:
        after = following_N[row]
        return rewards_N[row] + (0.0 if after == LAST else gamma * to_go(after))

    return np.array([to_go(row) for row in range(len(rewards_N))], dtype=np.float64)


def q_targets(
    rewards_N: np.ndarray, next_values_N2: np.ndarray, is_done_N: np.ndarray, gamma: float
) -> np.ndarray:
    """Return what Q1 and Q2 regress on: r + gamma (1 - done) V_i(s'), shape ``(N, 2)``.

    ``next_values_N2`` are the slow target's values of the next states, not read where a
    conversation is done. If every utterance is the last one, this is regression on the reward.
    """
    return rewards_N[:, None] + np.where(is_done_N[:, None], 0.0, gamma * next_values_N2)


def utterance_advantages(q_N2: np.ndarray, v_N2: np.ndarray) -> np.ndarray:
    """Return min over the doubles of Q minus that of V, shape ``(N,)``."""
    return q_N2.min(axis=1) - v_N2.min(axis=1)


def expectile_weights(q: Any, v: Any, expectile: float) -> Any:
    """Return the weight of each squared error of V, for arrays and tensors alike.

    ``expectile`` where Q is above V, ``1 - expectile`` below. With 0.5 V is the mean of Q over the
    actions in the data, towards 1 it is the best of them (Kostrikov et al. 2021, arXiv:2110.06169).
    """
    return abs(expectile - (q < v) * 1.0)


@dataclass(frozen=True, slots=True)
class Transition:
    """One utterance: tokens before it, its own, its reward, and the tokens before the next one.

    ``next_state_T`` is empty for the last one of a conversation.
    """

    state_T: np.ndarray
    action_T: np.ndarray
    reward: float
    next_state_T: np.ndarray

    @property
    def is_done(self) -> bool:
        """Whether no utterance follows."""
        return not len(self.next_state_T)


class ReplayBuffer:
    """The newest ``capacity`` transitions; the oldest make room."""

    def __init__(self, capacity: int) -> None:
        self._kept: deque[Transition] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, transitions: Iterable[Transition]) -> None:
        """Keep transitions, the last of them as the newest."""
        self._kept.extend(transitions)

    def draw(self, count: int, seed: int) -> list[Transition]:
        """Return ``count`` transitions, each drawn from all with the same chance."""
        chosen = np.random.default_rng(seed).integers(len(self._kept), size=count)
        return [self._kept[index] for index in chosen]

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return all transitions as flat arrays; for token fields also where each text ends."""
        state: dict[str, np.ndarray] = {}
        state["reward"] = np.array([each.reward for each in self._kept], dtype=np.float64)
        for name in _TOKENS:
            texts = [getattr(each, name) for each in self._kept]
            state[name] = np.concatenate([np.array([], np.int32), *texts], dtype=np.int32)
            state[f"{name}_ends"] = np.cumsum([len(each) for each in texts], dtype=np.int64)
        return state

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Replace the transitions; if they exceed the capacity, the newest stay."""
        texts = [np.split(state[name], state[f"{name}_ends"][:-1]) for name in _TOKENS]
        self._kept.clear()
        for reward, *tokens in zip(state["reward"].tolist(), *texts, strict=False):
            # Copied: a view would keep all tokens alive.
            state_T, action_T, next_state_T = (each.copy() for each in tokens)
            self._kept.append(Transition(state_T, action_T, reward, next_state_T))

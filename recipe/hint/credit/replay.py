"""ArCHer's replay buffer: utterances of this step and of earlier ones, as token ids."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Transition:
    """One utterance in one state.

    Attributes:
        state_T: Tokens of the conversation before it.
        action_T: Its own tokens, at least one.
        reward: What it earned by itself.
        next_state_T: Tokens of the conversation before the next utterance; empty if this is the
            last one.
        step: Training step that it was sampled at.
    """

    state_T: np.ndarray
    action_T: np.ndarray
    reward: float
    next_state_T: np.ndarray
    step: int

    @property
    def is_done(self) -> bool:
        """Whether no utterance follows."""
        return not len(self.next_state_T)


class ReplayBuffer:
    """The newest ``capacity`` transitions; the oldest make room.

    Raises:
        ValueError: If nothing would fit.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a replay buffer of {capacity} transitions; give at least 1")
        self._kept: deque[Transition] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, transitions: Iterable[Transition]) -> None:
        """Keep transitions, the last of them as the newest."""
        self._kept.extend(transitions)

    def draw(self, count: int, seed: int) -> list[Transition]:
        """Return ``count`` transitions, each drawn from all with the same chance.

        Raises:
            ValueError: If there are none.
        """
        if not self._kept:
            raise ValueError("the replay buffer is empty; add the transitions of a step first")
        chosen = np.random.default_rng(seed).integers(len(self._kept), size=count)
        return [self._kept[index] for index in chosen]

    def state_dict(self) -> dict[str, np.ndarray]:
        """Return all transitions as flat arrays; for token fields also where each text ends."""
        state = {
            "reward": np.array([each.reward for each in self._kept], dtype=np.float64),
            "step": np.array([each.step for each in self._kept], dtype=np.int64),
        }
        for name in _TOKENS:
            texts = [getattr(each, name) for each in self._kept]
            texts_T = [np.array([], np.int32), *texts]
            state[name] = np.concatenate(texts_T, dtype=np.int32, casting="same_kind")
            state[f"{name}_ends"] = np.cumsum([len(each) for each in texts], dtype=np.int64)
        return state

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Replace the transitions; if they exceed the capacity, the newest stay."""
        texts = [np.split(state[name], state[f"{name}_ends"][:-1]) for name in _TOKENS]
        # Copied, for a view would keep all tokens alive; equal texts once, such as the state after
        # an utterance and that before the next one.
        copies: dict[bytes, np.ndarray] = {}
        self._kept.clear()
        for number in range(len(state["reward"])):
            state_T, action_T, next_state_T = (
                copies.setdefault(key := each[number].tobytes(), np.frombuffer(key, np.int32))
                for each in texts
            )
            reward, step = float(state["reward"][number]), int(state["step"][number])
            self._kept.append(Transition(state_T, action_T, reward, next_state_T, step))


_TOKENS = ("state_T", "action_T", "next_state_T")

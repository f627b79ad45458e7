"""Simulated replicas: decoding under a speed that falls with the sequences in the batch."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Speed:
    """What the devices of one replica do.

    Attributes:
        step_ms: A decoding step of b sequences takes ``step_ms + sequence_ms * b``.
        sequence_ms: See ``step_ms``.
        capacity: Sequences that run at once; the others wait in the order of their arrival.
        prefill_tokens_per_s: Prompt tokens; decoding stands still meanwhile.
        train_tokens_per_s: Tokens through old log-probabilities and the update.
    """

    step_ms: float
    sequence_ms: float
    capacity: int
    prefill_tokens_per_s: float
    train_tokens_per_s: float


# Decoding and capacity: fits to aiconfigurator 0.12.0 (docs/lab/performance.md). Prefill: 2 N FLOP
# a token at half of the peak; training: 8 N at 0.4 of it. The A100 row is scaled from the first by
# memory bandwidth and parameters, at 0.35 of the peak: no published table has it.
SPEEDS = {
    "8b-h100": Speed(6.4, 0.085, 150, 30_000, 6_000),
    "8b-h200": Speed(4.4, 0.068, 305, 30_000, 6_000),
    "32b-tp4-h100": Speed(8.2, 0.058, 340, 30_000, 6_000),
    "32b-tp4-h200": Speed(6.2, 0.0495, 690, 30_000, 6_000),
    "7b-a100": Speed(9.7, 0.080, 256, 10_000, 1_800),
}


@dataclass(slots=True, eq=False)
class _Group:
    """Sequences that were asked for together; ``done`` resolves when the last one is."""

    lengths: list[int]
    prefill_tokens: int
    done: asyncio.Future[None]
    made: list[int] = field(default_factory=list)
    num_left: int = 0
    is_prefilled: bool = False

    def __post_init__(self) -> None:
        self.made, self.num_left = [0] * len(self.lengths), len(self.lengths)


class Replica:
    """One engine; all its running sequences make a token per decoding step.

    Exact without a step per token: with n sequences running, each makes 1 / step(n) tokens per
    second, and n changes only when one arrives or ends.
    """

    def __init__(self, speed: Speed) -> None:
        self.num_groups = 0
        self._speed = speed
        self._steps = 0.0  # decoding steps so far ...
        self._at_s = 0.0  # ... at this moment
        # (steps at its end, number, group, place in the group, steps at its begin)
        self._running: list[tuple[float, int, _Group, int, float]] = []
        self._waiting: deque[tuple[_Group, int]] = deque()
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    async def generate(self, lengths: Sequence[int], prefill_tokens: int) -> list[int]:
        """Generate sequences of these lengths; return the tokens made, fewer where stopped."""
        group = _Group(list(lengths), prefill_tokens, asyncio.get_running_loop().create_future())
        self._waiting.extend((group, place) for place in range(len(group.lengths)))
        self.num_groups += 1
        self._settle()
        try:
            await group.done
        finally:
            self.num_groups -= 1
        return group.made

    def stop(self) -> None:
        """End all requests; what they made so far is their result."""
        self._advance()
        stopped = [group for group, _ in self._waiting]
        for _, _, group, place, begin in self._running:
            group.made[place] = int(self._steps - begin)
            stopped.append(group)
        self._running, self._waiting = [], deque()
        for group in dict.fromkeys(stopped):
            group.done.set_result(None)
        self._settle()

    def _advance(self) -> None:
        now_s = asyncio.get_running_loop().time()
        step_s = (self._speed.step_ms + self._speed.sequence_ms * len(self._running)) / 1000
        if self._running:
            self._steps += max(now_s - self._at_s, 0.0) / step_s
        self._at_s = max(self._at_s, now_s)

    def _settle(self) -> None:
        """Let what is done go, let what waits in, and come back when the next one is done."""
        self._advance()
        while self._running and self._running[0][0] <= self._steps + 1e-6:
            _, _, group, place, _ = heapq.heappop(self._running)
            group.made[place] = group.lengths[place]
            group.num_left -= 1
            if not group.num_left:
                group.done.set_result(None)
        while self._waiting and len(self._running) < self._speed.capacity:
            group, place = self._waiting.popleft()
            if not group.is_prefilled:  # once for the group
                group.is_prefilled = True
                self._at_s += group.prefill_tokens / self._speed.prefill_tokens_per_s
            self._count += 1
            end = self._steps + group.lengths[place]
            heapq.heappush(self._running, (end, self._count, group, place, self._steps))
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._running:
            step_s = (self._speed.step_ms + self._speed.sequence_ms * len(self._running)) / 1000
            at_s = self._at_s + (self._running[0][0] - self._steps) * step_s
            self._timer = asyncio.get_running_loop().call_at(at_s, self._settle)


class Fleet:
    """Replicas behind verl's balancer, which sends a request where the fewest are under way.

    Args:
        speed: Of each replica.
        num_replicas: How many there are.
    """

    def __init__(self, speed: Speed, num_replicas: int) -> None:
        self._replicas = [Replica(speed) for _ in range(num_replicas)]
        self._open = asyncio.Event()
        self._open.set()
        self.num_tokens = 0

    async def generate(self, lengths: Sequence[int], prompt_tokens: int) -> None:
        """Generate one group, whatever stops it meanwhile."""
        left, prefill_tokens = list(lengths), prompt_tokens
        while True:
            await self._open.wait()
            replica = min(self._replicas, key=lambda each: each.num_groups)
            made = await replica.generate(left, prefill_tokens)
            self.num_tokens += sum(made)
            if made == left:
                return
            # It goes on where it was stopped; each response has its own tokens to read again.
            prefill_tokens += sum(made)
            left = [length - done for length, done in zip(left, made, strict=True) if length > done]

    def stop(self) -> None:
        """Stop all groups, and let none begin."""
        self._open.clear()
        for replica in self._replicas:
            replica.stop()

    def resume(self) -> None:
        """Let groups begin again."""
        self._open.set()

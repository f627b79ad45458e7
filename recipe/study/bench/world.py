"""A simulated policy: who solves which problem at which hint level, and at what length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from recipe.hint.engine import Engine
from recipe.hint.hints.base import Generate, HintResult, WrittenText
from recipe.hint.prompt import Message
from recipe.hint.schema import HintLevels, Response
from recipe.hint.turns import RoleSampling
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError
from recipe.study.bench.fleet import Fleet
from recipe.verify.schema import Verdict

_RIGHT = Verdict(1.0, "correct", basis="number")
_WRONG = Verdict(0.0, "wrong", basis="number")


@dataclass(frozen=True)
class World:
    """What is random about problems and responses.

    A problem has a difficulty z ~ N(0, 1). A response under hint level l is right with
    probability sigmoid(ease - 3 z + hint_gain * l); ``ease`` is chosen so that a share
    ``unresolved`` of all groups is all wrong at level 0. Its length is log-normal with the mean
    ``mean_tokens``, cut at ``max_tokens``; the share ``correlation`` of the variance of its
    logarithm is the difficulty's.

    Attributes:
        group_size: Responses of a group, G.
        sigma: Standard deviation of the logarithm of a length.
        parse_failure: Share of hint texts that cannot be read.
    """

    unresolved: float = 0.25
    group_size: int = 8
    hint_gain: float = 1.0
    mean_tokens: float = 2000.0
    sigma: float = 0.8
    max_tokens: int = 8192
    correlation: float = 0.3
    prompt_tokens: int = 200
    hint_tokens: float = 300.0
    max_hint_tokens: int = 1024
    parse_failure: float = 0.05
    attempts: int = 3
    seed: int = 1

    def __post_init__(self) -> None:
        shares = ("correlation", "parse_failure")
        if not 0 < self.unresolved < 1 or not all(0 <= getattr(self, it) <= 1 for it in shares):
            raise ConfigError(
                f"unresolved={self.unresolved} must be inside (0, 1), correlation="
                f"{self.correlation} and parse_failure={self.parse_failure} in [0, 1]"
            )
        counts = ("group_size", "mean_tokens", "max_tokens", "hint_tokens", "max_hint_tokens")
        for name in (*counts, "attempts"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} must be at least 1")
        if self.sigma < 0 or self.prompt_tokens < 0:
            raise ConfigError(
                f"sigma={self.sigma} and prompt_tokens={self.prompt_tokens} must not be negative"
            )

    @cached_property
    def ease(self) -> float:
        """The logit of a mean problem, by bisection."""
        z_N = np.linspace(-4, 4, 801)
        weights_N = np.exp(-z_N * z_N / 2)
        low, high = -20.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            wrong_N = (1 - _sigmoid(middle - 3 * z_N)) ** self.group_size
            if float((wrong_N * weights_N).sum() / weights_N.sum()) > self.unresolved:
                low = middle
            else:
                high = middle
        return low

    def difficulty(self, number: int) -> float:
        """Return z of a problem."""
        return float(np.random.default_rng([self.seed, number]).standard_normal())

    def draw(self, difficulty: float, level: int, seed: int) -> tuple[list[int], list[bool]]:
        """Return the lengths of a group's G responses, and which are right."""
        rng = np.random.default_rng(seed)
        chance = _sigmoid(self.ease - 3 * difficulty + self.hint_gain * level)
        is_right_G = rng.random(self.group_size) < chance
        share, sigma = self.correlation, self.sigma
        noise_G = rng.standard_normal(self.group_size)
        logs_G = sigma * (math.sqrt(share) * difficulty + math.sqrt(1 - share) * noise_G)
        lengths_G = self.mean_tokens * np.exp(logs_G - sigma**2 / 2)
        return np.clip(lengths_G, 1, self.max_tokens).astype(int).tolist(), is_right_G.tolist()

    def draw_hint(self, seed: int) -> tuple[int, bool]:
        """Return the length of a hint writer's response, and whether it can be read."""
        rng = np.random.default_rng(seed)
        length = self.hint_tokens * math.exp(0.5 * rng.standard_normal() - 0.125)
        return min(int(length) + 1, self.max_hint_tokens), rng.random() >= self.parse_failure


def _sigmoid(logit: Any) -> Any:
    return 1 / (1 + np.exp(-logit))


class SimulatedEngine(Engine):
    """The engine of one problem, on a simulated fleet.

    The prompt of level l is the single token l, and the text of a hint its level. A hint's length
    counts in the prefill only.
    """

    def __init__(self, world: World, number: int, fleet: Fleet) -> None:
        self._world = world
        self._fleet = fleet
        self._difficulty = world.difficulty(number)
        self.group_size = world.group_size

    def render(self, messages: Sequence[Message], **_: Any) -> list[int]:
        """Return the hint level, the last word of a hinted conversation."""
        last = messages[-1]["content"].split()[-1]
        return [int(last) if last.isdecimal() else 0]

    async def sample_each(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        rows: range,
        sampling: RoleSampling | None = None,
    ) -> list[list[Response]]:
        """Return one group when the fleet has made it; ``token_ids_T`` is a range."""
        world, [[level]], [seed] = self._world, prompts, seeds
        lengths_G, is_right_G = world.draw(self._difficulty, level, seed)
        lengths = [lengths_G[row] for row in rows]
        prompt_tokens = world.prompt_tokens + (int(world.hint_tokens) if level else 0)
        await self._fleet.generate(lengths, prompt_tokens)
        group = [
            Response(
                cast(list[int], range(length)),  # its length is all that is asked for
                [],
                "right" if is_right_G[row] else "",
                length == world.max_tokens,
            )
            for row, length in zip(rows, lengths, strict=True)
        ]
        return [group]

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        """Return at once: verification hides behind generation (docs/lab/performance.md)."""
        return [_RIGHT if each.text.endswith("right") else _WRONG for each in responses_G]

    async def write(self, messages: list[Message], seed: int) -> WrittenText:
        """Return a hint writer's text, empty where it cannot be read."""
        length, is_readable = self._world.draw_hint(seed)
        await self._fleet.generate([length], self._world.prompt_tokens * 4)  # with the solution
        return WrittenText("readable" if is_readable else "", length)


class SimulatedSource:
    """Hints by the policy itself: attempts until one can be read; the hint of level l is "l".

    Args:
        attempts: At most so many; 0: the hints are in the data and cost nothing.
        num_levels: Levels that a set of hints has.
        repeats: Whether each attempt gives the same text again, as in the SAGE release.
    """

    def __init__(self, attempts: int, num_levels: int, *, repeats: bool = False) -> None:
        self._attempts = attempts
        self._repeats = repeats
        self._levels = HintLevels(tuple(str(level) for level in range(1, num_levels + 1)))

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the hints, or that none could be read."""
        if not self._attempts:
            return HintResult("ok", self._levels)
        tokens = 0
        for attempt in range(self._attempts):
            written = await generate([], 0 if self._repeats else attempt)
            tokens += written.tokens
            if written.text:
                return HintResult("ok", self._levels, attempt + 1, tokens)
        return HintResult("parse_failed", calls=self._attempts, tokens=tokens)

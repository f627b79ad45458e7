"""What a visit needs from the outside: the model, the tokenizer and the verifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from recipe.hint.hints.base import Reply
from recipe.hint.prompt import Message
from recipe.hint.schema import Opinion, Problem, Verdict


@dataclass(frozen=True, slots=True)
class Response:
    """One sampled answer; ``log_probs_T`` are the server's, for the sampled tokens."""

    token_ids_T: list[int]
    log_probs_T: list[float]
    text: str
    is_truncated: bool
    min_step: int = 0
    max_step: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """Answers to one prompt: the same ``prompt_ids_T`` for all of them.

    ``rewards_G`` are what they train with; empty: what the verdicts say.
    """

    prompt_ids_T: list[int]
    responses_G: list[Response]
    verdicts_G: list[Verdict]
    rewards_G: tuple[float, ...] = ()

    @property
    def scores_G(self) -> tuple[float, ...]:
        """What the answers train with."""
        return self.rewards_G or tuple(verdict.trained for verdict in self.verdicts_G)


class Engine(Protocol):
    """What a visit needs from the outside; ``group_size`` is G."""

    @property
    def group_size(self) -> int:
        """Answers of a whole group."""
        ...

    def render(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a conversation, ready for the answer."""
        ...

    def fits(self, prompt_ids: Sequence[int]) -> bool:
        """Whether a prompt is within the prompt length of the rollouts."""
        ...

    async def answer(
        self, prompt_ids: list[int], seed: int, rows: range | None = None
    ) -> list[Response]:
        """Sample a group, or only ``rows`` of it: row i is the same answer either way."""
        ...

    async def score(self, prompt_ids: list[int], token_ids: list[int]) -> list[float]:
        """Log-probabilities of an answer's tokens after a prompt, as far as both fit."""
        ...

    async def write(self, messages: list[Message], seed: int) -> Reply:
        """Sample one text with the hint writer's settings."""
        ...

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        """Grade one group."""
        ...

    async def second_opinions(
        self, problem: Problem, responses: list[Response], verdicts: list[Verdict]
    ) -> list[Opinion]:
        """Ask the second judge about verdicts; it changes none."""
        ...

"""Declare what the rollout loop needs from its engine; ``adapter.engine`` provides it."""

from __future__ import annotations

from collections.abc import Sequence

from recipe.hint.hints.base import WrittenText
from recipe.hint.prompt import Message
from recipe.hint.schema import Response
from recipe.hint.turns import Turn
from recipe.problems.schema import Problem
from recipe.verify.schema import Verdict


class Engine:
    """The model, the tokenizer and the verifier, as the rollout loop uses them.

    The defaults need no model: every prompt fits, nothing leaks.

    Attributes:
        group_size: Responses of a whole group, G.
    """

    group_size: int

    def render(self, messages: Sequence[Message], *, follows: Turn | None = None) -> Sequence[int]:
        """Return the tokens of a conversation, ready for the response.

        Args:
            messages: The conversation.
            follows: The turn that it continues; the tokens of its response stay as they are.
        """
        raise NotImplementedError(f"{type(self).__name__} renders nothing")

    def fits(self, prompt_ids: Sequence[int]) -> bool:
        """Return whether a prompt is within ``rollout.prompt_length``."""
        return True

    async def sample_each(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        rows: range,
        max_tokens: int = 0,
    ) -> list[list[Response]]:
        """Sample ``rows`` of each prompt's group: row i has the prompt's seed + i."""
        raise NotImplementedError(f"{type(self).__name__} samples nothing")

    def given_response(self, text: str) -> Response:
        """Return a given text as a response: its tokens and the end of its turn."""
        raise NotImplementedError(f"{type(self).__name__} takes no given text")

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        """Grade responses to one problem, in order."""
        raise NotImplementedError(f"{type(self).__name__} grades nothing")

    async def leaks(self, problem: Problem, responses: list[Response]) -> list[bool]:
        """Return whether each text gives the final answer away, in order."""
        return [False] * len(responses)

    async def write(self, messages: list[Message], seed: int) -> WrittenText:
        """Sample one text with the hint writer's settings."""
        raise NotImplementedError(f"{type(self).__name__} writes no hints")

"""The engine of a run: vLLM's servers, the chat template and the verifier."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from recipe.hint.adapter.chat_template import Renderer, text_after
from recipe.hint.adapter.group_client import GroupClient, PartialResponse, Sampling
from recipe.hint.engine import Engine
from recipe.hint.hints.base import WrittenText
from recipe.hint.hints.leak import find_leaks, graded_equal
from recipe.hint.prompt import Message
from recipe.hint.schema import Response
from recipe.hint.turns import RoleSampling, Turn
from recipe.problems.schema import Problem
from recipe.verify.answer import formats_asked_for
from recipe.verify.overlong import Overlong
from recipe.verify.schema import Item, Verdict


class Grader(Protocol):
    """Grades items; order is kept."""

    async def grade_many(
        self, items: Sequence[Item], ids: Sequence[str] | None = None
    ) -> list[Verdict]:
        """Return one verdict per item; ``ids`` of the prompts are for the log."""
        ...


class LoopPasses:
    """Lets one caller per pass of the event loop work, so that many at once do not block it."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def next(self) -> None:
        """Wait for a pass of the event loop that no other caller uses."""
        async with self._lock:
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Grading:
    """Who grades, and the penalty on over-long responses."""

    grader: Grader
    overlong: Overlong | None = None


class VllmEngine(Engine):
    """The engine of the rollout loop on vLLM."""

    def __init__(
        self,
        client: GroupClient,
        renderer: Renderer,
        *,
        grading: Grading,
        response_sampling: Sampling,
        hint_sampling: Sampling | None = None,
    ) -> None:
        self._client = client
        self.is_seeded = client.is_seeded
        self._tokenizer = renderer.tokenizer
        self._renderer = renderer
        self._prompt_length = renderer.prompt_length
        self.grader = grading.grader
        self._response_sampling = response_sampling
        self.group_size = response_sampling.n
        self._hint_sampling = hint_sampling
        self._overlong = grading.overlong
        self._passes = LoopPasses()

    def render(
        self,
        messages: Sequence[Message],
        *,
        follows: Turn | None = None,
        quotes: Turn | None = None,
    ) -> Sequence[int]:
        """Return the token ids of a conversation (:meth:`Renderer.render`)."""
        return self._renderer.render(messages, follows=follows, quotes=quotes)

    def fits(self, prompt_ids: Sequence[int]) -> bool:
        """Return whether a prompt is within ``rollout.prompt_length``."""
        return len(prompt_ids) <= self._prompt_length

    async def sample_each(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        rows: range,
        sampling: RoleSampling | None = None,
    ) -> list[list[Response]]:
        """Sample ``rows`` of each prompt's group, in one request to one server.

        Raises:
            StallError: If the server does not answer in time.
            ValueError: If a prompt is above ``rollout.prompt_length``.
        """
        longest = max(map(len, prompts))
        if longest > self._prompt_length:
            raise ValueError(
                f"the prompt has {longest} tokens, actor_rollout_ref.rollout.prompt_length "
                f"is {self._prompt_length}; raise it or filter the data"
            )
        usual = self._response_sampling
        overrides: dict[str, Any] = sampling.overrides(usual.max_tokens) if sampling else {}
        settings = replace(usual, **overrides, n=len(rows))
        first_seeds = [seed + rows.start for seed in seeds]
        await self._passes.next()
        groups = await self._client.sample_each(prompts, settings, first_seeds)
        await self._passes.next()
        texts = self._tokenizer.batch_decode(
            # As arrays: transformers looks at every number of a list.
            [np.asarray(each.token_ids_T) for group in groups for each in group],
            skip_special_tokens=True,
        )
        in_order = iter(texts)
        return [[_response(each, next(in_order)) for each in group] for group in groups]

    def given_response(self, text: str) -> Response:
        """Return a given text as a response, cut to the longest response allowed."""
        ids, longest = self._renderer.response(text), self._response_sampling.max_tokens
        return Response(ids[:longest], [], text, len(ids) > longest, is_given=True)

    def continuation(self, prompt_ids: Sequence[int], response: Response) -> str:
        """Return the response's text as it reads after the prompt's last token."""
        return text_after(self._tokenizer, prompt_ids[-1], response.token_ids_T)

    async def leaks(self, problem: Problem, responses: list[Response]) -> list[bool]:
        """Return whether each text gives the final answer away, by the rules of the hint guard."""
        equal = graded_equal(self.grader.grade_many)
        texts = [each.text for each in responses]
        return [bool(each) for each in await find_leaks(texts, problem, equal)]

    async def write(self, messages: list[Message], seed: int) -> WrittenText:
        """Sample one text with the hint writer's settings; empty when the request does not fit."""
        assert self._hint_sampling is not None, "a method without hints asked for one"
        prompt_ids = self.render(messages)
        if not self._client.has_room(prompt_ids):
            return WrittenText("", 0)
        [[written]] = await self._client.sample_each([prompt_ids], self._hint_sampling, [seed])
        text = self._tokenizer.decode(written.token_ids_T.tolist(), skip_special_tokens=True)
        return WrittenText(text, len(written.token_ids_T), written.finish == "length")

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        """Return one verdict per response, in order, its reward with the over-long penalty."""
        items = _items(problem, responses_G)
        verdicts_G = await self.grader.grade_many(items, [problem.id] * len(items))
        if self._overlong is None:
            return verdicts_G
        return [
            replace(
                verdict,
                reward=verdict.train_reward + self._overlong.penalty(len(response.token_ids_T)),
            )
            for verdict, response in zip(verdicts_G, responses_G, strict=True)
        ]


def _response(sampled: PartialResponse, text: str) -> Response:
    return Response(
        token_ids_T=sampled.token_ids_T,
        log_probs_T=sampled.log_probs_T,
        text=text,
        is_truncated=sampled.finish == "length",
        min_step=sampled.min_step,
        max_step=sampled.max_step,
    )


def _items(problem: Problem, responses: Sequence[Response]) -> list[Item]:
    asked = formats_asked_for(problem.messages)
    own = (problem.kind, problem.text, problem.row, asked)
    return [Item(each.text, problem.answer, each.is_truncated, *own) for each in responses]

"""The model, the tokenizer and the verifier behind the rollout loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

from recipe.hint.errors import ConfigError
from recipe.hint.hints.base import WrittenText
from recipe.hint.hints.leak import find_leaks, graded_equal
from recipe.hint.prompt import Message, fold_system
from recipe.hint.runtime.group_client import GroupClient, Sampled, Sampling
from recipe.hint.schema import Item, Opinion, Problem, Response, Verdict
from recipe.hint.turns import RoleSampling
from recipe.hint.verify.overlong import Overlong


class Grader(Protocol):
    """Grades items; order is kept."""

    async def grade_many(
        self, items: Sequence[Item], ids: Sequence[str] | None = None
    ) -> list[Verdict]:
        """Return one verdict per item; ``ids`` of the prompts are for the log."""
        ...


class Asks(Protocol):
    """The second judge."""

    async def ask(self, items: Sequence[Item], verdicts: Sequence[Verdict]) -> list[Opinion]:
        """Return one opinion per verdict; raise nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Renderer:
    """Messages to tokens and back; ``template`` is what verl's own agent loops use.

    ``folds_system``: the chat template refuses a system turn, so its text goes into the user's.
    """

    tokenizer: Any
    template: Any
    prompt_length: int
    folds_system: bool = False

    def render(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of a conversation."""
        turns = fold_system(messages) if self.folds_system else list(messages)
        return list(self.template.build_initial_tokens(turns))


@dataclass(frozen=True, slots=True)
class Grading:
    """Who grades: the verifier, a second judge that changes nothing, and the over-long penalty.

    The penalty is added to what a response trains with, and to nothing else.
    """

    grader: Grader
    second: Asks | None = None
    overlong: Overlong | None = None


class VllmEngine:
    """What a prompt rollout needs, on real parts.

    ``responses`` and ``hints`` are the settings of the two kinds of request.
    """

    def __init__(
        self,
        client: GroupClient,
        renderer: Renderer,
        *,
        grading: Grading,
        responses: Sampling,
        hints: Sampling | None = None,
    ) -> None:
        self._client = client
        self._tokenizer = renderer.tokenizer
        self._renderer = renderer
        self._prompt_length = renderer.prompt_length
        self.verifier = grading.grader
        self._responses = responses
        self._hints = hints
        self._second = grading.second
        self._overlong = grading.overlong

    def graded_by(self, verifier: Grader) -> VllmEngine:
        """Return the same engine with another verifier."""
        other = copy(self)
        other.verifier = verifier
        return other

    def render(self, messages: Sequence[Message]) -> list[int]:
        """Return the token ids of a conversation."""
        return self._renderer.render(messages)

    def fits(self, prompt_ids: Sequence[int]) -> bool:
        """Return whether a prompt is within ``rollout.prompt_length``."""
        return len(prompt_ids) <= self._prompt_length

    @property
    def group_size(self) -> int:
        """G."""
        return self._responses.n

    @property
    def is_seeded(self) -> bool:
        """Whether a seed decides what is sampled."""
        return self._client.is_seeded

    async def sample(
        self,
        prompt_ids: list[int],
        seed: int,
        rows: range | None = None,
        sampling: RoleSampling | None = None,
    ) -> list[Response]:
        """Sample one group, or ``rows`` of it: response i has the seed ``seed + i``."""
        rows = range(self.group_size) if rows is None else rows
        [group] = await self.sample_each([prompt_ids], [seed + rows.start], len(rows), sampling)
        return group

    async def sample_each(
        self,
        prompts: Sequence[list[int]],
        seeds: Sequence[int],
        count: int,
        sampling: RoleSampling | None = None,
    ) -> list[list[Response]]:
        """Sample ``count`` responses of each prompt, in one request to one server."""
        longest = max(map(len, prompts))
        if longest > self._prompt_length:
            raise ValueError(
                f"the prompt has {longest} tokens, actor_rollout_ref.rollout.prompt_length "
                f"is {self._prompt_length}; raise it or filter the data"
            )
        own = asdict(sampling) if sampling else {}
        how = replace(self._responses, **{k: v for k, v in own.items() if v is not None}, n=count)
        groups = await self._client.sample_each(prompts, how, seeds)
        return [self._read(group) for group in groups]

    def _read(self, group: Sequence[Sampled]) -> list[Response]:
        """Return a server's responses with their texts."""
        texts = self._tokenizer.batch_decode(
            [each.token_ids_T for each in group], skip_special_tokens=True
        )
        return [
            Response(
                token_ids_T=each.token_ids_T,
                log_probs_T=each.log_probs_T,
                text=text,
                is_truncated=each.finish == "length",
                min_step=each.min_step,
                max_step=each.max_step,
            )
            for each, text in zip(group, texts, strict=True)
        ]

    async def leaks(self, problem: Problem, responses: list[Response]) -> list[bool]:
        """Return whether each text gives the final answer away, by the rules of the hint guard."""
        equal = graded_equal(self.verifier.grade_many)
        found = [find_leaks(each.text, problem, equal) for each in responses]
        return [bool(each) for each in await asyncio.gather(*found)]

    async def score(self, prompt_ids: list[int], token_ids: list[int]) -> list[float]:
        """Return log-probabilities of a response's tokens after a prompt."""
        return await self._client.score(prompt_ids, token_ids)

    async def write(self, messages: list[Message], seed: int) -> WrittenText:
        """Sample one text with the hint writer's settings; empty when the request does not fit."""
        assert self._hints is not None, "a method without hints asked for one"
        prompt_ids = self.render(messages)
        if not self._client.has_room(prompt_ids):
            return WrittenText("", 0)
        [written] = await self._client.sample(prompt_ids, self._hints, seed)
        text = self._tokenizer.decode(written.token_ids_T, skip_special_tokens=True)
        return WrittenText(text, len(written.token_ids_T), written.finish == "length")

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        """Return one verdict per response, in order."""
        items = _items(problem, responses_G)
        verdicts_G = await self.verifier.grade_many(items, [problem.id] * len(items))
        if self._overlong is None:
            return verdicts_G
        return [
            replace(
                verdict,
                reward=verdict.trained + self._overlong.penalty(len(response.token_ids_T)),
            )
            for verdict, response in zip(verdicts_G, responses_G, strict=True)
        ]

    async def second_opinions(
        self, problem: Problem, responses: list[Response], verdicts: list[Verdict]
    ) -> list[Opinion]:
        """Return one opinion per verdict, in order; `not_asked` without a second judge."""
        if self._second is None:
            return ["not_asked"] * len(verdicts)
        return await self._second.ask(_items(problem, responses), verdicts)


def _items(problem: Problem, responses: Sequence[Response]) -> list[Item]:
    return [
        Item(
            *(each.text, problem.answer, each.is_truncated, problem.kind, problem.text),
            row=problem.row,
        )
        for each in responses
    ]


def token_ends(tokenizer: Any) -> Callable[[str], list[int]]:
    """Return a function that finds where each token of a text ends, in characters.

    Raises:
        ConfigError: If the tokenizer does not tell.
    """
    if not tokenizer.is_fast:
        raise ConfigError(
            "hint.prefix.unit=token needs a tokenizer that gives the places of its tokens (a fast "
            "one); choose char or sentence"
        )

    def ends(text: str) -> list[int]:
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return [end for _, end in encoded["offset_mapping"]]

    return ends

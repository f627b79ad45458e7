"""The model, the tokenizer and the verifier behind the rollout loop.

``GroupClient`` asks the rollout servers for whole groups: a weight update stops responses, and they
go on after it. ``VllmEngine`` makes the loop's engine of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol
from uuid import uuid4

from recipe.hint.errors import StallError
from recipe.hint.hints.base import WrittenText
from recipe.hint.hints.leak import find_leaks, graded_equal
from recipe.hint.prompt import Message, fold_system
from recipe.hint.schema import Item, Opinion, Problem, Response, Verdict, seed_at
from recipe.hint.turns import RoleSampling
from recipe.hint.verify.overlong import Overlong

# Between two requests of a response that a weight update has stopped.
_PAUSE_S = 0.2
_STOPPED = "abort"


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


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings of one kind of request; ``max_tokens`` bounds one response."""

    n: int
    max_tokens: int
    temperature: float
    top_p: float = 1.0
    top_k: int = -1

    def fields(self, seed: int | None) -> dict[str, Any]:
        """Return the fields of vLLM's SamplingParams; without a seed vLLM draws as it likes."""
        return {
            "n": self.n,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "seed": seed,
        }


@dataclass(slots=True)
class Sampled:
    """One response, as far as it is there.

    ``log_probs_T`` are those that each token was sampled with, under the weights of its time;
    ``min_step`` and ``max_step`` are the versions of the first and the last token's weights.
    """

    token_ids_T: list[int] = field(default_factory=list)
    log_probs_T: list[float] = field(default_factory=list)
    finish: str = _STOPPED
    min_step: int = -1
    max_step: int = -1

    def add(self, group: dict[str, Any], number: int) -> None:
        """Append response ``number`` of what a server answered."""
        token_ids_T = group["token_ids"][number]
        if token_ids_T or not self.token_ids_T:
            self.max_step = group["global_steps"]
        if not self.token_ids_T:
            self.min_step = self.max_step
        self.token_ids_T += token_ids_T
        self.log_probs_T += group["log_probs"][number]
        self.finish = group["finish"][number]


class GroupClient:
    """Sends whole groups to the rollout servers through verl's load balancer.

    Args:
        llm_client: verl's.
        max_model_len: Longest prompt and response together, in tokens.
        timeout_s: Longest time of one request in vLLM.
        is_seeded: Whether responses get seeds.
    """

    def __init__(
        self, llm_client: Any, *, max_model_len: int, timeout_s: float, is_seeded: bool = True
    ) -> None:
        self._client = llm_client
        self._max_model_len = max_model_len
        self._timeout_s = timeout_s
        self.is_seeded = is_seeded

    def has_room(self, prompt_ids: Sequence[int]) -> bool:
        """Return whether a response to this prompt could have one token."""
        return len(prompt_ids) < self._max_model_len

    async def sample(self, prompt_ids: list[int], sampling: Sampling, seed: int) -> list[Sampled]:
        """Sample one group; what a weight update stops goes on under the new weights.

        Raises:
            StallError: If no server answers within ``timeout_s``.
            ValueError: If the prompt leaves no room for a response.
        """
        room = self._max_model_len - len(prompt_ids)
        if not self.has_room(prompt_ids):
            raise ValueError(
                f"a prompt of {len(prompt_ids)} tokens leaves no room in "
                f"rollout.max_model_len={self._max_model_len}"
            )
        sampling = replace(sampling, max_tokens=min(sampling.max_tokens, room))
        responses = [Sampled() for _ in range(sampling.n)]
        while not any(each.token_ids_T for each in responses):
            group = await self._ask(prompt_ids, sampling.fields(self._seed(seed)))
            for number, response in enumerate(responses):
                response.add(group, number)
            if not any(each.finish == _STOPPED for each in responses):
                return responses
            await asyncio.sleep(_PAUSE_S)
        # Each with tokens of its own in its prompt now, so each alone.
        one = replace(sampling, n=1)
        tasks = [
            asyncio.ensure_future(self._go_on(prompt_ids, response, one, seed + number))
            for number, response in enumerate(responses)
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return responses

    async def _go_on(
        self, prompt_ids: list[int], response: Sampled, sampling: Sampling, seed: int
    ) -> None:
        while response.finish == _STOPPED:
            count = len(response.token_ids_T)
            if count == sampling.max_tokens:
                response.finish = "length"
                return
            rest = replace(sampling, max_tokens=sampling.max_tokens - count)
            # Not the same seed again: it would draw the noise of the first tokens a second time.
            fields = rest.fields(self._seed(seed_at(seed, "after", count)))
            response.add(await self._ask(prompt_ids + response.token_ids_T, fields), 0)
            if response.finish == _STOPPED:
                await asyncio.sleep(_PAUSE_S)

    def _seed(self, seed: int) -> int | None:
        return seed if self.is_seeded else None

    async def score(self, prompt_ids: list[int], token_ids: list[int]) -> list[float]:
        """Return log-probabilities of ``token_ids`` after a prompt, as far as the context goes.

        The policy's own, without temperature or top-p.

        Raises:
            StallError: If no server answers within ``timeout_s``.
        """
        # One more token is sampled: vLLM has no request without.
        token_ids = token_ids[: max(self._max_model_len - 1 - len(prompt_ids), 0)]
        if not token_ids:
            return []
        fields = {"n": 1, "max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0}
        while True:
            group = await self._ask(prompt_ids + token_ids, fields)
            if group["finish"] != [_STOPPED]:
                return group["prompt_log_probs"][-len(token_ids) :]
            await asyncio.sleep(_PAUSE_S)

    async def _ask(self, prompt_ids: list[int], fields: dict[str, Any]) -> dict[str, Any]:
        """Send one request to the server that the balancer chooses."""
        request_id = uuid4().hex
        server_id, server = await self._client._acquire_server(request_id)
        try:
            return await server.generate_group.remote(
                prompt_ids, fields, request_id, self._timeout_s
            )
        except TimeoutError:
            raise StallError(
                f"vLLM did not finish a group of {fields['n']} responses within "
                f"hint.watchdog.rollout_s={self._timeout_s:g} s"
            ) from None
        finally:
            self._client._release_server(server_id, request_id=request_id)


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
        if not self.fits(prompt_ids):
            raise ValueError(
                f"the prompt has {len(prompt_ids)} tokens, actor_rollout_ref.rollout.prompt_length "
                f"is {self._prompt_length}; raise it or filter the data"
            )
        own = asdict(sampling) if sampling else {}
        how = replace(self._responses, **{k: v for k, v in own.items() if v is not None})
        if rows is not None:
            how, seed = replace(how, n=len(rows)), seed + rows.start
        group = await self._client.sample(prompt_ids, how, seed)
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

"""The engine of a run: vLLM's servers, the chat template and the verifier.

Groups of responses are requested from the servers, and continued after a weight update.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import numpy as np
from omegaconf import DictConfig

from recipe.hint.adapter.chat_template import Renderer, refuses_system
from recipe.hint.adapter.rewards import build_grader, overlong_of
from recipe.hint.engine import Engine
from recipe.hint.hints.base import WrittenText
from recipe.hint.hints.leak import find_leaks, graded_equal
from recipe.hint.prompt import Message
from recipe.hint.schema import Response, seed_at
from recipe.hint.settings import HintSettings
from recipe.problems.schema import Problem
from recipe.run.config import world_size
from recipe.run.environment import log_to_stderr
from recipe.run.errors import StallError
from recipe.run.together import gather_or_cancel
from recipe.run.typed import fields_of
from recipe.verify.answer import formats_asked_for
from recipe.verify.schema import Item, Verdict

STOPPED = "abort"  # finish reason of a response that a weight update has stopped
_PAUSE_S = 0.2  # before it is requested again


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling settings of one kind of request; ``max_tokens`` bounds one response."""

    n: int
    max_tokens: int
    temperature: float
    top_p: float = 1.0
    top_k: int = -1


@dataclass(slots=True)
class PartialResponse:
    """One response, as far as it has been sampled.

    ``log_probs_T`` are those that each token was sampled with, under the weights at that time;
    ``min_step`` and ``max_step`` are the versions of the first and the last token's weights. Tokens
    are in arrays: the garbage collector walks every number of every list, for half a second where
    2,048 prompts are under way.
    """

    token_ids_T: array[int] = field(default_factory=lambda: array("q"))
    log_probs_T: array[float] = field(default_factory=lambda: array("d"))
    finish: str = STOPPED
    min_step: int = -1
    max_step: int = -1

    def add(self, group: dict[str, Any], number: int) -> None:
        """Append response ``number`` of what a server answered."""
        token_ids_T = group["token_ids"][number]
        if token_ids_T or not self.token_ids_T:
            self.max_step = group["global_steps"]
        if not self.token_ids_T:
            self.min_step = self.max_step
        self.token_ids_T.extend(token_ids_T)
        self.log_probs_T.extend(group["log_probs"][number])
        self.finish = group["finish"][number]


class GroupClient:
    """Sends whole groups to the rollout servers; continues responses that a weight update stops.

    ``llm_client`` is verl's, which balances the load; prompt and response have ``max_model_len``
    tokens at most, a request in vLLM ``timeout_s``. Without seeds vLLM draws its own.
    """

    def __init__(
        self, llm_client: Any, *, max_model_len: int, timeout_s: float, is_seeded: bool = True
    ) -> None:
        self._client, self._timeout_s, self.is_seeded = llm_client, timeout_s, is_seeded
        self._max_model_len = max_model_len

    def room(self, prompt_ids: Sequence[int]) -> int:
        """Return how many tokens a response to this prompt can have."""
        return self._max_model_len - len(prompt_ids)

    async def sample_each(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> list[list[PartialResponse]]:
        """Sample a group for each prompt, in one call to one server.

        What a weight update stops is continued under the new weights. A prompt must leave room for
        a response.

        Raises:
            StallError: If no server answers within ``timeout_s``.
        """
        limited = [
            replace(sampling, max_tokens=min(sampling.max_tokens, self.room(ids)))
            for ids in prompts
        ]
        answers = await self._ask(list(zip(prompts, limited, seeds, strict=True)))
        groups = [[PartialResponse() for _ in range(sampling.n)] for _ in prompts]
        for group, answer in zip(groups, answers, strict=True):
            for number, response in enumerate(group):
                response.add(answer, number)
        # A stopped response continues after its own tokens, so each is a request of its own.
        await gather_or_cancel(
            self._continue(ids, response, replace(settings, n=1), seed + number)
            for ids, group, settings, seed in zip(prompts, groups, limited, seeds, strict=True)
            for number, response in enumerate(group)
            if response.finish == STOPPED
        )
        return groups

    async def _continue(
        self, prompt_ids: Sequence[int], response: PartialResponse, sampling: Sampling, seed: int
    ) -> None:
        while response.finish == STOPPED:
            count = len(response.token_ids_T)
            if count == sampling.max_tokens:
                response.finish = "length"
                return
            await asyncio.sleep(_PAUSE_S)
            rest = replace(sampling, max_tokens=sampling.max_tokens - count)
            # Not the same seed again: it would repeat the random draws of the first tokens.
            own_seed = seed_at(seed, "after", count) if count else seed
            asked = [*prompt_ids, *response.token_ids_T], rest, own_seed
            response.add((await self._ask([asked]))[0], 0)

    async def _ask(
        self, asked: Sequence[tuple[Sequence[int], Sampling, int]]
    ) -> list[dict[str, Any]]:
        """Send prompts with settings and seed to the server that the balancer chooses."""
        request_id = uuid4().hex
        # A router of the user's own may look at the prompt.
        first_ids = list(asked[0][0])
        server_id, server = await self._client._acquire_server(request_id, prompt_ids=first_ids)
        requests = []
        for number, (ids, sampling, seed) in enumerate(asked):
            fields = fields_of(sampling) | {"seed": seed if self.is_seeded else None}
            requests.append((list(ids), fields, f"{request_id}-{number}"))
        try:
            return await server.generate_groups.remote(requests, self._timeout_s)
        except TimeoutError:
            raise StallError(
                f"vLLM server {server_id} did not finish a group of "
                f"{sum(each.n for _, each, _ in asked)} responses within "
                f"hint.watchdog.rollout_s={self._timeout_s:g} s"
            ) from None
        finally:
            self._client._release_server(server_id, request_id=request_id)


class VllmEngine(Engine):
    """The engine of the rollout loop on vLLM; ``grader`` has ``grade_many`` of the pool."""

    def __init__(
        self,
        client: GroupClient,
        renderer: Renderer,
        grader: Any,
        *,
        response_sampling: Sampling,
        hint_sampling: Sampling | None = None,
        overlong: Callable[[int], float] | None = None,
    ) -> None:
        self._client, self._renderer, self.grader = client, renderer, grader
        self._response_sampling, self._hint_sampling = response_sampling, hint_sampling
        self._overlong = overlong
        self.is_seeded, self.group_size = client.is_seeded, response_sampling.n
        self._tokenizer, self.render = renderer.tokenizer, renderer.render

    def fits(self, prompt_ids: Sequence[int]) -> bool:
        return len(prompt_ids) <= self._renderer.prompt_length

    async def sample_each(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        rows: range,
        max_tokens: int = 0,
    ) -> list[list[Response]]:
        # In one request to one server.
        usual = self._response_sampling
        longest = min(max_tokens or usual.max_tokens, usual.max_tokens)
        sampling = replace(usual, max_tokens=longest, n=len(rows))
        groups = await self._client.sample_each(
            prompts, sampling, [seed + rows.start for seed in seeds]
        )
        # As arrays: transformers looks at every number of a list.
        ids = [np.asarray(each.token_ids_T) for group in groups for each in group]
        texts = iter(self._tokenizer.batch_decode(ids, skip_special_tokens=True))

        def whole(each: PartialResponse) -> Response:
            tokens = each.token_ids_T, each.log_probs_T
            is_cut = each.finish == "length"
            return Response(*tokens, next(texts), is_cut, each.min_step, each.max_step)

        return [[whole(each) for each in group] for group in groups]

    def given_response(self, text: str) -> Response:
        ids, longest = self._renderer.response(text), self._response_sampling.max_tokens
        return Response(ids[:longest], [], text, len(ids) > longest, is_given=True)

    async def leaks(self, problem: Problem, responses: list[Response]) -> list[bool]:
        equal = graded_equal(self.grader.grade_many)
        texts = [each.text for each in responses]
        return await find_leaks(texts, problem, equal)

    async def write(self, messages: list[Message], seed: int) -> WrittenText:
        assert self._hint_sampling is not None, "a method without hints asked for one"
        prompt_ids = self.render(messages)
        if self._client.room(prompt_ids) < 1:
            return WrittenText("", 0)
        [[written]] = await self._client.sample_each([prompt_ids], self._hint_sampling, [seed])
        text = self._tokenizer.decode(written.token_ids_T.tolist(), skip_special_tokens=True)
        return WrittenText(text, len(written.token_ids_T), written.finish == "length")

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        asked = formats_asked_for(problem.messages)
        own = (problem.kind, problem.text, problem.row, asked)
        items = [Item(each.text, problem.answer, each.is_truncated, *own) for each in responses_G]
        verdicts_G = await self.grader.grade_many(items, [problem.id] * len(items))
        if self._overlong is None:
            return verdicts_G
        penalties_G = [self._overlong(len(each.token_ids_T)) for each in responses_G]
        return [
            replace(verdict, reward=verdict.train_reward + penalty)
            for verdict, penalty in zip(verdicts_G, penalties_G, strict=True)
        ]


class EngineBuilder:
    """What the engines of one worker share: the client, the tokenizer and the verifier, ``grader``.

    ``worker`` is verl's AgentLoopWorker, or one derived from it.
    """

    def __init__(self, worker: Any, settings: HintSettings) -> None:
        # Here: verl's imports take seconds, and an evaluation's command reads this file too.
        from verl.workers.rollout.utils import get_max_position_embeddings

        log_to_stderr()
        self._rollout = rollout = worker.config.actor_rollout_ref.rollout
        self._client = GroupClient(
            worker.llm_client,
            max_model_len=rollout.max_model_len
            or get_max_position_embeddings(worker.model_config.hf_config),
            timeout_s=settings.watchdog.rollout_s,
            is_seeded=settings.seeded_sampling,
        )
        options = dict(worker.config.data.get("apply_chat_template_kwargs", {}))
        folds_system = refuses_system(worker.tokenizer, options)
        self._renderer = Renderer(worker.tokenizer, rollout.prompt_length, folds_system, options)
        self.grader = build_grader(settings.verify, worker.config)
        self._overlong = overlong_of(worker.config)

    def build(self, how: DictConfig, settings: HintSettings | None = None) -> VllmEngine:
        """Return an engine with the sampling settings of ``rollout`` or its ``val_kwargs``.

        ``settings`` are those of the hint writer; without them the engine writes no hints.
        """
        length = self._rollout.response_length
        return VllmEngine(
            self._client,
            self._renderer,
            self.grader,
            response_sampling=Sampling(how.n, length, how.temperature, how.top_p, how.top_k),
            hint_sampling=settings
            and Sampling(1, settings.max_tokens, settings.temperature, settings.top_p),
            overlong=self._overlong,
        )


def problems_in_flight(config: DictConfig) -> int:
    """Return how many problems of an evaluation have twice the responses that vLLM takes at once.

    The second half waits in vLLM's own queue, so that no slot stays empty.
    ``max_num_seqs`` holds for each engine, of which a replica has ``data_parallel_size``.
    """
    rollout = config.actor_rollout_ref.rollout
    of_engine = rollout.tensor_model_parallel_size * rollout.pipeline_model_parallel_size
    at_once = rollout.max_num_seqs * (world_size(config) // of_engine)
    return max(1, 2 * at_once // rollout.val_kwargs.n)

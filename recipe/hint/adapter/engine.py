"""The engine of a run: vLLM's servers, the chat template and the verifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from omegaconf import DictConfig

from recipe.hint.adapter.chat_template import Renderer, refuses_system
from recipe.hint.adapter.group_client import GroupClient, PartialResponse, Sampling
from recipe.hint.adapter.rewards import build_grader, overlong_of
from recipe.hint.engine import Engine
from recipe.hint.hints.base import WrittenText
from recipe.hint.hints.leak import find_leaks, graded_equal
from recipe.hint.prompt import Message
from recipe.hint.schema import Response
from recipe.hint.settings import HintSettings
from recipe.problems.schema import Problem
from recipe.run.config import world_size
from recipe.run.environment import log_to_stderr
from recipe.verify.schema import Item, Verdict, formats_asked_for


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

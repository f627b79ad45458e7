"""The engine of a run: vLLM's servers, the chat template and the verifier."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from omegaconf import DictConfig

from recipe.hint.adapter.chat_template import Renderer, refuses_system, text_after
from recipe.hint.adapter.group_client import GroupClient, PartialResponse, Sampling
from recipe.hint.adapter.rewards import build_grader, overlong_of
from recipe.hint.engine import Engine
from recipe.hint.hints.base import WrittenText
from recipe.hint.hints.leak import find_leaks, graded_equal
from recipe.hint.prompt import Message
from recipe.hint.schema import Response
from recipe.hint.settings import HintSettings
from recipe.hint.turns import RoleSampling
from recipe.problems.schema import Problem
from recipe.run.config import rollout_devices, world_size
from recipe.run.environment import log_to_stderr
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


class VllmEngine(Engine):
    """The engine of the rollout loop on vLLM; ``overlong`` is the penalty on long responses."""

    def __init__(
        self,
        client: GroupClient,
        renderer: Renderer,
        grader: Grader,
        *,
        response_sampling: Sampling,
        hint_sampling: Sampling | None = None,
        overlong: Overlong | None = None,
    ) -> None:
        self._client, self._renderer, self.grader = client, renderer, grader
        self._response_sampling, self._hint_sampling = response_sampling, hint_sampling
        self._overlong = overlong
        self.is_seeded, self.group_size = client.is_seeded, response_sampling.n
        self._tokenizer = renderer.tokenizer
        self._passes = LoopPasses()
        self.render = renderer.render

    def fits(self, prompt_ids: Sequence[int]) -> bool:
        return len(prompt_ids) <= self._renderer.prompt_length

    async def sample_each(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        rows: range,
        sampling: RoleSampling | None = None,
    ) -> list[list[Response]]:
        # In one request to one server.
        longest, limit = max(map(len, prompts)), self._renderer.prompt_length
        if longest > limit:
            raise ValueError(
                f"the prompt has {longest} tokens, actor_rollout_ref.rollout.prompt_length "
                f"is {limit}; raise it or filter the data"
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
        ids, longest = self._renderer.response(text), self._response_sampling.max_tokens
        return Response(ids[:longest], [], text, len(ids) > longest, is_given=True)

    def continuation(self, prompt_ids: Sequence[int], response: Response) -> str:
        return text_after(self._tokenizer, prompt_ids[-1], response.token_ids_T)

    async def leaks(self, problem: Problem, responses: list[Response]) -> list[bool]:
        equal = graded_equal(self.grader.grade_many)
        texts = [each.text for each in responses]
        return [bool(each) for each in await find_leaks(texts, problem, equal)]

    async def write(self, messages: list[Message], seed: int) -> WrittenText:
        assert self._hint_sampling is not None, "a method without hints asked for one"
        prompt_ids = self.render(messages)
        if not self._client.has_room(prompt_ids):
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
        penalties_G = [self._overlong.penalty(len(each.token_ids_T)) for each in responses_G]
        return [
            replace(verdict, reward=verdict.train_reward + penalty)
            for verdict, penalty in zip(verdicts_G, penalties_G, strict=True)
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


class EngineBuilder:
    """What the engines of one worker share: the client, the tokenizer and the verifier.

    Args:
        worker: verl's AgentLoopWorker, or one derived from it.
        settings: The ``hint:`` node.

    Attributes:
        grader: The verifier behind all engines.
    """

    def __init__(self, worker: Any, settings: HintSettings) -> None:
        # Here: verl's imports take seconds, and an evaluation's command reads this file too.
        from verl.utils.tokenizer.continuous_token_wiring import create_continuous_token_builder
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
        template = create_continuous_token_builder(
            worker.tokenizer, hf_model_type=worker.hf_model_type, chat_template_kwargs=options
        )
        folds_system = refuses_system(worker.tokenizer, options)
        self._renderer = Renderer(
            worker.tokenizer, template, rollout.prompt_length, folds_system, options
        )
        self.grader = build_grader(settings.verify, worker.config)
        self._overlong = overlong_of(worker.config)

    def build(self, sampling: DictConfig, settings: HintSettings | None = None) -> VllmEngine:
        """Return an engine with the sampling settings of ``rollout`` or its ``val_kwargs``.

        Args:
            sampling: The node with ``n``, ``temperature``, ``top_p`` and ``top_k``.
            settings: Of the hint writer; without them the engine writes no hints.
        """
        return VllmEngine(
            self._client,
            self._renderer,
            self.grader,
            response_sampling=Sampling(
                sampling.n,
                self._rollout.response_length,
                sampling.temperature,
                sampling.top_p,
                sampling.top_k,
            ),
            hint_sampling=settings
            and Sampling(1, settings.max_tokens, settings.temperature, settings.top_p),
            overlong=self._overlong,
        )


def problems_in_flight(config: DictConfig) -> int:
    """Return how many problems have twice the responses that vLLM takes at once.

    The second half waits in vLLM's own queue, so that no slot stays empty.
    ``max_num_seqs`` holds for each engine, of which a replica has ``data_parallel_size``. A
    validation has the trainer's own replicas beside those of ``separate_async``.
    """
    rollout = config.actor_rollout_ref.rollout
    devices = world_size(config) + rollout_devices(config)
    of_engine = rollout.tensor_model_parallel_size * rollout.pipeline_model_parallel_size
    at_once = rollout.max_num_seqs * (devices // of_engine)
    return max(1, 2 * at_once // rollout.val_kwargs.n)

"""Rollouts in verl's tracing backend (``actor_rollout_ref.rollout.trace``): weave, mlflow, trackio.

verl 0.9.1 traces nothing in its V1 trainers; its settings and its functions are used here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from verl.utils.rollout_trace import RolloutTraceConfig, rollout_trace_attr, rollout_trace_op

from recipe.hint.hints.base import WrittenText
from recipe.hint.prompt import Message
from recipe.hint.schema import Response
from recipe.problems.schema import Problem
from recipe.verify.schema import Verdict


class TracedEngine:
    """An engine whose requests, with their responses and verdicts, the backend sees."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def render(self, messages: Sequence[Message], **turns: Any) -> list[int]:
        """Return a list: backends show an array as text."""
        return list(self._engine.render(messages, **turns))

    @rollout_trace_op
    async def sample_each(
        self, prompts: Sequence[Sequence[int]], seeds: list[int], *more: Any, **named: Any
    ) -> list[list[Response]]:
        """Sample as the engine does."""
        return await self._engine.sample_each(prompts, seeds, *more, **named)

    @rollout_trace_op
    async def write(self, messages: list[Message], seed: int) -> WrittenText:
        """Write as the engine does."""
        return await self._engine.write(messages, seed)

    @rollout_trace_op
    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        """Grade as the engine does."""
        return await self._engine.grade(problem, responses_G)


def is_tracing() -> bool:
    """Return whether a backend is set."""
    return RolloutTraceConfig.get_backend() is not None


def traced(engine: Any) -> Any:
    """Return the engine, traced where a backend is set."""
    return TracedEngine(engine) if is_tracing() else engine


class Traces:
    """Chooses what to trace: the first ``max_samples_per_step_per_worker`` prompts of a step."""

    def __init__(self) -> None:
        self._step = -1
        self._count = 0

    @contextmanager
    def prompt(self, problem_id: Any, step: int, *, is_validation: bool) -> Iterator[None]:
        """Trace what is sampled in this block under its problem and step, if it is chosen."""
        if step != self._step:
            self._step, self._count = step, 0
        self._count += 1
        limit = RolloutTraceConfig.get_instance().max_samples_per_step_per_worker
        with rollout_trace_attr(
            sample_index=problem_id,
            step=step,
            name="prompt_rollout",
            validate=is_validation,
            trace=limit is None or self._count <= limit,
        ):
            yield

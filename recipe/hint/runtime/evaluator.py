"""K answers to every problem of a benchmark, without hints, each written down as it is judged.

No method, no source of hints and no history is within reach here: a problem's own conversation
is the only thing that can be rendered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from recipe.hint.runtime.sample_files import Done, append_samples
from recipe.hint.schema import Problem, Response, Verdict
from recipe.hint.seeds import seed_at


class AnswerEngine(Protocol):
    """The part of :class:`recipe.hint.rollout.Engine` that an evaluation needs."""

    def render(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """Token ids of a conversation."""
        ...

    async def sample(self, prompt_ids: list[int], seed: int) -> list[Response]:
        """The engine's number of answers; answer k is sampled with ``seed + k``."""
        ...

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        """One verdict per answer."""
        ...


@dataclass(frozen=True, slots=True)
class Engines:
    """One that gives ``num_samples`` answers at once, and one that gives a single answer."""

    group: AnswerEngine
    single: AnswerEngine
    num_samples: int


@dataclass(frozen=True, slots=True)
class Job:
    """The answers that one problem still lacks."""

    benchmark: str
    problem: Problem
    samples: tuple[int, ...]


def missing_jobs(problems: Sequence[Problem], num_samples: int, done: Done) -> list[Job]:
    """What is left to do, in the order of the files; the benchmark is the data source."""
    jobs = []
    for problem in problems:
        have = done.get((problem.data_source, problem.id), frozenset())
        samples = tuple(k for k in range(num_samples) if k not in have)
        if samples:
            jobs.append(Job(problem.data_source, problem, samples))
    return jobs


class Evaluator:
    """Works through the jobs with a bounded number of problems in flight.

    Args:
        engines: Where answers and verdicts come from.
        folder: ``evaluation`` in the run's folder.
        seed: Root of all seeds (with benchmark, problem and sample).
        in_flight: Problems at work at the same time.
        progress: Called with the benchmark and the number of samples written: 0 when a problem
            begins, all of its missing ones when they are on disk.
    """

    def __init__(
        self,
        engines: Engines,
        folder: Path,
        *,
        seed: int,
        in_flight: int,
        progress: Callable[[str, int], None],
    ) -> None:
        self._engines = engines
        self._folder = folder
        self._seed = seed
        self._in_flight = in_flight
        self._progress = progress

    async def run(self, jobs: Sequence[Job]) -> None:
        """All jobs; the first failure stops the others, and what was written stays."""
        waiting = iter(jobs)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._in_flight, len(jobs))):
                group.create_task(self._work(waiting))

    async def _work(self, waiting: Iterator[Job]) -> None:
        for job in waiting:
            self._progress(job.benchmark, 0)
            rows = await self._rows(job)
            append_samples(self._folder, job.benchmark, rows)
            self._progress(job.benchmark, len(rows))

    async def _rows(self, job: Job) -> list[dict[str, Any]]:
        prompt_ids = self._engines.group.render(job.problem.messages)
        base = seed_at(self._seed, "evaluation", job.benchmark, job.problem.id)
        if len(job.samples) == self._engines.num_samples:
            return await self._sample(job, self._engines.group, prompt_ids, base)
        # A killed run left some of them: the others one by one, each with the seed it would have
        # had in the group.
        rows = []
        for sample in job.samples:
            alone = Job(job.benchmark, job.problem, (sample,))
            rows += await self._sample(alone, self._engines.single, prompt_ids, base + sample)
        return rows

    async def _sample(
        self, job: Job, engine: AnswerEngine, prompt_ids: list[int], seed: int
    ) -> list[dict[str, Any]]:
        start = time.perf_counter()
        responses_G = await engine.sample(prompt_ids, seed)
        seconds = round(time.perf_counter() - start, 3)
        verdicts_G = await engine.grade(job.problem, responses_G)
        return [
            {
                "benchmark": job.benchmark,
                "id": job.problem.id,
                "sample": sample,
                "seed": seed + place,
                "score": float(verdict.reason == "correct"),
                "reason": verdict.reason,
                "extracted": verdict.extracted,
                "basis": verdict.basis,
                "ignored": verdict.ignored,
                "response": response.text,
                "prompt_tokens": len(prompt_ids),
                "response_tokens": len(response.token_ids_T),
                "is_truncated": response.is_truncated,
                "seconds": seconds,
            }
            for place, (sample, response, verdict) in enumerate(
                zip(job.samples, responses_G, verdicts_G, strict=True)
            )
        ]

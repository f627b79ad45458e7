"""Draw K responses to every problem of a benchmark, without hints, each on disk once it is graded.

Of a method with several turns K conversations are played, and scored by their last turns.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState
from recipe.problems.schema import Problem
from recipe.run.reporter import duration
from recipe.run.whole_file import append_lines
from recipe.study.responses import read_responses, response_path

_SAY_EVERY_S = 10.0


class Job(NamedTuple):
    """A problem and the numbers of the responses that it still lacks, in 0..K-1."""

    problem: Problem
    missing: list[int]


def missing_jobs(problems: Sequence[Problem], num_responses: int, folder: Path) -> list[Job]:
    """Return what is not on disk, in the order of the files; the benchmark is the data source."""
    done = {
        (benchmark, each.id, each.sample)
        for benchmark, responses in read_responses(folder).items()
        for each in responses
    }
    jobs = []
    for problem in problems:
        own, numbers = (problem.data_source, problem.id), range(num_responses)
        if missing := [k for k in numbers if (*own, k) not in done]:
            jobs.append(Job(problem, missing))
    return jobs


async def draw_responses(
    jobs: Sequence[Job],
    parts: RolloutParts,
    *,
    folder: Path,
    concurrency: int,
    say: Callable[[str], None],
) -> None:
    """Do all jobs, some at a time; the first failure stops the others, and what was written stays.

    ``say`` gets a line of progress now and then.
    """
    waiting = iter(jobs)
    total, drawn, said = sum(len(job.missing) for job in jobs), 0, 0.0
    start = time.monotonic()

    async def work() -> None:
        nonlocal drawn, said
        for job in waiting:
            rows = await graded_rows(job, parts)
            # Half of a surrogate pair becomes `?`: it is no JSON for other readers than Python's.
            lines = (json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") for row in rows)
            append_lines(response_path(folder, job.problem.data_source), lines)
            drawn, now = drawn + len(rows), time.monotonic()
            if now - said > _SAY_EVERY_S or drawn == total:
                said = now
                left_s = (total - drawn) * (now - start) / drawn
                say(f"samples {drawn}/{total}" + (f"  {duration(left_s)} left" if left_s else ""))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(jobs))):
            group.create_task(work())


async def graded_rows(job: Job, parts: RolloutParts) -> list[dict[str, Any]]:
    """Play as in validation; return a response file's row of each response that is missing."""
    problem, start = job.problem, time.perf_counter()
    # Seeds come from the name: two benchmarks may have the same ids.
    named = replace(problem, id=f"{problem.data_source}/{problem.id}")
    rollout = PromptRollout(named, ProblemState(), parts)
    outcome = await rollout.run("evaluation", 0)
    seconds = round(time.perf_counter() - start, 3)
    rows = []
    for turn, credit in ((played.turn, played.credit) for played in outcome.rows):
        if (number := credit.session) not in job.missing:
            continue
        verdict, response = turn.verdict, turn.response
        assert verdict, "the last turn has a verdict"
        row = {
            "benchmark": problem.data_source,
            "id": problem.id,
            "sample": number,
            "seed": rollout.first_seed + number if parts.settings.seeded_sampling else None,
            "score": float(verdict.reason == "correct"),
            **{key: getattr(verdict, key) for key in ("reason", "extracted", "basis", "ignored")},
            "response": response.text,
            "response_tokens": len(response.token_ids_T),
            "is_truncated": response.is_truncated,
            "prompt_tokens": len(turn.prompt_ids_T),
            "seconds": seconds,
        }
        if facts := dict(credit.facts):  # of several turns
            row["facts"] = None if any(map(isnan, facts.values())) else facts
            row["conversation"] = list(turn.messages)
        rows.append(row)
    return rows

"""Draw K responses to every problem of a benchmark, without hints, each on disk once it is graded.

Of a method with several turns K conversations are played, and scored by their last turns.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf

from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState, Response, seed_at
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError, HintError, TeacherSilentError
from recipe.run.reporter import duration
from recipe.run.whole_file import file_sha256, write_whole
from recipe.study.responses import Done, append_responses, drawn_with
from recipe.verify.schema import Verdict

_SAY_EVERY_S = 0.5
_FEWEST = 16  # problems left open, and none answered: then the endpoint is at fault
_SHOWN = 3  # problems that a message lists
_WINDOWS, _WINDOW_BYTES = 64, 4096  # of a file of weights, to tell it from another


def evaluation_settings(
    config: DictConfig, files: Sequence[str], turns: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return all that the responses depend on, besides the hardware; ``turns``: those played."""
    sampling = config.actor_rollout_ref.rollout.val_kwargs
    names = Counter(Path(path).name for path in files)

    def key(path: str) -> str:
        name = Path(path).name
        return name if names[name] == 1 else str(Path(path).absolute())

    def plain(name: str) -> Any:
        value = OmegaConf.select(config, name)
        return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value

    function = plain("reward.custom_reward_function.path") or ""
    return {
        "model": str(config.actor_rollout_ref.model.path),
        "weights": weights_digest(Path(config.actor_rollout_ref.model.path)),
        "num_samples": sampling.n,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "max_tokens": config.actor_rollout_ref.rollout.response_length,
        "seed": config.hint.seed if config.hint.seeded_sampling else None,
        "files": {key(path): file_sha256(path) for path in files},
        "template": {
            "options": plain("data.apply_chat_template_kwargs"),
            "text": plain("actor_rollout_ref.model.custom_chat_template"),
        },
        "dtype": plain("actor_rollout_ref.rollout.dtype"),
        "grading": {
            "answer_format": plain("hint.verify.answer_format"),
            "function": file_sha256(function) if Path(function).is_file() else function,
            "arguments": plain("reward.custom_reward_function.reward_kwargs"),
        },
        **({"turns": turns} if turns else {}),
    }


def weights_digest(folder: Path) -> str | None:
    """Return a digest of pieces from all over a model's weights; ``None`` without any."""
    paths = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            digest.update(f"{path.name} {size}\n".encode())
            for number in range(_WINDOWS):
                file.seek(size * number // _WINDOWS)
                digest.update(file.read(_WINDOW_BYTES))
    return digest.hexdigest() if paths else None


def check_settings_unchanged(folder: Path, settings: dict[str, Any]) -> None:
    """Check that the responses on disk come from the same model, sampling and files.

    Raises:
        ConfigError: Naming the setting that differs from those of the responses on disk.
    """
    before = drawn_with(folder)
    for name in {**before, **settings} if before else ():
        old, new = before.get(name), settings.get(name)
        # Weights are not known before a checkpoint is merged, nor of a model on the hub.
        if old != new and not (name == "weights" and None in (old, new)):
            raise ConfigError(
                f"{folder} holds responses drawn with {name}={old!r}, now it is {new!r}; give "
                f"another trainer.experiment_name for a new evaluation, or the old value to "
                f"continue this one"
            )


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write the settings, before the first response."""
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    write_whole(folder / "settings.json", json.dumps(settings, indent=1) + "\n")


class Job(NamedTuple):
    """A problem and the numbers of the responses that it still lacks, in 0..K-1."""

    problem: Problem
    missing: list[int]


def missing_jobs(problems: Sequence[Problem], num_responses: int, done: Done) -> list[Job]:
    """Return what is left to do, in the order of the files; the benchmark is the data source."""
    jobs = []
    for problem in problems:
        have = done.get((problem.data_source, problem.id), set())
        if missing := [k for k in range(num_responses) if k not in have]:
            jobs.append(Job(problem, missing))
    return jobs


async def draw_responses(
    jobs: Sequence[Job],
    rows_of: Callable[[Job], Awaitable[list[dict[str, Any]]]],
    *,
    folder: Path,
    concurrency: int,
    progress: Callable[[str, int], None],
) -> None:
    """Do all jobs; the first failure stops the others, and what was written stays.

    A problem that the teacher leaves unanswered does not: the endpoint may refuse it at every
    start. If it has answered none when all places have failed once, the endpoint is at fault.

    Args:
        jobs: What to draw.
        rows_of: Draws and grades what a problem lacks, one row per response.
        folder: ``RUN/evaluation``.
        concurrency: Problems in flight at the same time.
        progress: Called with the benchmark and the number of responses that are on disk now: 0
            when a problem begins.

    Raises:
        HintError: At the end, naming the problems that the teacher left unanswered.
    """
    waiting = iter(jobs)
    unanswered: list[str] = []
    is_answered = False

    async def work() -> None:
        nonlocal is_answered
        for job in waiting:
            benchmark = job.problem.data_source
            progress(benchmark, 0)
            try:
                rows = await rows_of(job)
            except TeacherSilentError:
                unanswered.append(job.problem.id)
                if not is_answered and len(unanswered) >= max(_FEWEST, concurrency):
                    raise
                continue
            is_answered = True
            append_responses(folder, benchmark, rows)
            progress(benchmark, len(rows))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(jobs))):
            group.create_task(work())
    if unanswered:
        shown = ", ".join(map(repr, unanswered[:_SHOWN])) + " ..." * (len(unanswered) > _SHOWN)
        raise HintError(
            f"the teacher left turns of {len(unanswered)} of {len(jobs)} problems unanswered: "
            f"{shown}; logs/ray says why. The others are on disk, and results need all: start the "
            f"evaluation again to ask for these alone"
        )


async def graded_rows(job: Job, *, engine: Any, seed: int) -> list[dict[str, Any]]:
    """Draw the missing responses to a problem's own conversation, whatever the method.

    ``engine`` samples and grades K responses of a prompt; ``seed`` is the root of all seeds.
    """
    problem = job.problem
    prompt_ids = engine.render(problem.messages)
    base = seed_at(seed, "evaluation", problem.data_source, problem.id)
    # What a killed run left is drawn one by one, each with the seed it would have had in the group.
    is_whole = len(job.missing) == engine.group_size
    requests = [range(engine.group_size)] if is_whole else [range(k, k + 1) for k in job.missing]
    rows = []
    for numbers in requests:
        start = time.perf_counter()
        [responses_G] = await engine.sample_each([prompt_ids], [base], numbers)
        cost = {"prompt_tokens": len(prompt_ids), "seconds": _seconds_since(start)}
        verdicts_G = await engine.grade(problem, responses_G)
        for k, response, verdict in zip(numbers, responses_G, verdicts_G, strict=True):
            own_seed = base + k if engine.is_seeded else None
            rows.append(response_row(problem, k, own_seed, response, verdict) | cost)
    return rows


async def played_rows(job: Job, *, parts: RolloutParts) -> list[dict[str, Any]]:
    """Play K conversations; return only those that a killed run did not leave on disk."""
    problem = job.problem
    name = f"{problem.data_source}/{problem.id}"
    rollout = PromptRollout(replace(problem, id=name), ProblemState(), parts)
    start = time.perf_counter()
    outcome = await rollout.run("evaluation", 0)
    seconds = _seconds_since(start)
    rows = []
    for played in outcome.rows:
        turn, k = played.turn, played.credit.session
        if k not in job.missing:
            continue
        assert turn.verdict, "the last turn has a verdict"
        seed = rollout.first_seed + k if parts.settings.seeded_sampling else None
        facts = dict(played.credit.facts)
        rows.append(
            response_row(problem, k, seed, turn.response, turn.verdict)
            | {"prompt_tokens": len(turn.prompt_ids_T), "seconds": seconds}
            | {"facts": None if any(map(isnan, facts.values())) else facts}
            | {"conversation": list(turn.messages)}
        )
    return rows


def response_row(
    problem: Problem, number: int, seed: int | None, response: Response, verdict: Verdict
) -> dict[str, Any]:
    """Return one line of a response file, but for the prompt's length and the time."""
    return {
        "benchmark": problem.data_source,
        "id": problem.id,
        "sample": number,
        "seed": seed,
        "score": float(verdict.reason == "correct"),
        "reason": verdict.reason,
        "extracted": verdict.extracted,
        "basis": verdict.basis,
        "ignored": verdict.ignored,
        "response": response.text,
        "response_tokens": len(response.token_ids_T),
        "is_truncated": response.is_truncated,
    }


def _seconds_since(start: float) -> float:
    return round(time.perf_counter() - start, 3)


class Progress:
    """Says how many responses there are, and keeps each benchmark's time in ``clock.json``.

    A benchmark's time runs from its first problem to its last, over all sessions. ``total`` is the
    number of responses that there will be, ``done`` that of those on disk already.
    """

    def __init__(self, folder: Path, say: Callable[[str], None], *, total: int, done: int) -> None:
        self._path = folder / "clock.json"
        kept = self._path.read_text("utf-8") if self._path.exists() else "{}"
        self._before: dict[str, float] = json.loads(kept)
        self._first: dict[str, float] = {}
        self._say, self._total, self._had, self._done = say, total, done, done
        self._said = 0.0
        self.seconds = dict(self._before)

    def __call__(self, benchmark: str, count: int) -> None:
        """Count ``count`` more responses of a benchmark; not every call prints a line."""
        now = time.monotonic()
        spent = now - self._first.setdefault(benchmark, now)
        self.seconds[benchmark] = round(self._before.get(benchmark, 0.0) + spent, 3)
        self._done += count
        if count and (now - self._said > _SAY_EVERY_S or self._done == self._total):
            self._said = now
            left = self._total - self._done
            left_s = left * (now - min(self._first.values())) / (self._done - self._had)
            time_left = f"  {duration(left_s)} left" if left else ""
            self._say(f"samples {self._done}/{self._total}{time_left}")
            write_whole(self._path, json.dumps(self.seconds, indent=1) + "\n")

"""Draw K responses to every problem of a benchmark, without hints, each on disk once it is graded.

Of a method with several turns K conversations are played, and scored by their last turns.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf

from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState, Response, seed_at
from recipe.problems.schema import Problem
from recipe.run.config import FUNCTION, MODEL_NODE, ROLLOUT, files_of, setting
from recipe.run.errors import ConfigError, HintError, TeacherSilentError
from recipe.run.paths import VAL
from recipe.run.reporter import duration
from recipe.run.whole_file import file_sha256, write_whole
from recipe.study.responses import CLOCK, SETTINGS, Done, append_responses, read_kept
from recipe.verify.schema import Verdict

_SAY_EVERY_S = 10.0
_FEWEST = 16  # problems left open, and none answered: then the endpoint is at fault
_SHOWN = 3  # problems that a message lists
_WINDOWS, _WINDOW_BYTES = 64, 4096  # of a file of weights, to tell it from another


def evaluation_settings(config: DictConfig, turns: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return all that the responses depend on, besides the hardware; ``turns``: those played."""

    def plain(name: str) -> Any:
        value = setting(config, name)
        return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value

    sampling, model = config.actor_rollout_ref.rollout.val_kwargs, plain(f"{MODEL_NODE}.path")
    files = files_of(config, VAL)
    names = [Path(path).name for path in files]
    keys = names
    if len({*names}) < len(names):
        keys = [str(Path(path).absolute()) for path in files]
    function = plain(f"{FUNCTION}.path") or ""
    return {
        "model": model,
        "weights": weights_digest(Path(model)),
        "num_samples": sampling.n,
        **{name: sampling[name] for name in ("temperature", "top_p", "top_k")},
        "max_tokens": plain(f"{ROLLOUT}.response_length"),
        "seed": config.hint.seed if config.hint.seeded_sampling else None,
        "files": {key: file_sha256(path) for key, path in zip(keys, files, strict=True)},
        "template": {
            "options": plain("data.apply_chat_template_kwargs"),
            "text": plain(f"{MODEL_NODE}.custom_chat_template"),
        },
        "dtype": plain(f"{ROLLOUT}.dtype"),
        "grading": {
            "answer_format": plain("hint.verify.answer_format"),
            "function": file_sha256(function) if Path(function).is_file() else function,
            "arguments": plain(f"{FUNCTION}.reward_kwargs"),
        },
        **({"turns": turns} if turns else {}),
    }


def weights_digest(folder: Path) -> str | None:
    """Return a digest of pieces from all over a model's weights; ``None`` without any."""
    paths = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    digest = hashlib.sha256()
    for path in paths:
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            for number in range(_WINDOWS):
                file.seek(size * number // _WINDOWS)
                digest.update(file.read(_WINDOW_BYTES))
    return digest.hexdigest() if paths else None


def check_settings_unchanged(folder: Path, settings: dict[str, Any]) -> None:
    """Check that the responses on disk come from the same model, sampling and files.

    Raises:
        ConfigError: Naming the setting that differs from those of the responses on disk.
    """
    before = read_kept(folder, SETTINGS)
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
    write_whole(folder / SETTINGS, json.dumps(settings, indent=1) + "\n")


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
    say: Callable[[str], None],
) -> None:
    """Do all jobs, some at a time; the first failure stops the others, and what was written stays.

    A problem that the teacher leaves unanswered does not: the endpoint may refuse it at every
    start. If it has answered none when all places have failed once, the endpoint is at fault.
    ``clock.json`` has each benchmark's seconds from its first problem to its last, over all starts.

    ``rows_of`` draws and grades what a problem lacks, one row per response, ``concurrency``
    problems at the same time; ``say`` gets a line of progress now and then.

    Raises:
        HintError: At the end, naming the problems that the teacher left unanswered.
    """
    waiting, unanswered = iter(jobs), []
    total, drawn, said = sum(len(job.missing) for job in jobs), 0, 0.0
    before, start, starts = read_kept(folder, CLOCK), time.monotonic(), {}
    seconds = dict(before)

    async def work() -> None:
        nonlocal drawn, said
        for job in waiting:
            benchmark = job.problem.data_source
            starts.setdefault(benchmark, time.monotonic())
            try:
                rows = await rows_of(job)
            except TeacherSilentError:
                unanswered.append(job.problem.id)
                if not drawn and len(unanswered) >= max(_FEWEST, concurrency):
                    raise
                continue
            append_responses(folder, benchmark, rows)
            drawn, now = drawn + len(rows), time.monotonic()
            spent = before.get(benchmark, 0.0) + now - starts[benchmark]
            seconds[benchmark] = round(spent, 3)
            if now - said > _SAY_EVERY_S or drawn == total:
                said = now
                left_s = (total - drawn) * (now - start) / drawn
                say(f"samples {drawn}/{total}" + (f"  {duration(left_s)} left" if left_s else ""))
                write_whole(folder / CLOCK, json.dumps(seconds, indent=1) + "\n")

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(jobs))):
            group.create_task(work())
    if unanswered:
        raise HintError(
            f"the teacher left turns of {len(unanswered)} of {len(jobs)} problems unanswered, such "
            f"as {', '.join(map(repr, unanswered[:_SHOWN]))}; logs/ray says why. The others are on "
            f"disk: the same command asks for these alone"
        )


async def graded_rows(job: Job, *, engine: Any, seed: int) -> list[dict[str, Any]]:
    """Draw K responses to a problem's own conversation; return those that are not on disk.

    ``engine`` samples and grades K responses of a prompt; ``seed`` is the root of all seeds.
    """
    problem, numbers = job.problem, range(engine.group_size)
    prompt_ids = engine.render(problem.messages)
    base = seed_at(seed, "evaluation", problem.data_source, problem.id)
    start = time.perf_counter()
    [responses_G] = await engine.sample_each([prompt_ids], [base], numbers)
    cost = {"prompt_tokens": len(prompt_ids), "seconds": _seconds_since(start)}
    verdicts_G = await engine.grade(problem, responses_G)
    return [
        response_row(problem, k, base + k if engine.is_seeded else None, response, verdict) | cost
        for k, response, verdict in zip(numbers, responses_G, verdicts_G, strict=True)
        if k in job.missing
    ]


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
        **{name: getattr(verdict, name) for name in ("reason", "extracted", "basis", "ignored")},
        "response": response.text,
        "response_tokens": len(response.token_ids_T),
        "is_truncated": response.is_truncated,
    }


def _seconds_since(start: float) -> float:
    return round(time.perf_counter() - start, 3)

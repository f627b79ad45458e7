"""Draw K responses to every problem of a benchmark, without hints, each on disk once it is graded.

No method, no source of hints and no history is within reach here: a problem's own conversation
is the only thing that can be rendered. Methods with several turns are played in ``play``.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from omegaconf import DictConfig, OmegaConf, open_dict

from recipe.hint.schema import Response, seed_at
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError, DataError, HintError, TeacherSilentError
from recipe.run.reporter import duration
from recipe.run.typed import read_json
from recipe.run.whole_file import file_sha256, write_whole
from recipe.study.responses import Done, append_responses
from recipe.verify.schema import Verdict

_SAY_EVERY_S = 0.5
_FEWEST = 16  # problems left open, and none answered: then the endpoint is at fault
_SHOWN = 3  # problems that a message lists
# Not in the settings of responses that an earlier version drew; weights are not known before a
# checkpoint is merged, nor of a model on the hub.
_MAY_BE_UNKNOWN = frozenset({"weights", "template", "dtype", "grading"})
_WINDOWS, _WINDOW_BYTES = 64, 4096  # of a file of weights, to tell it from another


def apply_evaluation_mode(config: DictConfig, method: str, name: str = "evaluation") -> None:
    """Rewrite the settings of ``trainer.eval_only=true`` that have no meaning without training.

    Args:
        config: Changed in place.
        method: What is evaluated: the one without hints, or one with several turns; for a question
            the one that is asked.
        name: What the run's folder begins with where none was named.
    """
    rollout = config.actor_rollout_ref.rollout
    # Values that are not numbers are refused afterwards, with the other checks of numbers.
    num_devices = (config.trainer.nnodes or 1) * (config.trainer.n_gpus_per_node or 1)
    with open_dict(config):
        trainer: Any = OmegaConf.to_container(config.trainer, resolve=False)
        if trainer["experiment_name"] == "${trainer.method}-${now:%Y%m%d-%H%M%S}":
            config.trainer.experiment_name = f"{name}-${{now:%Y%m%d-%H%M%S}}"
        config.trainer.method = method
        config.data.train_files = config.data.val_files
        # No trainer: the replicas have the devices to themselves and read the weights they serve.
        config.trainer.save_freq = config.trainer.test_freq = -1
        config.data.train_batch_size = config.actor_rollout_ref.actor.ppo_mini_batch_size = (
            num_devices
        )
        rollout.nnodes = config.trainer.nnodes
        rollout.n_gpus_per_node = config.trainer.n_gpus_per_node
        rollout.load_format = "auto"


def evaluation_settings(
    config: DictConfig, files: Sequence[str], turns: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return all that the responses depend on, besides the hardware; ``turns``: those played."""
    sampling = config.actor_rollout_ref.rollout.val_kwargs
    digests = {}
    names = Counter(Path(path).name for path in files)
    for path in files:
        name = Path(path).name
        digests[name if names[name] == 1 else str(Path(path).absolute())] = file_sha256(path)

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
        "files": digests,
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
    path = folder / "settings.json"
    if not path.exists():
        return
    before = _read_object(path)
    for name in before.keys() | settings.keys():
        if name in _MAY_BE_UNKNOWN and None in (before.get(name), settings.get(name)):
            continue
        if before.get(name) != settings.get(name):
            raise ConfigError(
                f"{folder} holds responses drawn with {name}={before.get(name)!r}, now it is "
                f"{settings.get(name)!r}; give another trainer.experiment_name for a new "
                f"evaluation, or the old value to continue this one"
            )


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write the settings, before the first response."""
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    write_whole(folder / "settings.json", json.dumps(settings, indent=1) + "\n")


class EvaluationEngine(Protocol):
    """The part of the rollout's engine that an evaluation needs; it can write no hints."""

    group_size: int  # K
    is_seeded: bool  # whether a seed decides what is sampled

    def render(self, messages: Sequence[dict[str, str]]) -> Sequence[int]:
        """Return the token ids of a conversation."""
        ...

    async def sample_each(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[int], rows: range
    ) -> list[list[Response]]:
        """Sample ``rows`` of K responses to each prompt; response k has the prompt's seed + k."""
        ...

    async def grade(self, problem: Problem, responses_G: list[Response]) -> list[Verdict]:
        """Return one verdict per response."""
        ...


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

    A problem that the teacher leaves unanswered does not stop the others: the endpoint may refuse
    this problem at every start. If it has answered none when all places have failed once, the
    endpoint is at fault.

    Args:
        jobs: What to draw.
        rows_of: Draws and grades what a problem lacks, one row per response.
        folder: ``RUN/evaluation``.
        concurrency: Problems in flight at the same time.
        progress: Called with the benchmark and the number of responses written: 0 when a problem
            begins, all of its missing ones when they are on disk.

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
            f"{shown}; logs/ray says why (a refused request may need a longer context of "
            f"the endpoint). The others are on disk, and results need all: start the evaluation "
            f"again to ask for these alone"
        )


async def graded_rows(job: Job, *, engine: EvaluationEngine, seed: int) -> list[dict[str, Any]]:
    """Draw the missing responses to a problem's own conversation.

    Args:
        job: What to draw.
        engine: Where responses and verdicts come from.
        seed: Root of all seeds (with benchmark, problem and number).
    """
    problem = job.problem
    prompt_ids = engine.render(problem.messages)
    base = seed_at(seed, "evaluation", problem.data_source, problem.id)
    requests = [range(engine.group_size)]
    if len(job.missing) < engine.group_size:
        # A killed run left some of them: the others one by one, each with the seed it would have
        # had in the group.
        requests = [range(k, k + 1) for k in job.missing]
    rows = []
    for numbers in requests:
        start = time.perf_counter()
        [responses_G] = await engine.sample_each([prompt_ids], [base], numbers)
        seconds = round(time.perf_counter() - start, 3)
        verdicts_G = await engine.grade(problem, responses_G)
        rows += [
            response_row(problem, k, base + k if engine.is_seeded else None, response, verdict)
            | {"prompt_tokens": len(prompt_ids), "seconds": seconds}
            for k, response, verdict in zip(numbers, responses_G, verdicts_G, strict=True)
        ]
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


class Progress:
    """Reports how many responses there are, and keeps each benchmark's time over all sessions.

    A benchmark's time runs from its first problem to its last; ``clock.json`` holds it.

    Args:
        folder: ``RUN/evaluation``.
        say: Takes the lines of the console.
        total: Responses that there will be.
        done: Those on disk already.
        at_once: Responses that are sampled at the same time.
    """

    def __init__(
        self, folder: Path, say: Callable[[str], None], *, total: int, done: int, at_once: int = 1
    ) -> None:
        self._path = folder / "clock.json"
        self._before: dict[str, float] = _read_object(self._path) if self._path.exists() else {}
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._say = say
        self._total = total
        self._done_before = self._done = done
        self._at_once = at_once
        self._began: float | None = None
        self._said = 0.0

    def __call__(self, benchmark: str, count: int) -> None:
        """Count ``count`` more responses of a benchmark; not every call prints a line."""
        now = time.monotonic()
        self._began = self._began or now
        self._first.setdefault(benchmark, now)
        self._last[benchmark] = now
        self._done += count
        if count and (now - self._said > _SAY_EVERY_S or self._done == self._total):
            self._said = now
            left = self._total - self._done
            # Those under way are half done in the mean: the first of many to end would say hours.
            drawn = self._done - self._done_before + min(self._at_once, left) / 2
            time_left = f"  {duration((now - self._began) * left / drawn)} left" if left else ""
            self._say(f"samples {self._done}/{self._total}{time_left}")
            self.save()

    def seconds(self, benchmark: str) -> float:
        """Return the time up to the last call; 0 when there was none."""
        spent = self._last.get(benchmark, 0.0) - self._first.get(benchmark, 0.0)
        return round(self._before.get(benchmark, 0.0) + spent, 3)

    def save(self) -> None:
        """Keep the times for the next session."""
        times = {name: self.seconds(name) for name in self._before | self._last}
        write_whole(self._path, json.dumps(times, indent=1) + "\n")


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = read_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}; start a new evaluation") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds a {type(value).__name__}; start a new evaluation")
    return value

"""Evaluate a model with vLLM replicas and no trainer: ``trainer.eval_only=true``.

K responses to every problem are drawn without hints, each on disk once it is graded; of a method
with several turns K conversations, scored by their last turns.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from omegaconf import DictConfig, OmegaConf, open_dict

from recipe.hint.adapter.engine import EngineBuilder, problems_in_flight
from recipe.hint.adapter.hint_sources import build_parts
from recipe.hint.methods import BASELINE, METHODS, get_method
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState
from recipe.hint.settings import build_method, read_texts, settings_of
from recipe.problems.columns import read_problems
from recipe.problems.schema import Problem
from recipe.run.checkpoints import MERGED, checkpoint_of, model_files
from recipe.run.config import FUNCTION, MODEL_NODE, ROLLOUT, check, files_of, names, setting
from recipe.run.launcher import run_to_its_end
from recipe.run.paths import VAL, evaluation_folder, local_path
from recipe.run.run_folder import RunFolder
from recipe.run.task_runner import HintTaskRunner, prepare_verl
from recipe.run.watchdog import Liveness, Watchdog
from recipe.run.whole_file import append_lines, file_sha256, write_whole
from recipe.study.results import SETTINGS, read_kept, read_responses, response_path, write_results

_SAY_EVERY_S = 10.0


def check_and_evaluate(config: DictConfig, argv: Sequence[str]) -> None:
    """Check an evaluation, print what will run, run it to its end and print its table."""
    from recipe.study.export import merge_model

    name = str(config.trainer.method)  # one without turns is evaluated as the one without hints
    has_turns = name in METHODS and get_method(name).is_multi_turn
    apply_evaluation_mode(config, name if has_turns else BASELINE)
    print("\n".join(preflight_evaluation(config, argv)), flush=True)
    if config.preflight_only:
        return
    merge_model(config)
    run_to_its_end(config, EvaluationRunner)
    folder = evaluation_folder(config)
    table = (folder / "table.md").read_text(encoding="utf-8").rstrip()
    print(f"done\n{table}\n  in {folder}", flush=True)


def apply_evaluation_mode(config: DictConfig, method: str, name: str = "evaluation") -> None:
    """Rewrite the settings of ``trainer.eval_only=true`` that have no meaning without training.

    ``method`` is what is played, and ``name`` what a folder begins with that was not named.
    """
    trainer, rollout = config.trainer, config.actor_rollout_ref.rollout
    with open_dict(config):
        given: Any = OmegaConf.to_container(trainer, resolve=False)
        if given["experiment_name"] == "${trainer.method}-${now:%Y%m%d-%H%M%S}":
            trainer.experiment_name = f"{name}-${{now:%Y%m%d-%H%M%S}}"
        trainer.method = method
        # No trainer: the replicas have the devices to themselves and read the weights they serve.
        rollout.nnodes, rollout.n_gpus_per_node = trainer.nnodes, trainer.n_gpus_per_node
        rollout.load_format = "auto"


def preflight_evaluation(config: DictConfig, argv: Sequence[str] = ()) -> list[str]:
    """Check an evaluation's settings, machine, data and model in seconds; write nothing.

    Returns lines that say what will run.
    """
    from recipe.hint.adapter.preflight import inputs
    from recipe.hint.adapter.preflight import run as preflight
    from recipe.hint.adapter.preflight.inputs import MODEL, load_model
    from recipe.hint.adapter.preflight.settings import check_values
    from recipe.hint.command import given_settings
    from recipe.run.devices import check_machine
    from recipe.run.resume import check_places

    config, settings = preflight.resolved(config)
    method = build_method(config.trainer, settings)
    warnings = preflight.check_teacher(config, method, settings)
    inputs.check_given(config, (VAL, MODEL))
    check_values(config)
    adapter = setting(config, "actor_rollout_ref.model.lora_adapter_path")
    told = f"lora_adapter_path={adapter}: an evaluation serves the weights of {MODEL} alone; give"
    check(not adapter, f"{told} a checkpoint, or a folder with the adapter merged")
    preflight.check_reward(config, settings)
    check_machine(config)
    check_places(config)
    files = inputs.read_files(config, VAL, by_source=True)  # a benchmark may be spread over files
    served, has_weights = local_path(str(setting(config, MODEL))), True
    with_files = config.copy()
    if checkpoint := checkpoint_of(served):  # the replicas will read what is merged later
        served = str(checkpoint / MERGED)
        folder, has_weights = model_files(checkpoint)
        with_files.actor_rollout_ref.model.path = str(folder)
    model = load_model(with_files, has_weights=has_weights)
    lengths = inputs.check_lengths(config, model, val=files)
    inputs.check_turns(config, method, model, lengths, files[0])
    config.actor_rollout_ref.model.path = served
    check_settings_unchanged(evaluation_folder(config), evaluation_settings(config))
    val, trainer = config.actor_rollout_ref.rollout.val_kwargs, config.trainer
    total = val.n * sum(len(file.problems) for file in files)
    plays = "without hints"
    if method.is_multi_turn:
        plays = f"conversations of {config.trainer.method}, scored by their last turn"
    idle = (*names(ROLLOUT, "temperature top_p top_k n"), "data.val_max_samples")
    if told := ", ".join(name for name in given_settings(argv) if name in idle):
        warnings.append(f"without effect here, where {ROLLOUT}.val_kwargs samples: {told}")
    warnings += lengths.warnings
    return [
        f"evaluate  {plays}",
        f"model     {served}, context {model.context} tokens",
        *(f"problems  {file.summary()}" for file in files),
        f"samples   {val.n} of each, {total} in all, T={val.temperature} top_p={val.top_p}, "
        f"seed {settings.seed}",
        preflight.lengths_line(config, lengths),
        f"devices   {trainer.nnodes} x {trainer.n_gpus_per_node} {trainer.device}",
        f"folder    {settings.run_dir}",
        *(f"warning: {line}" for line in warnings),
    ]


def evaluation_settings(config: DictConfig) -> dict[str, Any]:
    """Return all that the responses depend on, besides the hardware."""

    def plain(name: str) -> Any:
        value = setting(config, name)
        return OmegaConf.to_container(value) if OmegaConf.is_config(value) else value

    sampling, model = config.actor_rollout_ref.rollout.val_kwargs, plain(f"{MODEL_NODE}.path")
    digests: dict[str, str] = {}
    for path in files_of(config, VAL):  # files of two folders may have the same name
        digests[Path(path).name] = digests.get(Path(path).name, "") + file_sha256(path)
    function = plain(f"{FUNCTION}.path") or ""
    found = {
        "model": model,
        "weights": weights_digest(Path(model)),
        "num_samples": sampling.n,
        **{name: sampling[name] for name in ("temperature", "top_p", "top_k")},
        "max_tokens": plain(f"{ROLLOUT}.response_length"),
        "seed": config.hint.seed if config.hint.seeded_sampling else None,
        "files": digests,
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
    }
    if get_method(name := config.trainer.method).is_multi_turn:
        settings = settings_of(config)
        own, texts = build_method(config.trainer, settings).settings, read_texts(settings)
        found["turns"] = {"method": name, "settings": asdict(own), "texts": asdict(texts)}
        found["turns"] |= {"teacher": settings.teacher.model} if own.asks_teacher else {}
    return found


def weights_digest(folder: Path) -> str | None:
    """Return a digest of bytes from all over a model's weights; ``None`` without any."""
    paths = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("*.bin"))
    digest = hashlib.sha256()
    for path in paths:
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        # An odd step: every byte of a weight has its turn.
        digest.update(np.memmap(path, mode="r")[:: size // 4096 | 1].tobytes())
    return digest.hexdigest() if paths else None


def check_settings_unchanged(folder: Path, settings: dict[str, Any]) -> None:
    """Refuse to go on with responses that come from another model, sampling or files."""
    before = read_kept(folder)
    for name in {**before, **settings} if before else ():
        old, new = before.get(name), settings.get(name)
        # Weights are not known before a checkpoint is merged, nor of a model on the hub.
        is_known = name != "weights" or None not in (old, new)
        check(
            old == new or not is_known,
            f"{folder} holds responses drawn with {name}={old!r}, now it is {new!r}; give another "
            f"trainer.experiment_name for a new evaluation, or the old value to continue this one",
        )


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
                left = timedelta(seconds=round((total - drawn) * (now - start) / drawn))
                say(f"samples {drawn}/{total}" + (f"  {left} left" if left else ""))

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


class EvaluationRunner(HintTaskRunner):
    """Draws the responses to ``data.val_files`` that are not on disk, then writes the results."""

    def _run(self, config: DictConfig, folder: RunFolder, watchdog: Watchdog) -> dict[str, Any]:
        target, settings = evaluation_folder(config), evaluation_settings(config)
        check_settings_unchanged(target, settings)  # again: a checkpoint is merged now
        (target / "samples").mkdir(parents=True, exist_ok=True)
        write_whole(target / SETTINGS, json.dumps(settings, indent=1) + "\n")
        problems = [each for path in config.data.val_files for each in read_problems(path)]
        jobs = missing_jobs(problems, settings["num_samples"], target)
        missing = sum(len(job.missing) for job in jobs)
        if (total := len(problems) * settings["num_samples"]) > missing:
            folder.say(f"{total - missing} of {total} samples are on disk")
        if jobs:
            how = config.actor_rollout_ref.rollout.val_kwargs
            with served_engine(config, folder, watchdog, how) as engine:
                parts = build_parts(config, settings_of(config), engine, validates=True)
                at_once = problems_in_flight(config)
                drawing = draw_responses(
                    jobs, parts, folder=target, concurrency=at_once, say=folder.say
                )
                asyncio.run(drawing)
        ids: dict[str, list[str]] = {}
        for problem in problems:
            ids.setdefault(problem.data_source, []).append(problem.id)
        write_results(target, ids, settings)
        return {"drawn": missing}


@contextlib.contextmanager
def served_engine(
    config: DictConfig, folder: RunFolder, watchdog: Watchdog, *how: Any
) -> Iterator[Any]:
    """Start vLLM replicas on all devices, without a trainer; yield an engine as ``how`` says.

    The run ends where, in the block, a server dies or is silent.
    """
    folder.say("starting the vLLM replicas ...")
    with watchdog.phase("start-up of the vLLM replicas", "start_s"):
        manager, worker = start_replicas(config)
        engine = EngineBuilder(worker, settings_of(config)).build(*how)
    folder.say("ready")
    liveness = Liveness(limit_s=config.hint.watchdog.answer_s, on_fault=watchdog.end)
    liveness.add_servers([manager])
    with liveness.watching():
        yield engine


def start_replicas(config: DictConfig) -> tuple[Any, Any]:
    """Return verl's manager of the servers, and its worker."""
    from verl.experimental.agent_loop import AgentLoopWorker
    from verl.workers.rollout.llm_server import LLMServerManager

    prepare_verl()
    manager: Any = LLMServerManager.create(config=config)
    return manager, AgentLoopWorker(config, manager.get_client())

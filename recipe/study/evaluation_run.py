"""The driver of an evaluation inside Ray: vLLM replicas without a trainer, responses, results."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from recipe.hint.adapter.hint_sources import teacher_of
from recipe.hint.adapter.in_flight import problems_in_flight
from recipe.hint.settings import settings_of
from recipe.problems.columns import read_problems
from recipe.run.machine import describe_machine
from recipe.run.paths import evaluation_folder
from recipe.run.run_folder import RunFolder
from recipe.run.task_runner import HintTaskRunner, prepare_verl
from recipe.run.watchdog import Liveness, Watchdog, WatchedEngine
from recipe.run.whole_file import write_whole
from recipe.study.evaluation.draw import (
    Progress,
    check_settings_unchanged,
    draw_responses,
    evaluation_settings,
    graded_rows,
    missing_jobs,
    write_settings,
)
from recipe.study.evaluation.play import parts_of_turns, played_rows, played_turns
from recipe.study.responses import resume_responses
from recipe.study.results import write_results

if TYPE_CHECKING:  # verl's imports take seconds, and the launcher reads this file too
    from recipe.hint.adapter.engine_builder import EngineBuilder

_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "seed")


class EvaluationRunner(HintTaskRunner):
    """Draws the responses to ``data.val_files`` that are not on disk, then writes the results."""

    def _run(self, config: DictConfig, folder: RunFolder, watchdog: Watchdog) -> dict[str, Any]:
        target = evaluation_folder(config)
        files = list(config.data.val_files)
        settings = evaluation_settings(config, files, played_turns(config))
        check_settings_unchanged(target, settings)  # again: a checkpoint is merged now
        write_settings(target, settings)
        write_whole(target / "machine.json", json.dumps(describe_machine(), indent=1))
        problems = [each for path in config.data.val_files for each in read_problems(path)]
        jobs = missing_jobs(problems, settings["num_samples"], resume_responses(target))
        missing = sum(len(job.missing) for job in jobs)
        total = len(problems) * settings["num_samples"]
        if missing < total:
            folder.say(f"{total - missing} of {total} samples are on disk")
        concurrency = problems_in_flight(config)
        # vLLM samples half of what is under way.
        at_once = concurrency * settings["num_samples"] // 2
        progress = Progress(target, folder.say, total=total, done=total - missing, at_once=at_once)
        if jobs:
            folder.say("starting the vLLM replicas ...")
            with start_limit(config, watchdog):
                builder, _, manager = start_replicas(config)
            folder.say("ready")
            rollout = config.actor_rollout_ref.rollout
            engine: Any = WatchedEngine(builder.build(rollout.val_kwargs))
            turns = parts_of_turns(config, engine, teacher_of)
            rows = (
                partial(played_rows, parts=turns)
                if turns
                else partial(graded_rows, engine=engine, seed=config.hint.seed)
            )
            with watched(manager, engine, config, watchdog):
                asyncio.run(
                    draw_responses(
                        jobs,
                        rows,
                        folder=target,
                        concurrency=concurrency,
                        progress=progress,
                    )
                )
            progress.save()
        ids: dict[str, list[str]] = {}
        for problem in problems:
            ids.setdefault(problem.data_source, []).append(problem.id)
        write_results(
            target,
            ids,
            model=settings["model"],
            sampling={name: settings[name] for name in _SAMPLING},
            num_responses=settings["num_samples"],
            wall_s={name: progress.seconds(name) for name in ids},
        )
        return {"drawn": missing}


def start_replicas(config: DictConfig) -> tuple[EngineBuilder, Any, Any]:
    """Start vLLM replicas on all devices, without a trainer.

    Returns:
        What builds engines on them, verl's worker behind it, and the manager of the replicas.
    """
    from verl.experimental.agent_loop import AgentLoopWorker
    from verl.workers.rollout.llm_server import LLMServerManager

    from recipe.hint.adapter.engine_builder import EngineBuilder

    prepare_verl()
    manager: Any = LLMServerManager.create(config=config)
    # verl's worker, here for what it makes of the settings: tokenizer, template, client.
    worker = AgentLoopWorker(config, manager.get_client())
    return EngineBuilder(worker, settings_of(config)), worker, manager


def start_limit(config: DictConfig, watchdog: Watchdog) -> contextlib.AbstractContextManager[Any]:
    """Return the block for :func:`start_replicas`, with its limit."""
    limit_s = config.hint.watchdog.start_s
    return watchdog.phase("start-up of the vLLM replicas", limit_s, "hint.watchdog.start_s")


@contextlib.contextmanager
def watched(
    manager: Any, engine: WatchedEngine, config: DictConfig, watchdog: Watchdog
) -> Iterator[None]:
    """End the run where, in the block, a server dies or does not answer, or nothing comes."""
    limits = config.hint.watchdog
    liveness = Liveness(limit_s=limits.answer_s, on_fault=watchdog.end)
    liveness.add_servers([manager])
    with liveness.watching(), engine.limited(watchdog, limits.progress_s):
        yield

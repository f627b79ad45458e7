"""The driver of an evaluation inside Ray: vLLM replicas without a trainer, and the sample loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

from recipe.hint.problems.columns import read_problems
from recipe.hint.report.evaluation import write_results
from recipe.hint.runtime.evaluator import Engines, Evaluator, Job, missing_jobs
from recipe.hint.runtime.run_folder import RunFolder
from recipe.hint.runtime.sample_files import (
    Clock,
    evaluation_folder,
    evaluation_settings,
    resume_samples,
    write_settings,
)
from recipe.hint.runtime.task_runner import HintTaskRunner, prepare_verl
from recipe.hint.runtime.watchdog import Watchdog
from recipe.hint.settings import read_settings

_SAY_EVERY_S = 0.5
_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "seed")


class EvaluationRunner(HintTaskRunner):
    """Draws the samples of ``data.val_files`` that are not on disk, then writes the results."""

    def _run(self, config: DictConfig, folder: RunFolder) -> dict[str, Any]:
        target = evaluation_folder(config)
        settings = evaluation_settings(config, list(config.data.val_files))
        write_settings(target, settings)
        problems = [each for path in config.data.val_files for each in read_problems(path)]
        num_samples = config.actor_rollout_ref.rollout.val_kwargs.n
        jobs = missing_jobs(problems, num_samples, resume_samples(target))
        missing, total = sum(len(job.samples) for job in jobs), len(problems) * num_samples
        if missing < total:
            folder.say(f"{total - missing} of {total} samples are on disk")
        progress = _Progress(folder, Clock(target), total=total, done=total - missing)
        if jobs:
            watchdog = Watchdog(folder.logs)
            try:
                self._sample(config, folder, jobs=jobs, progress=progress, watchdog=watchdog)
            finally:
                watchdog.stop()
        ids: dict[str, list[str]] = {}
        for problem in problems:
            ids.setdefault(problem.data_source, []).append(problem.id)
        write_results(
            target,
            ids,
            model=settings["model"],
            sampling={name: settings[name] for name in _SAMPLING},
            num_samples=num_samples,
            wall_s={name: progress.clock.seconds(name) for name in ids},
        )
        return {"drawn": missing}

    def _sample(
        self,
        config: DictConfig,
        folder: RunFolder,
        *,
        jobs: Sequence[Job],
        progress: _Progress,
        watchdog: Watchdog,
    ) -> None:
        folder.say("starting the vLLM replicas ...")
        limits = config.hint.watchdog
        with watchdog.phase(
            "start-up of the vLLM replicas", limits.start_s, "hint.watchdog.start_s"
        ):
            engines, in_flight = _start(config)
        folder.say("ready")
        evaluator = Evaluator(
            engines,
            evaluation_folder(config),
            seed=config.hint.seed,
            in_flight=in_flight,
            progress=progress,
        )
        asyncio.run(evaluator.run(jobs))
        progress.clock.save()


def _start(config: DictConfig) -> tuple[Engines, int]:
    """Replicas on all devices, and how many problems keep them busy."""
    from verl.experimental.agent_loop import AgentLoopWorker
    from verl.workers.rollout.llm_server import LLMServerManager

    from recipe.hint.runtime.engine_builder import EngineBuilder

    prepare_verl()
    manager = LLMServerManager.create(config=config)
    # verl's worker, here for what it makes of the settings: tokenizer, template, client.
    worker = AgentLoopWorker(config, manager.get_client())
    settings = read_settings(OmegaConf.to_container(config.hint, resolve=True))
    builder = EngineBuilder(worker, settings)
    sampling = config.actor_rollout_ref.rollout.val_kwargs
    engines = Engines(builder.build(sampling), builder.build(sampling, n=1), sampling.n)
    seats = config.actor_rollout_ref.rollout.max_num_seqs * len(manager.get_replicas())
    # Twice the seats: the next problems wait in the replicas, not here.
    return engines, max(1, 2 * seats // sampling.n)


class _Progress:
    """Keeps the time, and tells the console how many samples there are; not for every problem."""

    def __init__(self, folder: RunFolder, clock: Clock, *, total: int, done: int) -> None:
        self.clock = clock
        self._folder = folder
        self._total = total
        self._done = done
        self._last = 0.0

    def __call__(self, benchmark: str, count: int) -> None:
        self.clock.tick(benchmark)
        self._done += count
        now = time.monotonic()
        if count and (now - self._last > _SAY_EVERY_S or self._done == self._total):
            self._last = now
            self._folder.say(f"samples {self._done}/{self._total}")
            self.clock.save()

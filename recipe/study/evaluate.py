"""Evaluate a model with vLLM replicas and no trainer: ``trainer.eval_only=true``."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

from omegaconf import DictConfig, OmegaConf, open_dict

from recipe.hint.adapter.engine import problems_in_flight
from recipe.hint.adapter.hint_sources import teacher_of
from recipe.hint.methods import METHODS
from recipe.hint.rollout import RolloutParts
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.settings import build_method, evaluated_method, read_texts, settings_of
from recipe.problems.columns import read_problems
from recipe.run.launcher import run_to_its_end
from recipe.run.machine import describe_machine
from recipe.run.paths import evaluation_folder
from recipe.run.run_folder import RunFolder
from recipe.run.task_runner import HintTaskRunner, prepare_verl
from recipe.run.watchdog import Liveness, Watchdog, WatchedEngine
from recipe.run.whole_file import write_whole
from recipe.study.draw import (
    Progress,
    check_settings_unchanged,
    draw_responses,
    evaluation_settings,
    graded_rows,
    missing_jobs,
    played_rows,
    write_settings,
)
from recipe.study.responses import resume_responses
from recipe.study.results import write_results

_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "seed")


def check_and_evaluate(config: DictConfig, argv: Sequence[str]) -> None:
    """Check an evaluation, print what will run, run it to its end and print its table.

    Raises:
        HintError: If it failed; the message is the first reason any of its processes left.
    """
    from recipe.study.evaluation_checks import idle_settings, preflight_evaluation
    from recipe.study.export import merge_model

    idle = idle_settings(config, argv)
    apply_evaluation_mode(config, evaluated_method(config))
    print("\n".join([*preflight_evaluation(config, argv), *idle]), flush=True)
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


def played_turns(config: DictConfig) -> dict[str, Any] | None:
    """Return what the responses of a method with several turns depend on; ``None`` for others."""
    name = evaluated_method(config)
    if not METHODS[name].is_multi_turn:
        return None
    settings = settings_of(config)
    method = build_method(config.trainer, settings)
    asks_teacher = method.settings.asks_teacher
    teacher = {"teacher": settings.teacher.model} if asks_teacher else {}
    texts = asdict(read_texts(settings))
    return {"method": name, "settings": asdict(method.settings), "texts": texts} | teacher


def parts_of_turns(config: DictConfig, engine: Any) -> RolloutParts:
    """Return what the conversations of a method with several turns are made of."""
    settings = replace(settings_of(config), samples=NO_SAMPLES)
    texts = read_texts(settings)
    method = build_method(config.trainer, settings)
    rollout = config.actor_rollout_ref.rollout
    teacher = teacher_of(method, settings, texts, rollout, rollout.val_kwargs)
    return RolloutParts(method.validation(), None, engine, settings, texts, teacher)


class EvaluationRunner(HintTaskRunner):
    """Draws the responses to ``data.val_files`` that are not on disk, then writes the results."""

    def _run(self, config: DictConfig, folder: RunFolder, watchdog: Watchdog) -> dict[str, Any]:
        target, turns = evaluation_folder(config), played_turns(config)
        settings = evaluation_settings(config, list(config.data.val_files), turns)
        check_settings_unchanged(target, settings)  # again: a checkpoint is merged now
        write_settings(target, settings)
        write_whole(target / "machine.json", json.dumps(describe_machine(), indent=1))
        problems = [each for path in config.data.val_files for each in read_problems(path)]
        jobs = missing_jobs(problems, settings["num_samples"], resume_responses(target))
        missing = sum(len(job.missing) for job in jobs)
        total = len(problems) * settings["num_samples"]
        if missing < total:
            folder.say(f"{total - missing} of {total} samples are on disk")
        progress = Progress(target, folder.say, total=total, done=total - missing)
        if jobs:
            folder.say("starting the vLLM replicas ...")
            replicas = start_replicas(config, watchdog)
            folder.say("ready")
            with replicas.engine(config.actor_rollout_ref.rollout.val_kwargs) as engine:
                rows_of: Any = partial(graded_rows, engine=engine, seed=config.hint.seed)
                if turns:
                    rows_of = partial(played_rows, parts=parts_of_turns(config, engine))
                drawing = draw_responses(
                    jobs,
                    rows_of,
                    folder=target,
                    concurrency=problems_in_flight(config),
                    progress=progress,
                )
                asyncio.run(drawing)
        ids: dict[str, list[str]] = {}
        for problem in problems:
            ids.setdefault(problem.data_source, []).append(problem.id)
        write_results(
            target,
            ids,
            model=settings["model"],
            sampling={name: settings[name] for name in _SAMPLING},
            num_responses=settings["num_samples"],
            wall_s=progress.seconds,
        )
        return {"drawn": missing}


class Replicas(NamedTuple):
    """vLLM replicas on all devices, without a trainer, and what builds engines on them.

    ``worker`` is verl's, for what it makes of the settings: tokenizer, template, client.
    """

    config: DictConfig
    watchdog: Watchdog
    builder: Any
    worker: Any
    manager: Any

    @contextlib.contextmanager
    def engine(self, *how: Any) -> Iterator[Any]:
        """Build an engine; the run ends where, in the block, a server dies or nothing comes."""
        limits = self.config.hint.watchdog
        engine = WatchedEngine(self.builder.build(*how))
        liveness = Liveness(limit_s=limits.answer_s, on_fault=self.watchdog.end)
        liveness.add_servers([self.manager])
        with liveness.watching(), engine.limited(self.watchdog, limits.progress_s):
            yield engine


def start_replicas(config: DictConfig, watchdog: Watchdog) -> Replicas:
    """Start vLLM replicas on all devices, within ``hint.watchdog.start_s``."""
    from verl.experimental.agent_loop import AgentLoopWorker
    from verl.workers.rollout.llm_server import LLMServerManager

    from recipe.hint.adapter.engine import EngineBuilder

    limit_s = config.hint.watchdog.start_s
    with watchdog.phase("start-up of the vLLM replicas", limit_s, "hint.watchdog.start_s"):
        prepare_verl()
        manager: Any = LLMServerManager.create(config=config)
        worker = AgentLoopWorker(config, manager.get_client())
        builder = EngineBuilder(worker, settings_of(config))
    return Replicas(config, watchdog, builder, worker, manager)

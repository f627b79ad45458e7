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
from recipe.hint.settings import (
    build_method,
    evaluated_method,
    read_texts,
    settings_of,
    unread_settings,
)
from recipe.problems.columns import read_problems
from recipe.run.checkpoints import MERGED, checkpoint_of, model_files
from recipe.run.config import ROLLOUT, check, setting
from recipe.run.environment import describe_machine
from recipe.run.launcher import run_to_its_end
from recipe.run.paths import VAL, evaluation_folder, local_path
from recipe.run.run_folder import RunFolder
from recipe.run.task_runner import HintTaskRunner, prepare_verl
from recipe.run.watchdog import Liveness, Watchdog
from recipe.run.whole_file import write_whole
from recipe.study.draw import (
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

_SAMPLING = ("temperature", "top_p", "top_k", "n")


def check_and_evaluate(config: DictConfig, argv: Sequence[str]) -> None:
    """Check an evaluation, print what will run, run it to its end and print its table.

    Raises:
        HintError: If it failed; the message is the first reason any of its processes left.
    """
    from recipe.study.export import merge_model

    apply_evaluation_mode(config, evaluated_method(config))
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
    # Values that are not numbers are refused afterwards, with the other checks of numbers.
    num_devices = (trainer.nnodes or 1) * (trainer.n_gpus_per_node or 1)
    with open_dict(config):
        given: Any = OmegaConf.to_container(trainer, resolve=False)
        if given["experiment_name"] == "${trainer.method}-${now:%Y%m%d-%H%M%S}":
            trainer.experiment_name = f"{name}-${{now:%Y%m%d-%H%M%S}}"
        trainer.method = method
        config.data.train_files = config.data.val_files
        # No trainer: the replicas have the devices to themselves and read the weights they serve.
        trainer.save_freq = trainer.test_freq = -1
        config.data.train_batch_size = config.actor_rollout_ref.actor.ppo_mini_batch_size = (
            num_devices
        )
        rollout.nnodes, rollout.n_gpus_per_node = trainer.nnodes, trainer.n_gpus_per_node
        rollout.load_format = "auto"


def preflight_evaluation(config: DictConfig, argv: Sequence[str] = ()) -> list[str]:
    """Check an evaluation's settings, machine, data and model in seconds; write nothing.

    ``rollout.seed`` is derived, where it is verl's.

    Returns:
        Lines that say what will run.
    """
    from recipe.hint.adapter.preflight import inputs
    from recipe.hint.adapter.preflight import run as preflight
    from recipe.hint.adapter.preflight.inputs import MODEL, load_model
    from recipe.hint.adapter.preflight.settings import check_values, read_sizes
    from recipe.hint.command.aliases import given_settings
    from recipe.run.devices import check_machine
    from recipe.run.resume import check_places

    given, (config, settings) = config, preflight.resolved(config)
    method = build_method(config.trainer, settings)
    warnings = preflight.check_teacher(config, method, settings)
    inputs.check_given(config, (VAL, MODEL))
    check_values(config)
    read_sizes(config)
    adapter = setting(config, "actor_rollout_ref.model.lora_adapter_path")
    told = f"lora_adapter_path={adapter}: an evaluation serves the weights of {MODEL} alone; give"
    check(not adapter, f"{told} a checkpoint, or a folder with the adapter merged")
    preflight.check_reward(config, settings)
    unchecked = check_machine(config)
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
    inputs.check_conversations(config, method, model, read_texts(settings), files)
    config.actor_rollout_ref.model.path = served
    drawn_with = evaluation_settings(config, played_turns(config))
    check_settings_unchanged(evaluation_folder(config), drawn_with)
    preflight.seed_engines(given, config, argv)
    val = config.actor_rollout_ref.rollout.val_kwargs
    total = val.n * sum(len(file.problems) for file in files)
    plays = "without hints"
    if method.is_multi_turn:
        plays = f"conversations of {config.trainer.method}, scored by their last turn"
    options = given_settings(argv)
    idle = {*unread_settings(config.trainer.method, options, settings), "data.val_max_samples"}
    idle |= {f"{ROLLOUT}.{name}" for name in _SAMPLING}
    if told := ", ".join(f"{name}={options[name]}" for name in options if name in idle):
        warnings.append(f"without effect here, where {ROLLOUT}.val_kwargs samples: {told}")
    warnings += [*preflight.model_warnings(method, files), *lengths.warnings]
    return [
        f"evaluate  {plays}",
        preflight.model_line(served, model),
        *(f"problems  {file.summary()}" for file in files),
        f"samples   {val.n} of each, {total} in all, T={val.temperature} top_p={val.top_p}, "
        f"seed {settings.seed}",
        preflight.lengths_line(config, lengths, settings, method),
        preflight.devices_line(config),
        f"folder    {settings.run_dir}",
        *unchecked,
        *(f"warning: {line}" for line in warnings),
    ]


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
        settings = evaluation_settings(config, turns)
        check_settings_unchanged(target, settings)  # again: a checkpoint is merged now
        write_settings(target, settings)
        write_whole(target / "machine.json", json.dumps(describe_machine(), indent=1))
        problems = [each for path in config.data.val_files for each in read_problems(path)]
        jobs = missing_jobs(problems, settings["num_samples"], resume_responses(target))
        missing = sum(len(job.missing) for job in jobs)
        total = len(problems) * settings["num_samples"]
        if missing < total:
            folder.say(f"{total - missing} of {total} samples are on disk")
        if jobs:
            folder.say("starting the vLLM replicas ...")
            replicas = start_replicas(config, watchdog)
            folder.say("ready")
            with replicas.engine(config.actor_rollout_ref.rollout.val_kwargs) as engine:
                rows_of: Any = partial(graded_rows, engine=engine, seed=config.hint.seed)
                if turns:
                    rows_of = partial(played_rows, parts=parts_of_turns(config, engine))
                at_once = problems_in_flight(config)
                asyncio.run(
                    draw_responses(
                        jobs, rows_of, folder=target, concurrency=at_once, say=folder.say
                    )
                )
        ids: dict[str, list[str]] = {}
        for problem in problems:
            ids.setdefault(problem.data_source, []).append(problem.id)
        write_results(target, ids, settings)
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
        """Build an engine; the run ends where, in the block, a server dies or is silent."""
        limit_s = self.config.hint.watchdog.answer_s
        liveness = Liveness(limit_s=limit_s, on_fault=self.watchdog.end)
        liveness.add_servers([self.manager])
        with liveness.watching():
            yield self.builder.build(*how)


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

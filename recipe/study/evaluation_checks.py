"""Check an evaluation in seconds, before any process is started."""

from __future__ import annotations

from collections.abc import Sequence

from omegaconf import DictConfig

from recipe.hint.adapter.preflight import data
from recipe.hint.adapter.preflight.model import MODEL, Model, load_model
from recipe.hint.adapter.preflight.run import (
    check_reward,
    check_teacher,
    devices_line,
    lengths_line,
    model_line,
    model_warnings,
    resolved,
    seed_engines,
)
from recipe.hint.adapter.preflight.settings import check_values, read_sizes
from recipe.hint.command.aliases import given_settings
from recipe.hint.settings import (
    build_method,
    evaluated_method,
    read_texts,
    settings_of,
    unread_settings,
)
from recipe.problems.columns import ProblemFile
from recipe.run.checkpoints import MERGED, checkpoint_of, model_files
from recipe.run.config import MODEL_NODE, ROLLOUT, setting
from recipe.run.devices import check_machine
from recipe.run.errors import ConfigError
from recipe.run.paths import VAL, evaluation_folder, local_path
from recipe.run.resume import check_places
from recipe.study.draw import check_settings_unchanged, evaluation_settings
from recipe.study.evaluate import played_turns

_SAMPLING = ("temperature", "top_p", "top_k", "n")
_ADAPTER = f"{MODEL_NODE}.lora_adapter_path"


def idle_settings(config: DictConfig, argv: Sequence[str], *, asks: bool = False) -> list[str]:
    """Return a warning that names the settings given without effect; they are still as given.

    A command line with a method, an experiment or the order of the training data may be that of a
    run whose weights are evaluated: it gives what its method reads. A question (``asks``) is
    sampled as in training.
    """
    given = given_settings(argv)
    names = set(unread_settings(str(config.trainer.method), given, settings_of(config)))
    if not (asks or given.keys() & {"trainer.method", "experiment", "data.seed"}):
        names |= set(unread_settings(evaluated_method(config), given, settings_of(config)))
    of_training = "" if not asks else "val_kwargs."
    names |= given.keys() & {f"{ROLLOUT}.{of_training}{name}" for name in _SAMPLING}
    names |= given.keys() & {"data.val_max_samples"}
    idle = ", ".join(f"{name}={given[name]}" for name in given if name in names)
    read = ROLLOUT if asks else f"{ROLLOUT}.val_kwargs"
    return [f"warning: without effect here, where {read} samples: {idle}"] if idle else []


def preflight_evaluation(config: DictConfig, argv: Sequence[str] = ()) -> list[str]:
    """Check an evaluation's settings, machine, data and model; write nothing.

    ``rollout.seed`` is derived, where it is verl's.

    Returns:
        Lines that say what will run.
    """
    given, (config, settings) = config, resolved(config)
    method = build_method(config.trainer, settings)
    warnings = check_teacher(config, method, settings)
    data.check_given(config, (VAL, MODEL))
    check_values(config)
    read_sizes(config)
    if adapter := setting(config, _ADAPTER):
        raise ConfigError(
            f"{_ADAPTER}={adapter}: an evaluation serves the weights of {MODEL} alone; give a "
            f"checkpoint of the training, or a folder with the adapter merged"
        )
    check_reward(config, settings)
    unchecked = check_machine(config)
    check_places(config)
    files = data.read_files(config, VAL, by_source=True)  # a benchmark may be spread over files
    model, served = _served_model(config)
    lengths = data.check_lengths(config, model, val=files)
    data.check_conversations(config, method, model, read_texts(settings), files)
    folder = evaluation_folder(config)
    paths = [file.path for file in files]
    drawn_with = evaluation_settings(config, paths, played_turns(config)) | {"model": served}
    check_settings_unchanged(folder, drawn_with)
    seed_engines(given, config, argv)
    val = config.actor_rollout_ref.rollout.val_kwargs
    total = val.n * sum(len(file.problems) for file in files)
    plays = "without hints"
    if method.is_multi_turn:
        plays = f"conversations of {evaluated_method(config)}, scored by their last turn"
    has_samples = " (has samples)" if (folder / "samples").exists() else ""
    warnings += [*model_warnings(method, files), *lengths.warnings]
    return [
        f"evaluate  {plays}",
        model_line(served, model),
        *(f"problems  {file.summary()} of {', '.join(_sources(file))}" for file in files),
        f"samples   {val.n} of each, {total} in all, T={val.temperature} top_p={val.top_p}, "
        f"seed {settings.seed}",
        lengths_line(config, lengths, settings, method),
        devices_line(config),
        f"folder    {settings.run_dir}{has_samples}",
        *unchecked,
        *(f"warning: {line}" for line in warnings),
    ]


def _sources(file: ProblemFile) -> list[str]:
    return sorted({problem.data_source for problem in file.problems})


def _served_model(config: DictConfig) -> tuple[Model, str]:
    """Return the model, and the folder the replicas will read: a checkpoint's comes later."""
    path = str(setting(config, MODEL))
    checkpoint = checkpoint_of(path)
    if checkpoint is None:
        # As the launcher hands it on, and as the samples' settings have it.
        return load_model(config), local_path(path)
    files, has_weights = model_files(checkpoint)
    config = config.copy()
    config.actor_rollout_ref.model.path = str(files)
    return load_model(config, has_weights=has_weights), str(checkpoint / MERGED)

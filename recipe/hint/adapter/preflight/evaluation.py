"""Check an evaluation in seconds, before any process is started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.adapter.preflight import data, summary
from recipe.hint.adapter.preflight.folder import check_places
from recipe.hint.adapter.preflight.given import resolved
from recipe.hint.adapter.preflight.keys import check_unread
from recipe.hint.adapter.preflight.machine import check_machine
from recipe.hint.adapter.preflight.model import MODEL, Model, load_model
from recipe.hint.adapter.preflight.seeds import seed_engines
from recipe.hint.adapter.preflight.settings import check_settings, setting
from recipe.hint.adapter.preflight.teacher import check_teacher
from recipe.hint.adapter.preflight.turns import check_conversations
from recipe.hint.adapter.preflight.values import check_values
from recipe.hint.settings import build_method, read_texts
from recipe.problems.columns import ProblemFile
from recipe.run.errors import DataError
from recipe.run.paths import VAL, local_path
from recipe.study.evaluation.draw import check_settings_unchanged, evaluation_settings
from recipe.study.evaluation.play import played_turns
from recipe.study.evaluation.responses import evaluation_folder, response_path
from recipe.study.merging import MERGED, checkpoint_of, model_files


def preflight_evaluation(config: DictConfig, argv: Sequence[str] = ()) -> list[str]:
    """Check an evaluation's settings, machine, data and model; write nothing.

    ``rollout.seed`` is derived, where it is verl's.

    Returns:
        Lines that say what will run.
    """
    given, (config, settings) = config, resolved(config)
    method = build_method(config.trainer, settings)
    silent = check_teacher(config, method, settings)
    data.check_given(config, (VAL, MODEL))
    check_unread(config, settings)
    check_values(config)
    check_settings(config)
    unchecked = check_machine(config)
    check_places(config)
    files = data.read_files(config, VAL)
    _check_benchmarks(files)
    model, served = _served_model(config)
    lengths = data.check_lengths(config, model, val=files)
    check_conversations(config, method, model, read_texts(settings), files)
    folder = evaluation_folder(config)
    paths = [file.path for file in files]
    drawn_with = evaluation_settings(config, paths, played_turns(config)) | {"model": served}
    check_settings_unchanged(folder, drawn_with)
    seed_engines(given, config, argv)
    val = config.actor_rollout_ref.rollout.val_kwargs
    total = val.n * sum(len(file.problems) for file in files)
    sources = [sorted({problem.data_source for problem in file.problems}) for file in files]
    return [
        f"evaluate  {summary.evaluates(config, method)}",
        summary.model_line(served, model),
        *(
            f"problems  {file.summary()} of {', '.join(names)}"
            for file, names in zip(files, sources, strict=True)
        ),
        f"samples   {val.n} of each, {total} in all, T={val.temperature} top_p={val.top_p}, "
        f"seed {settings.seed}",
        summary.lengths_line(config, lengths, settings, method),
        summary.devices(config),
        f"folder    {settings.run_dir}{' (has samples)' if (folder / 'samples').exists() else ''}",
        *unchecked,
        *silent,
        *summary.oracles(method),
        *(f"warning: {warning}" for warning in lengths.warnings),
    ]


def _check_benchmarks(files: Sequence[ProblemFile]) -> None:
    """Check that ids and file names are unique; one benchmark may be spread over files."""
    names: dict[str, str] = {}
    for file in files:
        for row, problem in enumerate(file.problems):
            place, source = f"{file.path}: row {row}", problem.data_source
            name = response_path(Path(), source).name
            if names.setdefault(name, source) != source:
                raise DataError(
                    f"{place}: the data sources {source!r} and {names[name]!r} would share the "
                    f"file {name}; rename one"
                )
    data.check_unique_in_source(files)


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

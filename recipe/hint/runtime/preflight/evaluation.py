"""What can be known to go wrong with an evaluation, before any process is started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from recipe.hint.errors import DataError
from recipe.hint.evaluation.draw import check_settings_unchanged, evaluation_settings
from recipe.hint.evaluation.responses import evaluation_folder, response_path
from recipe.hint.runtime.merging import MERGED, checkpoint_of, model_files
from recipe.hint.runtime.preflight.data import (
    Data,
    DataFile,
    check_given,
    check_lengths,
    read_files,
)
from recipe.hint.runtime.preflight.folder import check_run_folder
from recipe.hint.runtime.preflight.machine import check_machine
from recipe.hint.runtime.preflight.model import Model, load_model
from recipe.hint.runtime.preflight.rewards import check_rewards
from recipe.hint.runtime.preflight.settings import check_sections, check_settings, setting
from recipe.hint.settings import read_settings

_VAL, _MODEL = "data.val_files", "actor_rollout_ref.model.path"
_SAMPLING = "actor_rollout_ref.rollout.val_kwargs"


def preflight_evaluation(config: DictConfig) -> list[str]:
    """Check an evaluation's settings, machine, data and model; write nothing.

    Returns:
        Lines that say what will run.

    Raises:
        ConfigError: On the first setting that cannot work, or that differs from the one that the
            samples in the run's folder were drawn with.
        DataError: On the first file that breaks the contract or does not fit.
    """
    config = OmegaConf.create(OmegaConf.to_container(config, resolve=True))
    check_sections(config)
    settings = read_settings(OmegaConf.to_container(config.hint))
    check_given(config, (_VAL, _MODEL))
    check_settings(config)
    check_rewards(config, settings)
    unchecked = check_machine(config)
    check_run_folder(config)
    files = read_files(config, _VAL)
    _check_ids(files)
    model, served = _model(config)
    lengths = check_lengths(config, Data([], files), model, None)
    folder = evaluation_folder(config)
    drawn_with = evaluation_settings(config, [file.path for file in files]) | {"model": served}
    check_settings_unchanged(folder, drawn_with)
    size = "size unknown"
    if model.num_parameters is not None:
        size = f"{model.num_parameters / 1e6:,.2f} M parameters"
    num_samples = setting(config, f"{_SAMPLING}.n")
    total = num_samples * sum(len(file.problems) for file in files)
    shape = [setting(config, f"trainer.{name}") for name in ("nnodes", "n_gpus_per_node", "device")]
    return [
        "evaluate  without hints",
        f"model     {served}: {size}, context {model.context} tokens",
        *(f"problems  {file.path}: {len(file.problems)} of {_sources(file)}" for file in files),
        f"samples   {num_samples} of each, {total} in all, "
        f"T={setting(config, f'{_SAMPLING}.temperature')} "
        f"top_p={setting(config, f'{_SAMPLING}.top_p')}, seed {settings.seed}",
        f"lengths   prompts up to {lengths.longest_prompt}, answers up to "
        f"{setting(config, 'data.max_response_length')} tokens",
        f"devices   {shape[0]} x {shape[1]} {shape[2]}",
        f"folder    {settings.run_dir}{' (has samples)' if (folder / 'samples').exists() else ''}",
        *unchecked,
        *(f"warning: {warning}" for warning in lengths.warnings),
    ]


def _model(config: DictConfig) -> tuple[Model, str]:
    """The model, and the folder that the replicas will read: a checkpoint's is still to be made."""
    path = str(setting(config, _MODEL))
    checkpoint = checkpoint_of(path)
    if checkpoint is None:
        # As the launcher hands it on, and as the samples' settings have it.
        return load_model(config), str(Path(path).absolute()) if Path(path).exists() else path
    files, has_weights = model_files(checkpoint)
    there = OmegaConf.merge(config, OmegaConf.from_dotlist([f"{_MODEL}={files}"]))
    assert isinstance(there, DictConfig)
    return load_model(there, has_weights=has_weights), str(checkpoint / MERGED)


def _sources(file: DataFile) -> str:
    return ", ".join(sorted({problem.data_source for problem in file.problems}))


def _check_ids(files: Sequence[DataFile]) -> None:
    """One benchmark may be spread over files; its ids are unique, and so is its file's name."""
    first: dict[tuple[str, str], str] = {}
    names: dict[str, str] = {}
    for file in files:
        for row, problem in enumerate(file.problems):
            place = f"{file.path}: row {row}"
            if not problem.data_source:
                raise DataError(f"{place}, column `data_source`: empty; it names the benchmark")
            key = (problem.data_source, problem.id)
            if key in first:
                raise DataError(
                    f"{first[key]} and {place} have the same `data_source` {key[0]!r} and the same "
                    f"id {key[1]!r} (`extra_info.index`); give one of them another"
                )
            first[key] = place
            name = response_path(Path(), problem.data_source).name
            if names.setdefault(name, problem.data_source) != problem.data_source:
                raise DataError(
                    f"{place}: the data sources {problem.data_source!r} and {names[name]!r} would "
                    f"share the file {name}; rename one"
                )

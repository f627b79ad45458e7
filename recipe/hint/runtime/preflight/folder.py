"""Where a run writes: names, folders, room on the disk, and the run that a folder holds."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from recipe.hint.errors import ConfigError
from recipe.hint.report.runs import read_rows
from recipe.hint.runtime.checkpoints import (
    check_resumable,
    check_undamaged,
    complete_steps,
    digests_of,
    resume_step,
    said_of,
    step_folder,
    step_of,
)
from recipe.hint.runtime.preflight.settings import ACTOR, ROLLOUT, leaves, names, setting

# File systems allow 255 bytes; backends append something to the name.
_LONGEST_NAME = 200
_BYTES_PER_NUMBER = 4
_ROOT, _MODEL = "trainer.default_local_dir", "actor_rollout_ref.model.path"
_DEVICES = "trainer.nnodes x trainer.n_gpus_per_node"
_KEPT = ("trainer.max_actor_ckpt_to_keep", "trainer.max_critic_ckpt_to_keep")


# A setting, or a section with all that is in it: what is sampled, what is trained on, and how.
DEFINES = (
    *names("trainer", "method hint_accuracy_min_threshold hint_accuracy_max_threshold"),
    *("trainer.v1.trainer_mode", "hint", "algorithm", _MODEL),
    *names("data", "train_files seed shuffle train_max_samples train_batch_size"),
    # The order of one seed is another with processes of the loader, and so is its state.
    *names("data", "max_prompt_length max_response_length dataloader_num_workers"),
    *names(ROLLOUT, "n prompt_length response_length temperature top_p top_k"),
    *names(ACTOR, "optim strategy ppo_mini_batch_size ppo_epochs loss_agg_mode clip_ratio"),
    *names(ACTOR, "clip_ratio_low clip_ratio_high use_kl_loss kl_loss_coef entropy_coeff"),
    *(*names(ACTOR, "loss_scale_factor policy_loss"), *names("critic", "optim ppo_epochs")),
    # verl writes one file per trainer process and can be resumed only with as many.
    _DEVICES,
)
# Among them, but not of the run: where it writes, how long it waits, how a service is reached.
OPERATION = (
    "algorithm.filter_groups.max_num_gen_batches",
    *names("hint", "run_dir watchdog max_in_flight"),
    *names("hint.verify", "num_workers timeout_s audit"),
    *names("hint.teacher", "base_url api_key_env num_parallel timeout_s num_retries backoff_s"),
    *names("hint.teacher", "max_wait_s budget_tokens cache_dir"),
)
# Not reported: they concern this start alone, or are compared as a product (nodes and GPUs).
_UNTOLD = (
    *("preflight_only", "hint.run_dir", _ROOT, f"{ROLLOUT}.trace"),
    *names("trainer", "experiment_name nnodes n_gpus_per_node resume_mode resume_from_path"),
)
_SHOWN = 4
_ONLY = "trainer.val_only"
_LOADER = "data.dataloader_num_workers"


def check_run_folder(config: DictConfig) -> str:
    """Make sure that a training can write where it wants to, and can go on from what is there.

    Returns:
        What the run finds there: nothing, or the step it resumes after.

    Raises:
        ConfigError: If a name or folder cannot be used, or holds checkpoints and no whole one.
    """
    check_places(config)
    folder = Path(setting(config, "hint.run_dir"))
    if (folder / "evaluation").is_dir() and not (folder / "config.yaml").exists():
        raise ConfigError(
            f"hint.run_dir={folder} holds an evaluation, which is not of the weights that this run "
            f"would train; give another trainer.experiment_name, or move the folder away"
        )
    return _start_of(config)


def check_steps_left(config: DictConfig, num_steps: int) -> None:
    """Refuse to resume after a step that the run does not have.

    Raises:
        ConfigError: Naming the step.
    """
    step = _resumed(config)
    if step > num_steps:
        raise ConfigError(
            f"trainer.total_training_steps={num_steps}, and the run would resume after step "
            f"{step}; give more steps, or another trainer.experiment_name"
        )


def is_finished(config: DictConfig) -> bool:
    """Return whether a run's last step is saved and logged, so that nothing is left to train."""
    last = setting(config, "trainer.total_training_steps")
    is_training = setting(config, "trainer.resume_mode") == "auto" and not setting(config, _ONLY)
    if not is_training or _resumed(config) != last:
        return False
    rows = read_rows(Path(setting(config, "hint.run_dir")) / "metrics.jsonl")
    return any(row["step"] == last and "hint/prompts" in row for row in rows)


def _resumed(config: DictConfig) -> int:
    """Return the step that a run resumes after; 0 for the beginning."""
    mode = setting(config, "trainer.resume_mode")
    if mode == "resume_path":
        return step_of(Path(str(setting(config, "trainer.resume_from_path")))) or 0
    return (resume_step(setting(config, _ROOT)) or 0) if mode == "auto" else 0


def check_places(config: DictConfig) -> None:
    """Make sure that a run can write where it wants to; nothing stays behind.

    Raises:
        ConfigError: If a name or folder cannot be used.
    """
    # Each names a folder: the run's, and those of the backends of trainer.logger.
    for name in names("trainer", "experiment_name project_name"):
        check_name(name, setting(config, name))
    for name in ("hint.run_dir", _ROOT, "hint.teacher.cache_dir"):
        check_folder(name, setting(config, name))
    for name in names("trainer", "rollout_data_dir validation_data_dir"):
        if setting(config, name) is not None:
            check_folder(name, setting(config, name))


def _start_of(config: DictConfig) -> str:
    root, mode = Path(setting(config, _ROOT)), setting(config, "trainer.resume_mode")
    path = setting(config, "trainer.resume_from_path")
    if path is not None and mode != "resume_path":
        raise ConfigError(
            f"trainer.resume_from_path={path} would not be read with trainer.resume_mode={mode}; "
            f"give trainer.resume_mode=resume_path, or drop the path"
        )
    if mode == "resume_path":
        folder = Path(str(path)).absolute()
        if not folder.is_dir() or step_of(folder) is None:
            raise ConfigError(
                f"trainer.resume_from_path={path} must be an existing folder global_step_N when "
                f"trainer.resume_mode=resume_path"
            )
        check_undamaged(folder)
        is_own = folder.resolve().parent == root.resolve()
        _check_loader(config, folder)
        return f"resumes from {path}{_check_unchanged(config, folder) if is_own else ''}"
    if not root.is_dir():
        return "new"
    if mode == "auto":
        check_resumable(root)
    step = resume_step(root)
    if step is None:
        return "exists, no whole checkpoint: starts at step 1"
    if mode == "disable":
        return f"holds step {step}, trainer.resume_mode=disable: starts at step 1"
    return f"resumes after step {step}{_check_unchanged(config, step_folder(root, step))}"


def _check_loader(config: DictConfig, checkpoint: Path) -> None:
    """Refuse another number of loader processes: torchdata cannot take up its place in the data."""
    before = checkpoint.resolve().parent.parent / "config.yaml"
    given = _values(_read(before)).get(_LOADER) if before.is_file() else None
    now = setting(config, _LOADER)
    if given not in (None, now):
        raise ConfigError(
            f"trainer.resume_from_path={checkpoint} is of a run with {_LOADER}={given}, and with "
            f"{now} torchdata cannot find its place in the data again; give {_LOADER}={given}"
        )


def _check_unchanged(config: DictConfig, checkpoint: Path) -> str:
    """Refuse to go on with other data than a checkpoint of this run was trained on.

    Returns:
        What the run's folder has lost since, to stand behind a sentence.
    """
    said = said_of(checkpoint)
    before = said.get("train_files")
    for path, digest in digests_of(setting(config, "data.train_files") or []).items():
        if before and digest not in before:
            raise ConfigError(
                f"data.train_files={path} has another content than when {checkpoint} was saved, "
                f"which goes on at a place in it: give the file as it was then, another "
                f"trainer.experiment_name, or trainer.resume_mode=disable to begin anew"
            )
    told = []
    for name, expected in {"records.jsonl": 0, **said.get("lines", {})}.items():
        path = Path(setting(config, "hint.run_dir")) / name
        if not path.is_file():
            told.append(f"; {name} of the steps before is gone")
        elif (found := path.stat().st_size) < expected:
            told.append(f"; {name} has lost {expected - found} bytes of the steps before")
    return "".join(told)


def check_name(name: str, value: object) -> None:
    """Refuse a value that is not one part of a path."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ConfigError(f"{name}={value!r} must be a name")
    text = str(value)
    problems = {
        "is no name": not text.strip(" ."),
        "is a path, not a name": "/" in text or "\\" in text,
        "begins or ends with a space or holds a character that cannot be printed": (
            text != text.strip() or not text.isprintable()
        ),
        f"has more than {_LONGEST_NAME} bytes": len(text.encode()) > _LONGEST_NAME,
    }
    for problem, is_there in problems.items():
        if is_there:
            raise ConfigError(
                f"{name}={text!r} {problem}; it names one folder: give letters, digits, - and _, "
                f"and hint.run_dir=FOLDER to put the run elsewhere"
            )


def check_folder(name: str, value: object) -> None:
    """Refuse a value that is no folder, or one that nothing can be written to."""
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{name}={value!r} must be the path of a folder")
    if not value.isprintable() or value != value.strip():
        raise ConfigError(
            f"{name}={value!r} begins or ends with a space or holds a character that cannot be "
            f"printed; give the path of a folder"
        )
    if "://" in value:
        raise ConfigError(f"{name}={value} is an address; give a folder of this machine's disks")
    if value.startswith("~"):
        raise ConfigError(
            f"{name}={value}: no shell has replaced the ~; give the whole path, like "
            f"{Path(value).expanduser()}"
        )
    place = _nearest_folder(Path(value))
    if not place.is_dir():
        raise ConfigError(f"{name}={value}: {place} is a file, not a folder; choose another path")
    try:
        # Not os.access: for root it returns true on file systems that still refuse.
        os.rmdir(tempfile.mkdtemp(prefix=".preflight-", dir=place))
    except OSError as error:
        raise ConfigError(
            f"{name}={value}: no folder can be made in {place} ({error.strerror}); "
            f"choose a place that you may write to"
        ) from error


def checkpoint_bytes(
    policy: int | None, critic: int | None, *, has_target: bool, is_frozen: bool = False
) -> int | None:
    """Return the size of a checkpoint: weights and Adam's two moments, and a critic's slow target.

    Args:
        policy: Number of parameters; ``None``: unknown, and so is the size.
        critic: Number of parameters; 0 without a critic, ``None``: unknown and not counted.
        has_target: Whether the critic has a slow target.
        is_frozen: Whether a LoRA adapter is trained instead, whose own size does not count.
    """
    if policy is None:
        return None
    numbers = (1 if is_frozen else 3) * policy + (4 if has_target else 3) * (critic or 0)
    return _BYTES_PER_NUMBER * numbers


def check_disk(config: DictConfig, checkpoint: int | None, num_steps: int) -> str:
    """Make sure that the checkpoints still to be written, each of so many bytes, fit the disk.

    Returns:
        What they will take, or that none are written.

    Raises:
        ConfigError: If they do not fit, or if one alone would be kept.
    """
    every = setting(config, "trainer.save_freq")
    if every < 1:
        return "no checkpoints (trainer.save_freq < 1)"
    for name in _KEPT:
        if setting(config, name) == 1:
            raise ConfigError(
                f"{name}=1: verl deletes the weights of the last checkpoint before the new one is "
                f"whole, so a run killed in between has none to resume from; give 2, which takes "
                f"the same room on the disk, or null for all"
            )
    root = Path(setting(config, _ROOT))
    resumed = _resumed(config)
    present = [
        step for step in complete_steps(root) if (step_folder(root, step) / "actor").is_dir()
    ]
    num_new = -(-num_steps // every) - resumed // every if resumed < num_steps else 0
    if keep := setting(config, _KEPT[0]):  # older ones go; what is resumed from stays beside these
        older = sum(step <= resumed for step in present)
        num_new = min(num_new, max(1, keep + bool(older) - older))
    plural = "s" * (num_new != 1)
    what = f"{num_new} {'more ' * (resumed > 0)}checkpoint{plural}, one every {every} steps"
    if checkpoint is None:
        return f"{what}; size unknown"
    needed_gb = num_new * checkpoint / 1e9
    free_gb = shutil.disk_usage(_nearest_folder(root)).free / 1e9
    if needed_gb > free_gb:
        raise ConfigError(
            f"{_ROOT}={root}: {num_new} checkpoint{plural} of {checkpoint / 1e9:.3g} GB need "
            f"{needed_gb:.3g} GB, the disk has {free_gb:.3g} GB free; lower "
            f"trainer.max_actor_ckpt_to_keep, raise trainer.save_freq, or choose another disk with "
            f"hint.run_dir"
        )
    return f"{what}: {needed_gb:.3g} GB of {free_gb:.3g} GB free"


def check_same_run(config: DictConfig) -> list[str]:
    """Compare a run's settings with those that the run in its folder began with.

    A folder without ``config.yaml``, or without a record or checkpoint, holds no run yet; with
    ``trainer.resume_mode=disable`` another run may begin there. Settings that only one of the two
    has, of another version, are not compared.

    Returns:
        A line that names the settings that changed and do not make another run, or nothing.
    """
    root = Path(setting(config, "hint.run_dir"))
    records = root / "records.jsonl"
    has_begun = any(Path(setting(config, _ROOT)).glob("global_step_*"))
    has_begun |= records.is_file() and records.stat().st_size > 0
    is_resumed = setting(config, "trainer.resume_mode") != "disable"
    if not (has_begun and is_resumed and (root / "config.yaml").exists()):
        return []
    before, now = _values(_read(root / "config.yaml")), _values(OmegaConf.to_container(config))
    changed = [
        name
        for name in before
        if name in now and before[name] != now[name] and not _is_part(name, _UNTOLD)
    ]
    others = [name for name in changed if _is_part(name, DEFINES) and not _is_part(name, OPERATION)]
    if others:
        raise ConfigError(
            f"hint.run_dir={root} holds a run with "
            f"{_join('; ', [f'{name}={before[name]}, now {now[name]}' for name in others])}: give "
            f"the old value to resume it, another trainer.experiment_name to begin a run of its "
            f"own, or trainer.resume_mode=disable to start over in this folder"
        )
    listed = _join(", ", [f"{name} {before[name]} -> {now[name]}" for name in changed])
    return [f"changed   since the run began: {listed}"] if changed else []


def _nearest_folder(path: Path) -> Path:
    """Return the path itself or the closest parent that exists."""
    path = path.absolute()
    return next((each for each in (path, *path.parents) if os.path.lexists(each)), path)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        node = yaml.safe_load(path.read_text(encoding="utf-8"))
        problem = "" if isinstance(node, dict) else "it holds no settings"
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        node, problem = {}, " ".join(str(error).split())[:120]
    if problem:
        raise ConfigError(
            f"{path} cannot be read ({problem}), so nothing says which run its folder holds; give "
            f"another trainer.experiment_name, or take the file away"
        )
    return node


def _values(node: Any) -> dict[str, Any]:
    """Map dotted names to values; paths are absolute, and one file is a list of one."""
    flat = dict(leaves(node))
    for name in ("data.train_files", "data.val_files"):
        if name in flat:
            files = [flat[name]] if isinstance(flat[name], str) else flat[name] or []
            flat[name] = [str(Path(file).resolve()) for file in files]
    for name in (_MODEL, "hint.prompts", "hint.teacher.cache_dir"):
        value = flat.get(name)
        # A model that is no folder is a name on the hub.
        if isinstance(value, str) and (name != _MODEL or Path(value).exists()):
            flat[name] = str(Path(value).resolve())
    nodes, devices = (flat.get(f"trainer.{name}") for name in ("nnodes", "n_gpus_per_node"))
    if isinstance(nodes, int) and isinstance(devices, int):
        flat[_DEVICES] = nodes * devices
    return flat


def _is_part(name: str, of: Sequence[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in of)


def _join(separator: str, changes: Sequence[str]) -> str:
    more = f" and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return separator.join(changes[:_SHOWN]) + more

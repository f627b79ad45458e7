"""Where a run writes: folders, room on the disk, and whether it goes on with what is there."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from recipe.run.checkpoints import (
    check_resumable,
    check_undamaged,
    complete_steps,
    digests_of,
    is_within,
    model_digest,
    resume_step,
    said_of,
    step_folder,
    step_of,
)
from recipe.run.config import (
    ACTOR,
    FUNCTION,
    KWARGS,
    MODEL_NODE,
    ROLLOUT,
    files_of,
    leaves,
    names,
    setting,
    text_of,
)
from recipe.run.errors import ConfigError, one_line
from recipe.run.paths import CHECKPOINTS, DATA_FILES, FOLDERS, SOURCES, TRAIN
from recipe.run.typed import read_json, read_yaml

_LONGEST_NAME = 200  # file systems allow 255 bytes; backends append something
_KEPT = names("trainer", "max_actor_ckpt_to_keep max_critic_ckpt_to_keep")
_MODEL = f"{MODEL_NODE}.path"
_OTHER = "give another trainer.experiment_name"
# verl writes a file per trainer process, and can be resumed only with as many.
_DEVICES = "trainer.nnodes x trainer.n_gpus_per_node"
# Sections of the user's own keys, compared as a whole: what is left out is a change too.
_OPEN = (
    "data.apply_chat_template_kwargs",
    "hint.teacher.body",
    KWARGS,
    f"{FUNCTION}.reward_kwargs",
)
# Of this start alone, or compared otherwise: no change worth a word.
_UNTOLD = (
    *("preflight_only", f"{ROLLOUT}.seed", *FOLDERS, *SOURCES, *DATA_FILES),
    f"{ROLLOUT}.prometheus.served_model_name",  # the path of the model
    *names("trainer", "experiment_name resume_mode resume_from_path"),
)
# What must be as it was for a run to be resumed, beside the settings of its method: a setting, or a
# section with all that is in it. Files and models are compared by content.
SAME = (
    *names("trainer", "method v1.trainer_mode"),
    *names("algorithm", "adv_estimator use_kl_in_reward kl_ctrl gamma lam"),
    *names("algorithm", "norm_adv_by_std_in_grpo rollout_correction filter_groups.enable"),
    *(FUNCTION, KWARGS, "reward.reward_manager.name"),
    *names(MODEL_NODE, "path lora_rank lora_alpha target_modules lora_adapter_path"),
    f"{MODEL_NODE}.custom_chat_template",
    *names("data", "apply_chat_template_kwargs train_files seed shuffle train_max_samples"),
    # The order of one seed is another with processes of the loader, and so is its state.
    *names("data", "train_batch_size max_prompt_length max_response_length dataloader_num_workers"),
    *names(ROLLOUT, "n prompt_length response_length temperature top_p top_k"),
    *names(ACTOR, "optim strategy ppo_mini_batch_size ppo_epochs loss_agg_mode clip_ratio"),
    *names(ACTOR, "clip_ratio_low clip_ratio_high use_kl_loss kl_loss_coef entropy_coeff"),
    *names(ACTOR, "loss_scale_factor policy_loss fsdp_config.fsdp_size"),
    *names("critic", "optim ppo_epochs fsdp.fsdp_size"),
    *names("hint", "seed seeded_sampling max_level source prompts style max_tokens temperature"),
    *names("hint", "top_p attempts too_long conditioning leak_policy dropout_share prefix"),
    *names("hint.teacher", "model body num_ladders"),
    *names("hint.verify", "answer_format program_cpu_s program_memory_mib"),
)


def check_run_folder(config: DictConfig) -> str:
    """Make sure that a training can write where it wants to, and can go on from what is there.

    Returns:
        What the run finds there: nothing, or the step it resumes after.

    Raises:
        ConfigError: If a name or folder cannot be used, or holds checkpoints and no complete one.
    """
    check_places(config)
    run, root = Path(setting(config, "hint.run_dir")), Path(setting(config, CHECKPOINTS))
    if (run / "evaluation").is_dir() and not (run / "config.yaml").exists():
        raise ConfigError(
            f"hint.run_dir={run} holds an evaluation, which is not of the weights that this run "
            f"would train; {_OTHER}"
        )
    mode, own_step = setting(config, "trainer.resume_mode"), None
    if root.is_dir():
        if mode == "auto":
            check_resumable(root)
        own_step = resume_step(root)
    if mode == "resume_path":
        path = setting(config, "trainer.resume_from_path")
        folder = Path(str(path)).absolute()
        if not folder.is_dir() or step_of(folder) is None:
            raise ConfigError(f"trainer.resume_from_path={path}: no such folder global_step_N")
        check_undamaged(folder)
        if own_step is not None and not is_within(root, folder):
            raise ConfigError(
                f"hint.run_dir={run} has step {own_step} of a run that trainer.resume_from_path="
                f"{path} would begin again; go on with trainer.resume_mode=auto, or {_OTHER}"
            )
        return f"resumes from {path}"
    if own_step is None:
        return "exists, no complete checkpoint: starts at step 1" if root.is_dir() else "new"
    if not (run / "config.yaml").exists() and not root.resolve().is_relative_to(run.resolve()):
        raise ConfigError(
            f"{CHECKPOINTS}={root} holds step {own_step} of another run; give that run's "
            f"hint.run_dir to go on with it, or another {CHECKPOINTS}"
        )
    if mode == "disable":
        return f"holds step {own_step}, trainer.resume_mode=disable: starts at step 1"
    return f"resumes after step {own_step}"


def resumed_step(config: DictConfig) -> int:
    """Return the step that a run resumes after; 0 for the beginning."""
    checkpoint = _checkpoint(config)
    return (step_of(checkpoint) or 0) if checkpoint else 0


def _checkpoint(config: DictConfig) -> Path | None:
    mode, root = setting(config, "trainer.resume_mode"), setting(config, CHECKPOINTS)
    if mode == "resume_path":
        return Path(str(setting(config, "trainer.resume_from_path")))
    step = resume_step(root) if mode == "auto" else None
    return step_folder(root, step) if step else None


def is_finished(config: DictConfig) -> bool:
    """Return whether a run's last step is saved, logged and validated: nothing is left to do."""
    last = setting(config, "trainer.total_training_steps")
    is_training = setting(config, "trainer.resume_mode") == "auto"
    is_training = is_training and not setting(config, "trainer.val_only")
    if not is_training or resumed_step(config) != last:
        return False
    is_logged = any(row["step"] == last and "hint/prompts" in row for row in _metrics(config))
    return is_logged and not lacks_validation(config, last, last)


def lacks_validation(config: DictConfig, step: int, last: int) -> bool:
    """Return whether a run was to validate after a step and its metrics have no accuracy of it.

    A kill between the checkpoint of a step and its line of metrics leaves that.
    """
    every = setting(config, "trainer.test_freq")
    if every < 1 or (step % every and step < last):
        return False
    rows = (row for row in _metrics(config) if row["step"] == step)
    return not any(name.startswith("val-core/") for row in rows for name in row)


def _metrics(config: DictConfig) -> Iterator[dict[str, Any]]:
    path = Path(setting(config, "hint.run_dir")) / "metrics.jsonl"
    for line in path.read_text("utf-8").split("\n")[:-1] if path.is_file() else ():
        with contextlib.suppress(ValueError):  # a report says which line is damaged
            row = read_json(line)
            if isinstance(row, dict) and "step" in row:
                yield row


def check_same_run(config: DictConfig, own: Sequence[str] = ()) -> list[str]:
    """Compare a run's settings with those that the run in its folder began with.

    A setting that only one of the two has, of another version, is not compared.

    Args:
        config: The run's.
        own: Settings, or sections of them, that define the run beside :data:`SAME`: its method's.

    Returns:
        A line that names the settings that changed and do not make another run, or nothing.
    """
    root, checkpoint = Path(setting(config, "hint.run_dir")), _checkpoint(config)
    said = said_of(checkpoint) if checkpoint else {}
    digests = {TRAIN: said.get("train_files")}
    is_own = not checkpoint or is_within(setting(config, CHECKPOINTS), checkpoint)
    if is_own:
        digests[_MODEL] = said.get("model")
    for name, before in digests.items():
        value = setting(config, name)
        now: Any = model_digest(str(value)) if name == _MODEL else None
        now = now or [*digests_of(files_of(config, name)).values()]
        if before and now and now != before:
            raise ConfigError(
                f"{name}={text_of(value)} has another content than when {checkpoint} was saved: "
                f"give what it was then, or {_OTHER}"
            )
    records, settings = root / "records.jsonl", root / "config.yaml"
    has_begun = any(Path(setting(config, CHECKPOINTS)).glob("global_step_*"))
    has_begun |= records.is_file() and records.stat().st_size > 0
    is_resumed = setting(config, "trainer.resume_mode") != "disable"
    if not (is_own and has_begun and is_resumed and settings.exists()):
        return []
    try:
        before = OmegaConf.create(read_yaml(settings.read_text("utf-8")))
        was, now = _compared(before), _compared(config)
    except (ValueError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise ConfigError(
            f"{settings} cannot be read ({one_line(error, 120)}), so nothing says which run its "
            f"folder holds; {_OTHER}, or take the file away"
        ) from error
    changed = [key for key in was if key in now and not _is_equal(key, was[key], now[key])]
    same = [*SAME, _DEVICES, *own]
    heads = tuple(f"{name}." for name in same if name)
    by_content = {name for name, digest in digests.items() if digest}
    others = [key for key in changed if key in same or key.startswith(heads)]
    if others := [key for key in others if key not in by_content]:
        told = [f"{key}={text_of(was[key])}, now {text_of(now[key])}" for key in others]
        raise ConfigError(
            f"hint.run_dir={root} holds a run with {_join('; ', told)}: give the old value to "
            f"resume it, another trainer.experiment_name to begin a run of its own, or "
            f"trainer.resume_mode=disable to start over in this folder"
        )
    told = [
        f"{key} {text_of(was[key])} -> {text_of(now[key])}" for key in changed if key not in _UNTOLD
    ]
    return [f"changed   since the run began: {_join(', ', told)}"] if told else []


def _compared(config: Any) -> dict[str, Any]:
    """Return all settings by name; sections of the user's own keys as a whole."""
    flat = dict(leaves(OmegaConf.to_container(config)))
    flat = {key: value for key, value in flat.items() if not key.startswith(_OPEN)}
    for name in _OPEN:
        value = setting(config, name) or {}
        flat[name] = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
    devices = (flat.pop(f"trainer.{key}", None) for key in ("nnodes", "n_gpus_per_node"))
    nodes, each = devices
    return flat | ({_DEVICES: nodes * each} if isinstance(nodes, int) and each else {})


def _is_equal(name: str, old: Any, new: Any) -> bool:
    """Compare two values; a path is equal to where what it named has been moved to."""
    if name not in (*SOURCES, *DATA_FILES):
        return old == new
    olds, news = (list(each) if isinstance(each, list) else [each] for each in (old, new))
    return len(olds) == len(news) and all(map(_is_moved, olds, news))


def _is_moved(old: Any, new: Any) -> bool:
    if None in (old, new):
        return old == new
    before, now = (Path(str(each)).expanduser().resolve() for each in (old, new))
    return before == now or (before.name == now.name and not before.exists())


def _join(separator: str, changes: list[str]) -> str:
    more = f" and {len(changes) - 4} more" if len(changes) > 4 else ""
    return separator.join(changes[:4]) + more


def check_places(config: DictConfig) -> None:
    """Make sure that a run can write where it wants to; nothing stays behind."""
    # Each names a folder: the run's, and those of the backends of trainer.logger.
    for name in names("trainer", "experiment_name project_name"):
        check_name(name, setting(config, name))
    for name in FOLDERS:
        if setting(config, name) is not None and not name.startswith("hint.teacher"):
            check_folder(name, setting(config, name))


def check_name(name: str, value: object) -> None:
    """Refuse a value that is not one part of a path."""
    text = str(value)
    is_name = text.strip(" .") and text == text.strip() and text.isprintable()
    if not is_name or "/" in text or len(text.encode()) > _LONGEST_NAME:
        raise ConfigError(
            f"{name}={text!r} is no name of one folder: give at most {_LONGEST_NAME} letters, "
            f"digits, - and _, and hint.run_dir=FOLDER to put the run elsewhere"
        )


def check_folder(name: str, value: object) -> None:
    """Refuse a value that is not a folder, or one that nothing can be written to."""
    if not isinstance(value, str) or not value.strip() or "://" in value:
        raise ConfigError(f"{name}={value} must be the path of a folder on this machine's disks")
    try:
        # Not os.access: for root it returns true on file systems that still refuse.
        os.rmdir(tempfile.mkdtemp(prefix=".preflight-", dir=_nearest_folder(Path(value))))
    except OSError as error:
        raise ConfigError(
            f"{name}={value}: no folder can be made there ({one_line(error)}); choose another place"
        ) from error


def checkpoint_bytes(
    config: DictConfig, policy: int | None, critic: int | None, *, has_target: bool
) -> int | None:
    """Return the size of a checkpoint: weights and Adam's two moments, and a critic's slow target.

    verl keeps weights and moments in ``model_dtype``; the slow target is in float32.

    Args:
        config: The run's; the size of a LoRA adapter does not count.
        policy: Number of parameters; ``None``: unknown, and so is the size.
        critic: Number of parameters; 0 without a critic, ``None``: unknown and not counted.
        has_target: Whether the critic has a slow target.
    """
    if policy is None:
        return None
    from verl.utils.torch_dtypes import PrecisionType

    of_policy, of_critic = (
        PrecisionType.to_dtype(setting(config, f"{name}.model_dtype")).itemsize
        for name in (f"{ACTOR}.fsdp_config", "critic.fsdp")
    )
    copies = 1 if setting(config, f"{MODEL_NODE}.lora_rank") else 3
    return copies * of_policy * policy + (3 * of_critic + 4 * has_target) * (critic or 0)


def check_disk(
    config: DictConfig, checkpoint: int | None, num_steps: int, *, has_critic: bool = False
) -> str:
    """Make sure that the checkpoints still to be written, each of so many bytes, fit the disk.

    Returns:
        What they will take, or that none are written.
    """
    every, root = setting(config, "trainer.save_freq"), Path(setting(config, CHECKPOINTS))
    if setting(config, "trainer.val_only") or every < 1:
        return "no checkpoints"
    kept, of_critic = (setting(config, name) for name in _KEPT)
    if 1 in (kept, of_critic) or (has_critic and kept != of_critic):
        raise ConfigError(
            f"{_KEPT[0]}={kept} and {_KEPT[1]}={of_critic}: verl deletes the last checkpoint "
            f"before the new one is complete, and a policy without its critic cannot be resumed; "
            f"give both the same number of at least 2, or null for all"
        )
    resumed = resumed_step(config)
    present = [
        step for step in complete_steps(root) if (step_folder(root, step) / "actor").is_dir()
    ]
    num_new = -(-num_steps // every) - resumed // every if resumed < num_steps else 0
    if kept:  # older ones go; what is resumed from stays beside these
        older = sum(step <= resumed for step in present)
        num_new = min(num_new, max(1, kept + bool(older) - older))
    plural = "s" * (num_new != 1)
    what = f"{num_new} {'more ' * (resumed > 0)}checkpoint{plural}, one every {every} steps"
    if checkpoint is None:
        return f"{what}; size unknown"
    needed_gb = num_new * checkpoint / 1e9
    free_gb = shutil.disk_usage(_nearest_folder(root)).free / 1e9
    if needed_gb > free_gb:
        raise ConfigError(
            f"{CHECKPOINTS}={root}: {num_new} checkpoint{plural} of {checkpoint / 1e9:.3g} GB need "
            f"{needed_gb:.3g} GB, the disk has {free_gb:.3g} GB free; lower {_KEPT[0]}, raise "
            f"trainer.save_freq, or choose another disk with hint.run_dir"
        )
    return f"{what}: {needed_gb:.3g} GB of {free_gb:.3g} GB free"


def _nearest_folder(path: Path) -> Path:
    """Return the path itself or the closest parent that exists."""
    path = path.absolute()
    return next((each for each in (path, *path.parents) if os.path.lexists(each)), path)

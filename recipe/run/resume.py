"""Where a run writes, and whether it goes on with what is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from recipe.run.checkpoints import check_undamaged, is_within, resume_step, step_folder, step_of
from recipe.run.config import (
    ACTOR,
    FUNCTION,
    KWARGS,
    MODEL_NODE,
    ROLLOUT,
    check,
    leaves,
    names,
    setting,
)
from recipe.run.paths import CHECKPOINTS, DATA_FILES, FOLDERS, SOURCES
from recipe.run.run_folder import accuracies, read_rows

_KEPT = names("trainer", "max_actor_ckpt_to_keep max_critic_ckpt_to_keep")
_MODE, _FROM = names("trainer", "resume_mode resume_from_path")
# What must be as it was for a run to be resumed: a setting, or a section with all that is in it ...
_SAME = (
    # verl writes a file per trainer process, and can be resumed only with as many.
    *names("trainer", "method v1 nnodes n_gpus_per_node"),
    *names("trainer", "hint_accuracy_min_threshold hint_accuracy_max_threshold"),
    *("algorithm", "hint", FUNCTION, KWARGS, "reward.reward_manager.name"),
    *names("critic", "optim model.path"),
    *names(MODEL_NODE, "path lora_rank lora_alpha target_modules custom_chat_template"),
    # The order of one seed is another with processes of the loader, and so is its state.
    *names("data", "apply_chat_template_kwargs train_files seed shuffle dataloader_num_workers"),
    *names("data", "train_batch_size max_prompt_length max_response_length train_max_samples"),
    *names("data", "filter_overlong_prompts truncation"),
    *names(ROLLOUT, "n prompt_length temperature top_p top_k dtype"),
    *names(ACTOR, "optim strategy ppo_mini_batch_size ppo_epochs loss_agg_mode policy_loss"),
    *names(ACTOR, "clip_ratio_low clip_ratio_high use_kl_loss kl_loss_coef entropy_coeff"),
    *names(ACTOR, "fsdp_config.fsdp_size fsdp_config.dtype"),
)
# ... but for these.
_FREE = (
    *names("hint", "run_dir watchdog samples max_in_flight"),
    *names("hint.verify", "num_workers timeout_s wall_factor worker_memory_mib program_wall_s"),
    *names("hint.teacher", "base_url api_key_env num_parallel timeout_s num_retries cache_dir"),
)


def check_run_folder(config: DictConfig) -> str:
    """Make sure that a training can write and go on where it wants to; return what it finds."""
    check_places(config)
    kept = [setting(config, name) for name in _KEPT]
    check(
        1 not in kept,
        f"{' and '.join(_KEPT)} must be at least 2, or null for all: verl deletes the last "
        f"checkpoint before the new one is complete",
    )
    run, root = Path(setting(config, "hint.run_dir")), Path(setting(config, CHECKPOINTS))
    mode, own_step = setting(config, _MODE), resume_step(root)
    if mode == "auto" and own_step is not None:
        check_undamaged(step_folder(root, own_step))
    if mode == "resume_path":
        path = setting(config, _FROM)
        folder = Path(str(path)).absolute()
        is_there = folder.is_dir() and step_of(folder) is not None
        check(is_there, f"{_FROM}={path}: no such folder global_step_N")
        check_undamaged(folder)
        check(
            own_step is None or is_within(root, folder),
            f"hint.run_dir={run} has step {own_step} of a run that {_FROM}={path} would begin "
            f"again; go on with {_MODE}=auto, or give another trainer.experiment_name",
        )
        return f"resumes from {path}"
    if own_step is None:
        return "exists, no complete checkpoint: starts at step 1" if root.is_dir() else "new"
    check(
        (run / "config.yaml").exists() or root.resolve().is_relative_to(run.resolve()),
        f"{CHECKPOINTS}={root} holds step {own_step} of another run; give that run's hint.run_dir "
        f"to go on with it, or another {CHECKPOINTS}",
    )
    starts_over = f"holds step {own_step}, {_MODE}=disable: starts at step 1"
    return starts_over if mode == "disable" else f"resumes after step {own_step}"


def resumed_step(config: DictConfig) -> int:
    """Return the step that a run resumes after; 0 for the beginning."""
    checkpoint = _checkpoint(config)
    return (step_of(checkpoint) or 0) if checkpoint else 0


def _checkpoint(config: DictConfig) -> Path | None:
    mode, root = setting(config, _MODE), setting(config, CHECKPOINTS)
    if mode == "resume_path":
        return Path(str(setting(config, _FROM)))
    step = resume_step(root) if mode == "auto" else None
    return step_folder(root, step) if step else None


def is_finished(config: DictConfig) -> bool:
    """Return whether a run's last step is saved, logged and validated: nothing is left to do."""
    last = setting(config, "trainer.total_training_steps")
    is_training = setting(config, _MODE) == "auto" and not setting(config, "trainer.val_only")
    if not is_training or resumed_step(config) != last:
        return False
    rows = read_rows(Path(setting(config, "hint.run_dir")) / "metrics.jsonl")
    is_logged = any(row["step"] == last and "hint/prompts" in row for row in rows)
    return is_logged and not lacks_validation(config, last, last)


def lacks_validation(config: DictConfig, step: int, last: int) -> bool:
    """Return whether a kill cut off the validation that was to follow a step."""
    every = setting(config, "trainer.test_freq")
    if every < 1 or (step % every and step < last):
        return False
    rows = read_rows(Path(setting(config, "hint.run_dir")) / "metrics.jsonl")
    return not any(row["step"] == step and accuracies(row) for row in rows)


def check_same_run(config: DictConfig) -> None:
    """Refuse to resume a run with settings, of those in ``_SAME``, of another one.

    A setting that only one of the two has, of another version, is not compared.
    """
    checkpoint, root = _checkpoint(config), Path(setting(config, "hint.run_dir"))
    if checkpoint is None:
        return
    is_own = is_within(setting(config, CHECKPOINTS), checkpoint)
    if not (is_own and (root / "config.yaml").exists()):
        return
    same, free = (tuple(f"{name}." for name in each) for each in (_SAME, _FREE))
    was, now = _compared(OmegaConf.load(root / "config.yaml")), _compared(config)
    changed = [
        f"{key}={was[key]}, now {now[key]}"
        for key in was
        if key in now and was[key] != now[key]
        if f"{key}.".startswith(same) and not f"{key}.".startswith(free)
    ]
    check(
        not changed,
        f"hint.run_dir={root} holds a run with {'; '.join(changed[:4])}: give the old value to "
        f"resume it, another trainer.experiment_name to begin a run of its own, or {_MODE}=disable "
        f"to start over in this folder",
    )


def _compared(config: Any) -> dict[str, Any]:
    """Return all settings by name, and paths by their last part: a project may be moved."""
    flat = dict(leaves(OmegaConf.to_container(config)))
    for name in {*SOURCES, *DATA_FILES} & flat.keys():
        many = flat[name] if isinstance(flat[name], list) else [flat[name]]
        flat[name] = ", ".join(Path(str(each)).name for each in many)
    return flat


def check_places(config: DictConfig) -> None:
    """Make sure that a run can write where it wants to; nothing stays behind."""
    for name in FOLDERS:
        if setting(config, name) is not None and not name.startswith("hint.teacher"):
            check_folder(name, setting(config, name))


def check_folder(name: str, value: object) -> None:
    """Refuse a folder that cannot be written to."""
    path = Path(str(value)).absolute()
    there = next(each for each in (path, *path.parents) if each.exists())
    check(
        there.is_dir() and os.access(there, os.W_OK),
        f"{name}={value}: no folder can be made there; choose another place",
    )

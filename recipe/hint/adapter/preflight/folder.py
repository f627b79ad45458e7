"""Where a run writes: names, folders, room on the disk, and the run that a folder holds."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.same_run import check_taken_up, check_unchanged
from recipe.hint.adapter.preflight.settings import ACTOR, ROLLOUT, names, setting
from recipe.run.checkpoints import (
    check_resumable,
    check_undamaged,
    complete_steps,
    resume_step,
    step_folder,
    step_of,
)
from recipe.run.errors import ConfigError
from recipe.run.paths import CHECKPOINTS
from recipe.run.rows import accuracies, read_rows

# File systems allow 255 bytes; backends append something to the name.
_LONGEST_NAME = 200
# Of ArCHer's replay buffer: a token id, and a transition's reward, step and three ends of texts.
_BYTES_PER_TOKEN, _BYTES_PER_TRANSITION = 4, 40
_KEPT = ("trainer.max_actor_ckpt_to_keep", "trainer.max_critic_ckpt_to_keep")
_ONLY = "trainer.val_only"


def check_run_folder(config: DictConfig, *, has_critic: bool = False) -> str:
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
    return _start_of(config, has_critic=has_critic)


def check_steps_left(config: DictConfig, num_steps: int) -> None:
    """Refuse to resume after a step that the run does not have.

    Raises:
        ConfigError: Naming the step.
    """
    step = resumed_step(config)
    if step > num_steps:
        raise ConfigError(
            f"trainer.total_training_steps={num_steps}, and the run would resume after step "
            f"{step}; give more steps, or another trainer.experiment_name"
        )


def is_finished(config: DictConfig) -> bool:
    """Return whether a run's last step is saved, logged and validated: nothing is left to do."""
    last = setting(config, "trainer.total_training_steps")
    is_training = setting(config, "trainer.resume_mode") == "auto" and not setting(config, _ONLY)
    if not is_training or resumed_step(config) != last:
        return False
    rows = read_rows(Path(setting(config, "hint.run_dir")) / "metrics.jsonl")
    is_logged = any(row["step"] == last and "hint/prompts" in row for row in rows)
    return is_logged and not lacks_validation(config, last, last)


def lacks_validation(config: DictConfig, step: int, last: int) -> bool:
    """Return whether a run was to validate after a step and its metrics have no accuracy of it.

    A kill between the checkpoint of a step and its line of metrics leaves that.

    Args:
        config: The run's.
        step: A step that is saved.
        last: The run's last step, after which it validates too.
    """
    every = setting(config, "trainer.test_freq")
    if every < 1 or (step % every and step < last):
        return False
    rows = read_rows(Path(setting(config, "hint.run_dir")) / "metrics.jsonl")
    return not any(row["step"] == step and accuracies(row) for row in rows)


def resumed_step(config: DictConfig) -> int:
    """Return the step that a run resumes after; 0 for the beginning."""
    mode = setting(config, "trainer.resume_mode")
    if mode == "resume_path":
        return step_of(Path(str(setting(config, "trainer.resume_from_path")))) or 0
    return (resume_step(setting(config, CHECKPOINTS)) or 0) if mode == "auto" else 0


def check_places(config: DictConfig) -> None:
    """Make sure that a run can write where it wants to; nothing stays behind.

    Raises:
        ConfigError: If a name or folder cannot be used.
    """
    # Each names a folder: the run's, and those of the backends of trainer.logger.
    for name in names("trainer", "experiment_name project_name"):
        check_name(name, setting(config, name))
    for name in ("hint.run_dir", CHECKPOINTS):
        check_folder(name, setting(config, name))
    for name in names("trainer", "rollout_data_dir validation_data_dir"):
        if setting(config, name) is not None:
            check_folder(name, setting(config, name))


def _start_of(config: DictConfig, *, has_critic: bool) -> str:
    root, mode = Path(setting(config, CHECKPOINTS)), setting(config, "trainer.resume_mode")
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
        if folder.resolve().parent == root.resolve():
            return f"resumes from {path}{check_unchanged(config, folder)}"
        own_step = resume_step(root) if root.is_dir() else None
        if own_step is not None:
            raise ConfigError(
                f"hint.run_dir={setting(config, 'hint.run_dir')} has step {own_step} of a run that "
                f"trainer.resume_from_path={path} would begin again; go on from it with "
                f"trainer.resume_mode=auto, or give another trainer.experiment_name"
            )
        check_taken_up(config, folder, has_critic=has_critic)
        return f"resumes from {path}"
    if not root.is_dir():
        return "new"
    if mode == "auto":
        check_resumable(root)
    step = resume_step(root)
    if step is None:
        return "exists, no whole checkpoint: starts at step 1"
    _check_own(Path(setting(config, "hint.run_dir")), root, step)
    if mode == "disable":
        return f"holds step {step}, trainer.resume_mode=disable: starts at step 1"
    return f"resumes after step {step}{check_unchanged(config, step_folder(root, step))}"


def _check_own(run: Path, root: Path, step: int) -> None:
    """Refuse checkpoints elsewhere than in the run's folder where no run has begun in that."""
    if not (run / "config.yaml").exists() and not root.resolve().is_relative_to(run.resolve()):
        raise ConfigError(
            f"{CHECKPOINTS}={root} holds step {step} of another run, and hint.run_dir={run} holds "
            f"none; give that run's hint.run_dir to go on with it, or another {CHECKPOINTS}"
        )


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
    """Refuse a value that is not a folder, or one that nothing can be written to."""
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
    config: DictConfig,
    policy: int | None,
    critic: int | None,
    *,
    has_target: bool,
    is_frozen: bool = False,
) -> int | None:
    """Return the size of a checkpoint: weights and Adam's two moments, and a critic's slow target.

    verl keeps weights and moments in ``model_dtype``; the slow target is in float32.

    Args:
        config: The run's.
        policy: Number of parameters; ``None``: unknown, and so is the size.
        critic: Number of parameters; 0 without a critic, ``None``: unknown and not counted.
        has_target: Whether the critic has a slow target.
        is_frozen: Whether a LoRA adapter is trained instead, whose own size does not count.
    """
    if policy is None:
        return None
    from verl.utils.torch_dtypes import PrecisionType

    of_policy, of_critic = (
        PrecisionType.to_dtype(setting(config, f"{name}.model_dtype")).itemsize
        for name in (f"{ACTOR}.fsdp_config", "critic.fsdp")
    )
    target = 4 if has_target else 0
    return (1 if is_frozen else 3) * of_policy * policy + (3 * of_critic + target) * (critic or 0)


def replay_bytes(config: DictConfig, capacity: int, num_responses: int) -> int:
    """Return the most that ArCHer's replay buffer takes in a checkpoint.

    Args:
        config: The run's.
        capacity: Transitions that are kept.
        num_responses: That the run samples up to its last step.
    """
    lengths = names(ROLLOUT, "prompt_length response_length")
    prompt, response = (setting(config, name) for name in lengths)
    tokens = 2 * prompt + response  # the state, the utterance and the next state
    each = _BYTES_PER_TOKEN * tokens + _BYTES_PER_TRANSITION
    return min(capacity, num_responses) * each


def check_disk(
    config: DictConfig, checkpoint: int | None, num_steps: int, *, has_critic: bool = False
) -> str:
    """Make sure that the checkpoints still to be written, each of so many bytes, fit the disk.

    Returns:
        What they will take, or that none are written.

    Raises:
        ConfigError: If they do not fit, or if one alone would be kept.
    """
    if setting(config, _ONLY):
        return f"no checkpoints ({_ONLY}=true)"
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
    kept, of_critic = (setting(config, name) for name in _KEPT)
    if has_critic and kept != of_critic:
        raise ConfigError(
            f"{_KEPT[0]}={kept} and {_KEPT[1]}={of_critic} differ: a checkpoint whose critic is "
            f"deleted cannot be resumed from; give both the same number"
        )
    root = Path(setting(config, CHECKPOINTS))
    resumed = resumed_step(config)
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
    sized = f"{num_new} checkpoint{plural} of {checkpoint / 1e9:.3g} GB"
    return f"{what}: {check_room(CHECKPOINTS, root, sized, num_new * checkpoint)}"


def check_room(name: str, folder: Path, what: str, num_bytes: float) -> str:
    """Return how much of the disk's free space so many bytes take.

    Args:
        name: The setting of the folder.
        folder: Where they will be written.
        what: What they are.
        num_bytes: Their number.

    Raises:
        ConfigError: If they do not fit.
    """
    needed_gb, free_gb = num_bytes / 1e9, shutil.disk_usage(_nearest_folder(folder)).free / 1e9
    if needed_gb > free_gb:
        raise ConfigError(
            f"{name}={folder}: {what} need {needed_gb:.3g} GB, the disk has {free_gb:.3g} GB free; "
            f"lower trainer.max_actor_ckpt_to_keep, raise trainer.save_freq, or choose another "
            f"disk with hint.run_dir"
        )
    return f"{needed_gb:.3g} GB of {free_gb:.3g} GB free"


def _nearest_folder(path: Path) -> Path:
    """Return the path itself or the closest parent that exists."""
    path = path.absolute()
    return next((each for each in (path, *path.parents) if os.path.lexists(each)), path)

"""Checks of where a run writes: its name, its folders, and what it finds there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.errors import ConfigError
from recipe.hint.runtime.checkpoints import resume_step
from recipe.hint.runtime.preflight.settings import setting

# These become one part of a path: the run's folder, and those of the backends of trainer.logger.
_NAMES = ("trainer.experiment_name", "trainer.project_name")
_FOLDERS = ("hint.run_dir", "trainer.default_local_dir", "hint.teacher.cache_dir")
_FOLDERS_OR_NULL = ("trainer.rollout_data_dir", "trainer.validation_data_dir")
# File systems take 255 bytes; backends put something behind the name.
_LONGEST_NAME = 200


def check_run_folder(config: DictConfig) -> str:
    """Make sure that the run can write where it wants to; nothing stays behind.

    Returns:
        What the run finds there: nothing, or the step it resumes after.

    Raises:
        ConfigError: If a name is no name, a folder cannot be made or written to, or the checkpoint
            is not there.
    """
    for name in _NAMES:
        check_name(name, setting(config, name))
    for name in _FOLDERS:
        check_folder(name, setting(config, name))
    for name in _FOLDERS_OR_NULL:
        if setting(config, name) is not None:
            check_folder(name, setting(config, name))
    root = Path(setting(config, "trainer.default_local_dir"))
    mode = setting(config, "trainer.resume_mode")
    if mode == "resume_path":
        return f"resumes from {_resume_folder(config)}"
    step = resume_step(root) if root.is_dir() else None
    if step is None:
        return "exists, no whole checkpoint: starts at step 1" if root.is_dir() else "new"
    if mode == "disable":
        return f"holds step {step}, trainer.resume_mode=disable: starts at step 1"
    return f"resumes after step {step}"


def nearest_folder(path: Path) -> Path:
    """Return the path itself or the closest parent that exists."""
    path = path.absolute()
    return next((each for each in (path, *path.parents) if os.path.lexists(each)), path)


def check_name(name: str, value: object) -> None:
    """Refuse a value that is not one part of a path.

    Raises:
        ConfigError: Naming the setting.
    """
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ConfigError(f"{name}={value!r} must be a name")
    text = str(value)
    what = ""
    if not text.strip(" ."):
        what = "is no name"
    elif "/" in text or "\\" in text:
        what = "is a path, not a name"
    elif text != text.strip() or not text.isprintable():
        what = "begins or ends with a space or holds a character that cannot be printed"
    elif len(text.encode()) > _LONGEST_NAME:
        what = f"has {len(text.encode())} bytes, more than {_LONGEST_NAME}"
    if what:
        raise ConfigError(
            f"{name}={text!r} {what}; it names one folder: give letters, digits, - and _, and "
            f"hint.run_dir=FOLDER to put the run elsewhere"
        )


def check_folder(name: str, value: object) -> None:
    """Refuse a value that is no folder, or one that nothing can be written to.

    Raises:
        ConfigError: Naming the setting.
    """
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{name}={value!r} must be the path of a folder")
    if not value.isprintable() or value != value.strip():
        raise ConfigError(
            f"{name}={value!r} begins or ends with a space or holds a character that cannot be "
            f"printed; give the path of a folder"
        )
    if "://" in value:
        raise ConfigError(f"{name}={value} is an address; give a folder of this machine's disks")
    if Path(value).parts[:1] and Path(value).parts[0].startswith("~"):
        raise ConfigError(
            f"{name}={value}: no shell has replaced the ~; give the whole path, like "
            f"{Path(value).expanduser()}"
        )
    _check_writable(name, Path(value))


def _check_writable(name: str, folder: Path) -> None:
    place = nearest_folder(folder)
    if not place.is_dir():
        raise ConfigError(f"{name}={folder}: {place} is a file, not a folder; choose another path")
    try:
        # Not os.access: for root it says yes on file systems that still refuse.
        os.rmdir(tempfile.mkdtemp(prefix=".preflight-", dir=place))
    except OSError as error:
        raise ConfigError(
            f"{name}={folder}: no folder can be made in {place} ({error.strerror}); "
            f"choose a place that you may write to"
        ) from error


def _resume_folder(config: DictConfig) -> str:
    path = setting(config, "trainer.resume_from_path")
    if not isinstance(path, str) or not Path(path).is_dir() or "global_step_" not in path:
        raise ConfigError(
            f"trainer.resume_from_path={path} must be an existing folder global_step_N when "
            f"trainer.resume_mode=resume_path"
        )
    return path

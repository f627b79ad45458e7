"""A training checkpoint as a model folder in bf16, made once per checkpoint."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from omegaconf import DictConfig

from recipe.run.checkpoints import (
    MERGED,
    checkpoint_of,
    known_checkpoints,
    model_files,
    step_of,
)
from recipe.run.children import deferred_signals, end_children, is_running, pause, start_child
from recipe.run.errors import ConfigError
from recipe.run.whole_file import move_whole

_POLL_S = 0.2


def check_export(checkpoint: str | Path, target: Path) -> tuple[Path, int]:
    """Check what needs none of the libraries, which take long to load.

    Returns:
        The checkpoint's folder and its step.

    Raises:
        ConfigError: If ``checkpoint`` is not one, or ``target`` exists.
    """
    if target.exists():
        raise ConfigError(f"{target} already exists; give a new folder")
    folder = checkpoint_of(checkpoint)
    step = step_of(folder) if folder else None
    if folder is None or step is None:
        known = known_checkpoints(checkpoint)
        fault = " is not a checkpoint" if Path(checkpoint).exists() else ": no such folder"
        raise ConfigError(
            f"{checkpoint}{fault}; give a folder checkpoints/global_step_N of a run"
            + (f": {known}" if known else "")
        )
    return folder, step


def merge_model(config: DictConfig, say: Callable[[str], None], limit_s: float = 3600.0) -> None:
    """Make a Hugging Face folder where ``actor_rollout_ref.model.path`` is a checkpoint.

    It lies beside the checkpoint's parts, appears whole or not at all, and becomes the setting.
    Its own process gives the memory of the weights back, and ends with this one.

    Args:
        config: Changed in place.
        say: Told that it begins, which takes a while.
        limit_s: Time at most.

    Raises:
        ConfigError: If the checkpoint is not whole, or cannot be merged in this time.
        Terminated: On SIGTERM.
    """
    checkpoint = checkpoint_of(config.actor_rollout_ref.model.path)
    if checkpoint is None:
        return
    target = checkpoint / MERGED
    config.actor_rollout_ref.model.path = str(target)
    if model_files(checkpoint)[1]:
        return
    say(f"merging the parts of {checkpoint} ...")
    with deferred_signals(), draft_of(target) as draft:
        try:
            _write_merged(checkpoint, draft, limit_s)
            if not model_files(checkpoint)[1]:  # another command may have been first
                shutil.rmtree(target, ignore_errors=True)
                move_whole(draft, target)
        except OSError as error:
            raise ConfigError(f"{checkpoint}: cannot be merged: {error}") from error


@contextlib.contextmanager
def draft_of(target: Path) -> Iterator[Path]:
    """Name the folder in which the block writes what it moves to ``target``; it is gone after it.

    What killed commands of this machine left goes first: each is as large as a model.
    """
    # Other machines may write to the same disk, and have processes of the same number.
    prefix = f".{target.name}.{socket.gethostname()}."
    _remove_left_drafts(target, prefix)
    draft = target.with_name(f"{prefix}{os.getpid()}")
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _remove_left_drafts(target: Path, prefix: str) -> None:
    for path in target.parent.iterdir() if target.parent.is_dir() else ():
        pid = path.name.removeprefix(prefix)
        if pid == path.name or not pid.isdecimal():
            continue
        # A container gives its processes the same numbers again: this one has no draft yet.
        if int(pid) == os.getpid() or not is_running(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def _write_merged(checkpoint: Path, draft: Path, limit_s: float) -> None:
    """Have a process of its own write the model; it has ended when this returns or raises.

    Raises:
        ConfigError: If it fails, or takes longer than ``limit_s``.
    """
    command = [sys.executable, "-m", "recipe.study.merge_process"]
    command += [str(checkpoint / "actor"), str(draft)]
    # Or what is printed would come at the end, after the error.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with tempfile.TemporaryFile() as log:
        # Not in the repository's root, whose folders would shadow installed packages.
        process = start_child(command, env=environment, log=log, cwd=checkpoint)
        try:
            deadline = time.monotonic() + limit_s
            while process.poll() is None:
                if time.monotonic() > deadline:
                    raise ConfigError(
                        f"{checkpoint}: merging did not finish within {limit_s:g} s; make a model "
                        f"of it with main_export.py and give that as actor_rollout_ref.model.path"
                    )
                pause(_POLL_S)
        finally:
            end_children([process])
        if process.returncode != 0:
            log.seek(0)
            said = (log.read().decode(errors="replace").strip() or "nothing").splitlines()[-1]
            raise ConfigError(
                f"{checkpoint}: merging ended with code {process.returncode}: {said[:300]}"
            )

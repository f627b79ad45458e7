"""Mark checkpoints that are complete: the marker is written when all else is on disk."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipe.run.errors import ConfigError, HintError
from recipe.run.whole_file import sync, write_whole

COMPLETE, STATE_FILE = "COMPLETE", "hint_state.npz"
REPLAY_FILE = "hint_replay.npz"  # ArCHer's
QUEUE = "transfer_queue"  # verl's folder, in the asynchronous modes
MERGED = "merged"  # the folder of the merged weights
# Ours, for verl writes its own before a checkpoint is complete; that one is set when a run starts.
_LATEST, _LATEST_OF_VERL = "LATEST_COMPLETE", "latest_checkpointed_iteration.txt"
_SHARD = re.compile(r"(.+_world_size_([0-9]+)_rank_)[0-9]+\.pt")  # of one trainer process
_SEEN_S = 60  # the longest that NFS by default shows a folder as it was


def step_folder(root: str | Path, step: int) -> Path:
    """Return the folder of one checkpoint, by verl's naming."""
    return Path(root) / f"global_step_{step}"


def step_of(folder: Path) -> int | None:
    """Return the step of a folder ``global_step_N``; ``None`` if it has another name."""
    found = re.fullmatch(r"global_step_(0|[1-9][0-9]*)", folder.name)
    return int(found[1]) if found else None


def mark_complete(root: str | Path, step: int, *, needs: Sequence[str] = ()) -> None:
    """Mark the checkpoint of ``step`` as complete, and let the next start continue from it.

    ``needs`` names parts that must be there, such as ``actor``. What other nodes have written may
    be seen late; a ``HintError`` names what is not.
    """
    folder = step_folder(root, step)
    deadline = time.monotonic() + _SEEN_S
    while absent := _absent(folder, needs):
        if time.monotonic() > deadline:
            raise HintError(
                f"{folder} has {absent}: trainer.default_local_dir (by default in hint.run_dir) "
                f"must be on a disk that all nodes share"
            )
        time.sleep(0.5)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != COMPLETE)
    sizes = {str(path.relative_to(folder)): path.stat().st_size for path in files}
    for path in files:  # verl's too: the marker must not outlive what it marks
        sync(path)
    said = {"step": step, "bytes": sizes}
    write_whole(folder / COMPLETE, json.dumps(said, indent=1) + "\n")
    point_at(root, step)


def _absent(folder: Path, needs: Sequence[str]) -> str:
    """Return what other nodes have not written here: a part, or files of trainer processes."""
    if missing := [name for name in needs if not (folder / name).is_dir()]:
        return f"no folder {missing[0]}"
    shards = (_SHARD.fullmatch(str(path)) for path in folder.rglob("*"))
    for (name, size), count in Counter(each.groups() for each in shards if each).items():
        if count < int(size):
            return f"{count} of {size} files {Path(name).name}*"
    return ""


def point_at(root: str | Path, step: int) -> None:
    """Let ``resume_mode=auto`` continue from the checkpoint of ``step``; 0: from the beginning."""
    write_whole(Path(root) / _LATEST, str(step))


def empty_step(root: str | Path, step: int) -> None:
    """Unmark and empty a folder before it is written over: a kill must not leave it complete.

    The parts of another number of processes would stay beside the new ones. One process calls
    this, before any other writes there.
    """
    folder = step_folder(root, step)
    (folder / COMPLETE).unlink(missing_ok=True)
    for part in ("actor", "critic", QUEUE, MERGED):
        shutil.rmtree(folder / part, ignore_errors=True)


def drop_old(root: str | Path, step: int, keep: int | None) -> None:
    """Delete the large files of all but the newest ``keep`` complete checkpoints up to ``step``.

    verl counts only what its own process has saved; what an earlier start has left is counted
    here. Those whose weights verl deleted are emptied too.
    """
    old = {each for each in complete_steps(root) if each <= step}
    old -= {*sorted(old)[-keep:]} if keep else old
    for folder in Path(root).glob("global_step_*"):
        before = step_of(folder)
        if before is None or before >= step:
            continue
        if before in old or not (folder / "actor").exists():
            empty_step(root, before)
            (folder / REPLAY_FILE).unlink(missing_ok=True)


def complete_steps(root: str | Path) -> list[int]:
    """Return the steps of the complete checkpoints, in order."""
    found = (step_of(path.parent) for path in Path(root).glob(f"global_step_*/{COMPLETE}"))
    return sorted(step for step in found if step is not None)


def resume_step(root: str | Path) -> int | None:
    """Return the step that a run resumes from, or ``None`` for the beginning.

    It is what the pointer says, else the newest complete checkpoint. The pointer comes first
    because a run that was set back to an earlier checkpoint leaves later ones of its former life in
    the folder, and one that started over leaves all of them.
    """
    steps = complete_steps(root)
    with contextlib.suppress(OSError, ValueError):
        step = int((Path(root) / _LATEST).read_text())
        if step == 0 or step in steps:
            return step or None
    return max(steps, default=None)


def repair_pointer(root: str | Path) -> int | None:
    """Point verl at the checkpoint that a run resumes from, and return its step.

    verl writes its pointer in place, before a checkpoint is complete: a kill may leave it empty, or
    at a checkpoint of which files are missing. Nothing is deleted.
    """
    step = resume_step(root)
    if Path(root).is_dir():
        write_whole(Path(root) / _LATEST_OF_VERL, str(step or 0))
    return step


def said_of(folder: Path) -> dict[str, Any]:
    """Return what ``COMPLETE`` says of a checkpoint: its step, and its files' sizes."""
    if not (folder / COMPLETE).is_file():
        raise ConfigError(
            f"{folder} is not complete (no {COMPLETE}): verl wrote it alone, or its run was killed "
            f"while it was saved; take an earlier one"
        )
    return json.loads((folder / COMPLETE).read_text(encoding="utf-8"))


def check_undamaged(folder: Path) -> None:
    """Refuse a checkpoint with a file that is missing or has another size than when saved."""
    for name, expected in said_of(folder)["bytes"].items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != expected:
            raise ConfigError(
                f"the checkpoint {folder} is damaged: {name} is missing or has not the {expected} "
                f"bytes with which it was saved. Restore the file, or move the checkpoint away to "
                f"resume from the one before it"
            )


def is_within(root: str | Path, checkpoint: Path) -> bool:
    """Return whether a checkpoint is one of the run that saves in ``root``."""
    return checkpoint.resolve().parent == Path(root).resolve()


def checkpoint_of(path: str | Path) -> Path | None:
    """Return the ``global_step_N`` folder that ``path`` or its parent is; ``None`` if neither."""
    folder = Path(path).absolute()  # the merging process works in another folder
    folder = folder.parent if folder.name == "actor" else folder
    return folder if (folder / "actor" / "fsdp_config.json").is_file() else None


def model_files(checkpoint: Path) -> tuple[Path, bool]:
    """Return the folder of a checkpoint's configuration, and whether it has the weights too."""
    said_of(checkpoint)
    merged = checkpoint / MERGED
    return (merged, True) if merged.is_dir() else (checkpoint / "actor" / "huggingface", False)

"""Mark checkpoints that are whole: the marker is written when everything else is on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from recipe.run.errors import ConfigError, HintError
from recipe.run.whole_file import file_sha256, write_whole

COMPLETE, STATE_FILE = "COMPLETE", "hint_state.npz"
REPLAY_FILE = "hint_replay.npz"  # ArCHer's
QUEUE = "transfer_queue"  # verl's folder, in the asynchronous modes
MERGED = "merged"  # the folder of the merged weights
_PARTS = ("actor", "critic", QUEUE, MERGED)
_LATEST = "latest_checkpointed_iteration.txt"  # verl's own pointer
_LATEST_WHOLE = "LATEST_COMPLETE"  # ours, which verl does not touch


def step_folder(root: str | Path, step: int) -> Path:
    """Return the folder of one checkpoint, by verl's naming."""
    return Path(root) / f"global_step_{step}"


def step_of(folder: Path) -> int | None:
    """Return the step of a folder ``global_step_N``; ``None`` if it has another name."""
    found = re.fullmatch(r"global_step_(0|[1-9][0-9]*)", folder.name)
    return int(found[1]) if found else None


def mark_complete(root: str | Path, step: int, *, needs: Sequence[str] = (), **facts: Any) -> None:
    """Mark the checkpoint of ``step`` as whole, list its files, and point verl at it.

    Args:
        root: Folder of the run's checkpoints.
        step: The checkpoint's.
        needs: Parts that must have files, such as ``actor``.
        facts: Of the run, for the check when it is resumed (``digests_of_run``).
    """
    folder = step_folder(root, step)
    if missing := [name for name in needs if not (folder / name).is_dir()]:
        raise HintError(
            f"{folder} has no folder {missing[0]}: trainer.default_local_dir (by default in "
            f"hint.run_dir) must be on a disk that all nodes share"
        )
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != COMPLETE)
    sizes = {str(path.relative_to(folder)): path.stat().st_size for path in files}
    for path in files:
        with path.open("rb") as file:
            # verl's too: the marker must not outlive what it marks. What other nodes have written
            # to a shared disk is brought there when they close their files.
            os.fsync(file.fileno())
    said = {"step": step, "bytes": sizes, **facts}
    write_whole(folder / COMPLETE, json.dumps(said, indent=1) + "\n")
    point_at(root, step)


def point_at(root: str | Path, step: int) -> None:
    """Point verl at the checkpoint of ``step``, where ``resume_mode=auto`` continues.

    With 0 it starts at step 1: whatever checkpoints there are belong to a former run.
    """
    for name in (_LATEST_WHOLE, _LATEST):
        write_whole(Path(root) / name, str(step))


def empty_step(root: str | Path, step: int) -> None:
    """Unmark and empty a folder before it is written over: a kill must not leave it looking whole.

    The parts that it held go, for those of another number of processes would stay beside the new
    ones; weights that were merged from them too, and drafts that a kill has left. One process calls
    this, before any other writes there.
    """
    folder = step_folder(root, step)
    (folder / COMPLETE).unlink(missing_ok=True)
    for draft in folder.glob(".*.tmp"):
        draft.unlink()
    for part in _PARTS:
        shutil.rmtree(folder / part, ignore_errors=True)


def drop_old(
    root: str | Path, step: int, keep: int | None = None, *, spared: Path | None = None
) -> None:
    """Delete the large files of all but the newest ``keep`` complete checkpoints up to ``step``.

    verl counts only what its own process has saved, the actor and the critic apart; what an earlier
    start or phase has left is counted here. Also empty those whose weights verl deleted.

    Args:
        root: The folder of the checkpoints.
        step: Of the newest one.
        keep: How many stay; ``None``: all.
        spared: Stays in any case, beside these: what the run was resumed from.
    """
    # By time: a run that started over may have later steps of its former life around it.
    in_order = sorted(
        (each for each in complete_steps(root) if each <= step),
        key=lambda each: ((step_folder(root, each) / COMPLETE).stat().st_mtime_ns, each),
    )
    old = set(in_order[:-keep]) if keep else set()
    for folder in Path(root).glob("global_step_*"):
        before = step_of(folder)
        if before is None or before >= step:
            continue
        is_spared = spared is not None and spared.resolve() == folder.resolve()
        if (before in old and not is_spared) or not (folder / "actor").exists():
            empty_step(root, before)
            (folder / REPLAY_FILE).unlink(missing_ok=True)


def complete_steps(root: str | Path) -> list[int]:
    """Return the steps of the whole checkpoints, in order."""
    found = (step_of(path.parent) for path in Path(root).glob(f"global_step_*/{COMPLETE}"))
    return sorted(step for step in found if step is not None)


def resume_step(root: str | Path) -> int | None:
    """Return the step that a run resumes from, or ``None`` for the beginning.

    It is what a pointer says, else the newest whole checkpoint. The pointers come first because a
    run that was set back to an earlier checkpoint leaves later ones of its former life in the
    folder, and one that started over leaves all of them.
    """
    step = _pointed_at(root)
    return max(complete_steps(root), default=None) if step is None else step or None


def repair_pointer(root: str | Path) -> int | None:
    """Point verl at a whole checkpoint, whatever a killed run left behind.

    verl writes its pointer in place: a kill in that moment leaves it empty, and one between two
    files of a checkpoint leaves a folder that looks like a checkpoint. Nothing is deleted.

    Returns:
        The step that a run with ``resume_mode=auto`` will start from; ``None`` for the beginning.
    """
    check_resumable(root)
    step = resume_step(root)
    if step is not None or _pointed_at(root) == 0:
        point_at(root, step or 0)
    return step


def check_resumable(root: str | Path) -> None:
    """Refuse a damaged checkpoint, and a start from step 1 that would overwrite what is not ours.

    What a run leaves that was killed in its first save is neither: its folder has our state, and
    verl's pointer, written last, is missing.
    """
    root = Path(root)
    if (step := resume_step(root)) is not None:
        check_undamaged(step_folder(root, step))
        return
    if _pointed_at(root) == 0:
        return
    found = [each for each in root.glob("global_step_*") if step_of(each) and each.is_dir()]
    foreign = sorted(each.name for each in found if not _is_begun_by_us(each))
    if foreign or (found and (root / _LATEST).exists()):
        raise ConfigError(
            f"trainer.default_local_dir={root} holds {(foreign or [found[0].name])[0]} and no "
            f"checkpoint with {COMPLETE}, and training would begin at step 1 over it: move it "
            f"away, give another trainer.experiment_name, or trainer.resume_mode=disable"
        )


def _pointed_at(root: str | Path) -> int | None:
    """Return the step of the first pointer that names a whole checkpoint, or 0; else ``None``.

    verl's comes first, which a user may have set. It names a step before its checkpoint is whole,
    and a kill can leave it empty: then ours has the last whole one of the same life.
    """
    for name in (_LATEST, _LATEST_WHOLE):
        with contextlib.suppress(OSError, ValueError):
            step = int((Path(root) / name).read_text())
            if step == 0 or (step_folder(root, step) / COMPLETE).exists():
                return step
    return None


def _is_begun_by_us(folder: Path) -> bool:
    """Return whether one of our saves began here: its first file exists, or no file does."""
    files = [path.name for path in folder.iterdir() if not path.name.startswith(".")]
    return not files or STATE_FILE in files


def said_of(folder: Path) -> dict[str, Any]:
    """Return what ``COMPLETE`` says of a checkpoint; nothing in one of an early version."""
    try:
        said = json.loads((folder / COMPLETE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{folder} is not whole ({COMPLETE}: {error}): verl wrote it alone, or its run was "
            f"killed while it was saved; take an earlier one"
        ) from error
    return said if isinstance(said, dict) else {}


def check_undamaged(folder: Path) -> None:
    """Refuse a checkpoint with a file that is missing or has another size than when saved."""
    for name, expected in said_of(folder).get("bytes", {}).items():
        path = folder / name
        found = path.stat().st_size if path.is_file() else 0
        if found != expected or not path.is_file():
            raise ConfigError(
                f"the checkpoint {folder} is damaged: {found} bytes at {name}, expected "
                f"{expected} as when it was saved. Restore the file, or move the checkpoint away "
                f"to resume from the one before it"
            )


def digests_of(files: str | Iterable[str]) -> dict[Path, str]:
    """Return the digest of each file of a setting; nothing of what this machine does not have."""
    paths = map(Path, [files] if isinstance(files, str) else files)
    return {path: file_sha256(path) for path in paths if path.is_file()}


def digests_of_run(config: Any) -> dict[str, Any]:
    """Return the digests of the files that a run is made with, as ``mark_complete`` keeps them."""
    train = digests_of(OmegaConf.select(config, "data.train_files") or [])
    model = str(OmegaConf.select(config, "actor_rollout_ref.model.path"))
    return {"train_files": [*train.values()], "model": model_digest(model)}


def model_digest(path: str) -> str | None:
    """Return a digest of a model's configuration and of its files' sizes; ``None`` without one."""
    folder = Path(path).expanduser()
    if not (folder / "config.json").is_file():
        return None
    files = sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")])
    sizes = "".join(f"{file.name} {file.stat().st_size}\n" for file in files)
    return hashlib.sha256((folder / "config.json").read_bytes() + sizes.encode()).hexdigest()


def is_within(root: str | Path, checkpoint: Path) -> bool:
    """Return whether a checkpoint is one of the run that saves in ``root``."""
    return checkpoint.resolve().parent == Path(root).resolve()


def known_checkpoints(path: str | Path) -> str:
    """Return, for a message, the complete checkpoints of the run that a wrong path leads to."""
    place = Path(path).expanduser()
    for folder in (place, *place.parents[:2]):
        root = folder if folder.name == "checkpoints" else folder / "checkpoints"
        if root.is_dir():
            names = [step_folder(root, step).name for step in complete_steps(root)]
            return f"{root} has {', '.join(names) or 'no checkpoint yet'}"
    return ""


def checkpoint_of(path: str | Path) -> Path | None:
    """Return the ``global_step_N`` folder that ``path`` or its parent is; ``None`` if neither."""
    folder = Path(path).absolute()  # the merging process works in another folder
    folder = folder.parent if folder.name == "actor" else folder
    return folder if (folder / "actor" / "fsdp_config.json").is_file() else None


def model_files(checkpoint: Path) -> tuple[Path, bool]:
    """Find a checkpoint's configuration and tokenizer; nothing is written.

    Returns:
        A folder, and whether the weights are in it too: not before they were merged.
    """
    said_of(checkpoint)
    merged = checkpoint / MERGED
    # With the adapter beside it, it is of an earlier version, without what was trained.
    if merged.is_dir() and not (merged / "lora_adapter").is_dir():
        return merged, True
    return checkpoint / "actor" / "huggingface", False

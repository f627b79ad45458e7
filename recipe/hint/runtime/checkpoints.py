"""Which checkpoint is whole: a marker inside it, written when all else is on disk."""

from __future__ import annotations

from pathlib import Path

from recipe.hint.whole_file import write_whole

COMPLETE = "COMPLETE"
_LATEST = "latest_checkpointed_iteration.txt"  # verl's own pointer


def step_folder(root: str | Path, step: int) -> Path:
    """Return the folder of one checkpoint, by verl's naming."""
    return Path(root) / f"global_step_{step}"


def mark_complete(root: str | Path, step: int) -> None:
    """Say that the checkpoint of ``step`` is whole, and point verl at it."""
    write_whole(step_folder(root, step) / COMPLETE, f"{step}\n")
    write_whole(Path(root) / _LATEST, str(step))


def mark_incomplete(root: str | Path, step: int) -> None:
    """Unmark a folder before it is written over: a kill must not leave it looking whole."""
    (step_folder(root, step) / COMPLETE).unlink(missing_ok=True)


def resume_step(root: str | Path) -> int | None:
    """Return the step that a run resumes from, or ``None`` for the beginning.

    It is verl's pointer where that names a whole checkpoint, else the newest whole one. The pointer
    comes first because a run that was set back to an earlier checkpoint leaves later ones of its
    former life in the folder.
    """
    try:
        step = int((Path(root) / _LATEST).read_text())
    except (OSError, ValueError):
        return newest_complete(root)
    return step if (step_folder(root, step) / COMPLETE).exists() else newest_complete(root)


def newest_complete(root: str | Path) -> int | None:
    """Return the step of the newest whole checkpoint, or ``None``."""
    steps = [
        int(path.parent.name.removeprefix("global_step_"))
        for path in Path(root).glob(f"global_step_*/{COMPLETE}")
    ]
    return max(steps, default=None)


def repair_pointer(root: str | Path) -> int | None:
    """Point verl at a whole checkpoint, whatever a killed run left behind.

    verl writes its pointer in place: a kill in that moment leaves it empty, and one between two
    files of a checkpoint leaves a folder that looks like a checkpoint.

    Returns:
        The step that a run with ``resume_mode=auto`` will start from; ``None`` for the beginning.
    """
    root = Path(root)
    step = resume_step(root)
    if step is None:
        (root / _LATEST).unlink(missing_ok=True)
    else:
        write_whole(root / _LATEST, str(step))
    return step

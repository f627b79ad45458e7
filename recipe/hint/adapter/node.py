"""What each node of a run needs, checked where its agent-loop workers start."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from omegaconf import DictConfig

from recipe.hint.adapter.preflight.settings import files_of, setting
from recipe.hint.adapter.rewards import FUNCTION
from recipe.hint.settings import HintSettings
from recipe.run.checkpoints import SEEN_WITHIN_S
from recipe.run.errors import DataError
from recipe.run.paths import DATA_FILES
from recipe.run.task_runner import DRIVER_LOCK, run_folders
from recipe.verify.programs.program import layers_for
from recipe.verify.programs.sandbox import available_layers

_POLL_S = 1.0


def fault_of_node(
    config: DictConfig, settings: HintSettings, seen_within_s: float = SEEN_WITHIN_S
) -> str:
    """Say why this node cannot work on the run's prompts; "" where it can.

    Args:
        config: The run's.
        settings: The ``hint:`` node.
        seen_within_s: How late a file of the driver may be seen.
    """
    folders = run_folders(config).items()
    faults = (_fault_of_disk(name, path, seen_within_s) for path, name in folders)
    found = next(filter(None, faults), "") or _fault_of_sandbox(config, settings)
    return f"node {socket.gethostname()}: {found}" if found else ""


def _fault_of_disk(name: str, folder: Path, seen_within_s: float) -> str:
    """Look for the lock that the driver holds in one of the run's folders, from its start on."""
    deadline = time.monotonic() + seen_within_s
    while not (folder / DRIVER_LOCK).exists():
        if time.monotonic() >= deadline:
            return (
                f"{name}={folder} does not hold the file {DRIVER_LOCK} of the run's driver: "
                f"it must be on a disk that all nodes share, since each trainer process writes its "
                f"part of a checkpoint there (docs/clusters.md)"
            )
        time.sleep(_POLL_S)
    return ""


def _fault_of_sandbox(config: DictConfig, settings: HintSettings) -> str:
    """Look for the isolation of programs; the data are read only where it is missing."""
    wanted = settings.verify.program_isolation
    if layers_for(wanted) is not None or setting(config, f"{FUNCTION}.path"):
        return ""
    from recipe.problems.columns import read_problems  # pyarrow

    files = (path for name in DATA_FILES for path in files_of(config, name))
    try:
        has_programs = any(each.kind == "program" for path in files for each in read_problems(path))
    except DataError:  # the driver, which has checked them, may be the only one to have the data
        has_programs = False
    if not has_programs:
        return ""
    return (
        f"hint.verify.program_isolation={wanted}, and this node offers "
        f"{', '.join(available_layers()) or 'nothing'}, so that no program of the data would get a "
        f"verdict: leave the node out, run on Linux on x86_64 or aarch64, or allow less"
    )

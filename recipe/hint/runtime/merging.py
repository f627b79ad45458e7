"""A training checkpoint as a model folder: verl's own merger, run once per checkpoint."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from recipe.hint.errors import ConfigError
from recipe.hint.runtime.checkpoints import COMPLETE

MERGED = "merged"
_LIMIT_S = 3600.0


def checkpoint_of(path: str | Path) -> Path | None:
    """The ``global_step_N`` folder that ``path`` is, or whose ``actor`` it is; else ``None``."""
    folder = Path(path).absolute()  # verl's merger works in another folder
    folder = folder.parent if folder.name == "actor" else folder
    return folder if (folder / "actor" / "fsdp_config.json").is_file() else None


def model_files(checkpoint: Path) -> tuple[Path, bool]:
    """Where a checkpoint's configuration and tokenizer are; nothing is written.

    Returns:
        A folder, and whether the weights are in it too: not before they were merged.

    Raises:
        ConfigError: If the checkpoint is not whole.
    """
    if (checkpoint / MERGED).is_dir():
        return checkpoint / MERGED, True
    if not (checkpoint / COMPLETE).is_file():
        raise ConfigError(
            f"actor_rollout_ref.model.path={checkpoint} is not whole ({COMPLETE} is missing): its "
            f"run was killed while it was written; take an earlier one"
        )
    return checkpoint / "actor" / "huggingface", False


def merged_model(checkpoint: Path, limit_s: float = _LIMIT_S) -> Path:
    """The checkpoint's weights as a Hugging Face folder beside it, made when it is not there.

    verl's merger writes bf16. The folder appears whole or not at all.

    Raises:
        ConfigError: If the checkpoint is not whole, or the merger fails or takes too long.
    """
    target = checkpoint / MERGED
    if model_files(checkpoint)[1]:
        return target
    draft = checkpoint / f".{MERGED}.{os.getpid()}"
    command = [sys.executable, "-m", "verl.model_merger", "merge", "--backend", "fsdp"]
    command += ["--local_dir", str(checkpoint / "actor"), "--target_dir", str(draft)]
    try:
        # Not in the repository's root: its folders must not shadow installed packages.
        end = subprocess.run(
            command, cwd=checkpoint, capture_output=True, text=True, timeout=limit_s, check=False
        )
        if end.returncode != 0:
            said = (end.stderr.strip() or end.stdout.strip() or "nothing").splitlines()[-1]
            raise ConfigError(
                f"{checkpoint}: verl's merger ended with code {end.returncode}: {said[:300]}"
            )
        os.replace(draft, target)
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"{checkpoint}: verl's merger did not finish within {limit_s:g} s; merge it by hand "
            f"(python -m verl.model_merger) and give the result as actor_rollout_ref.model.path"
        ) from None
    except OSError as error:
        raise ConfigError(f"{checkpoint}: cannot be merged: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return target

"""The files an evaluation grows: one line per sample, and the settings they were drawn with."""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from recipe.hint.errors import ConfigError, DataError
from recipe.hint.typed import read_json
from recipe.hint.whole_file import write_whole

# (benchmark, problem id) -> the sample numbers that are on disk.
Done = dict[tuple[str, str], frozenset[int]]
_SETTINGS = "settings.json"


def evaluation_folder(config: DictConfig) -> Path:
    """Where an evaluation writes."""
    return Path(config.hint.run_dir) / "evaluation"


def sample_path(folder: Path, benchmark: str) -> Path:
    """The file of a benchmark's samples; its name may hold a slash (``tiny/hard``)."""
    return folder / "samples" / f"{benchmark.replace('/', '__')}.jsonl"


def append_samples(folder: Path, benchmark: str, rows: Sequence[dict[str, Any]]) -> None:
    """Rows of one problem in one write, handed to the disk before anything goes on."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    with open(sample_path(folder, benchmark), "a", encoding="utf-8") as file:
        file.write(text)


def resume_samples(folder: Path) -> Done:
    """What is on disk already; a line that a kill has cut is taken off.

    Raises:
        DataError: If a line that is not the last one cannot be read.
    """
    done: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for path in sorted((folder / "samples").glob("*.jsonl")):
        _cut_half_line(path)
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    row = read_json(line)
                    done[row["benchmark"], row["id"]].add(row["sample"])
                except (ValueError, KeyError, TypeError) as error:
                    raise DataError(
                        f"{path}: line {number} is not a sample ({error}); take the line out and "
                        f"start again: its answer is then drawn anew"
                    ) from error
    return {key: frozenset(samples) for key, samples in done.items()}


def check_settings_unchanged(folder: Path, settings: dict[str, Any]) -> None:
    """Samples of one table come from one model, one sampling and one set of files.

    Raises:
        ConfigError: Naming the setting that differs from those of the samples on disk.
    """
    path = folder / _SETTINGS
    if not path.exists():
        return
    before = _read_object(path)
    for name in before.keys() | settings.keys():
        if before.get(name) != settings.get(name):
            raise ConfigError(
                f"{folder} holds samples drawn with {name}={before.get(name)!r}, now it is "
                f"{settings.get(name)!r}; give another trainer.experiment_name for a new "
                f"evaluation, or the old value to go on with this one"
            )


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Before the first sample."""
    (folder / "samples").mkdir(parents=True, exist_ok=True)
    _write_json(folder / _SETTINGS, settings)


def evaluation_settings(config: DictConfig, files: Sequence[str]) -> dict[str, Any]:
    """All that the samples depend on, besides the hardware."""
    sampling = config.actor_rollout_ref.rollout.val_kwargs
    return {
        "model": str(config.actor_rollout_ref.model.path),
        "num_samples": sampling.n,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "max_tokens": config.actor_rollout_ref.rollout.response_length,
        "seed": config.hint.seed,
        "files": {Path(path).name: _digest(path) for path in files},
    }


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = read_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}; start a new evaluation") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds a {type(value).__name__}; start a new evaluation")
    return value


class Clock:
    """Seconds spent on each benchmark, from its first problem to its last, over all sittings."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "clock.json"
        self._before: dict[str, float] = {}
        if self._path.exists():
            self._before = _read_object(self._path)
        self._first: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def tick(self, benchmark: str) -> None:
        """Something happened on this benchmark now."""
        now = time.monotonic()
        self._first.setdefault(benchmark, now)
        self._last[benchmark] = now

    def seconds(self, benchmark: str) -> float:
        """Up to the last tick; 0 when it never ticked."""
        spent = self._last.get(benchmark, 0.0) - self._first.get(benchmark, 0.0)
        return round(self._before.get(benchmark, 0.0) + spent, 3)

    def save(self) -> None:
        """For the next sitting."""
        _write_json(self._path, {name: self.seconds(name) for name in self._before | self._last})


def _write_json(path: Path, value: dict[str, Any]) -> None:
    write_whole(path, json.dumps(value, indent=1) + "\n")


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cut_half_line(path: Path) -> None:
    with open(path, "rb+") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            file.truncate(whole)

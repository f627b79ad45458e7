"""Report a step on the console in two lines; everything else goes to files."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from recipe.run.run_folder import RunFolder, accuracies, read_rows

# What the console calls the phases of a step; verl's names.
_PHASES = {
    "rollout": "gen",
    "log-probs": "old_log_prob",
    "update": "update_actor",
    "sync": "update_weights",
}


class StepReporter:
    """Replaces verl's ``Tracking`` and passes everything on to it."""

    def __init__(self, tracking: Any, folder: RunFolder, total_steps: int) -> None:
        self._tracking, self._folder, self._total = tracking, folder, total_steps
        self._first: tuple[int, float] | None = None  # the step before the first, and its end

    def log(self, data: dict[str, Any], step: int, backend: Any = None) -> None:
        """Send one step's metrics to the file, to the backends, and in short to the console."""
        self._folder.append_metrics(step, data)
        self._tracking.log(data=data, step=step, backend=backend)
        for line in describe(data, f"step {step}/{self._total}", self._left(data, step)):
            self._folder.say(line)

    def _left(self, data: dict[str, Any], step: int) -> str:
        """Return the time left, from the mean step and what lay between steps, if known."""
        if "timing_s/step" not in data or step >= self._total:
            return ""
        now = time.monotonic()
        first, began = self._first = self._first or (step - 1, now - data["timing_s/step"])
        seconds = (now - began) / (step - first) * (self._total - step)
        return f"{timedelta(seconds=round(seconds))} left"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tracking, name)


def describe(data: dict[str, Any], head: str, left: str = "") -> list[str]:
    """Return two lines on a training step, and one on each set of a validation."""
    lines = []
    if "timing_s/step" in data:
        times = ", ".join(f"{word} {_seconds(data, name)}" for word, name in _PHASES.items())
        lines.append(f"{head}  {_seconds(data, 'step')}  ({times})  {left}".rstrip())
        lines.append("  " + "   ".join(_signal(data)))
    return lines + [f"  validation at {head}, {each}" for each in _accuracy_lines(data)]


def _signal(data: dict[str, Any]) -> list[str]:
    """Return what a step learns from; with turns, what they change in place of the reward."""

    def count(name: str) -> int:
        return int(data.get(f"hint/{name}", 0))

    has_turns = "turns/delta" in data  # a mean reward over the rows of all turns means little
    told = [
        _turns(data, "turns/") if has_turns else f"reward {data.get('critic/score/mean', 0.0):.3f}",
        f"informative groups {count('mixed_groups')}/{count('prompts')}",
    ]
    if "hint/used_level_1" in data:
        names = ("used_no_hint", *(f"used_level_{level}" for level in range(1, 100)))
        used = [count(name) for name in names if f"hint/{name}" in data]
        told.append(f"hint levels {' '.join(f'{level}:{num}' for level, num in enumerate(used))}")
        told.append(f"hints written {count('generate_success')}/{count('generate_requested')}")
    return [*told, f"tokens {count('rollout_tokens') + count('tokens')}"]


def _accuracy_lines(data: dict[str, Any]) -> list[str]:
    """Return a line on each validation set, with turns on what they change."""
    lines = []
    for name, value in accuracies(data).items():
        prefix = f"val-turns/{name}/"
        told = _turns(data, prefix) if f"{prefix}delta" in data else f"{100 * value:.1f} %"
        lines.append(f"{name}: {told}")
    return lines


def _turns(data: dict[str, Any], prefix: str) -> str:
    """Return the accuracies of first and last turn, and their difference with its interval."""
    names = ("acc_t1", "acc_t2", "delta", "delta_low", "delta_high")
    first, last, *change = (100 * data[prefix + name] for name in names)
    told = "{:+.1f} [{:+.1f}, {:+.1f}]".format(*change)
    return f"first turn {first:.1f} % correct, last {last:.1f} %: {told}"


def closing_lines(folder: RunFolder) -> list[str]:
    """Sum the run up: accuracies of its first and last validation, and where everything is."""
    validations = [row for row in read_rows(folder.metrics) if accuracies(row)]
    lines = [
        f"  step {row['step']}, without hints, {line}"
        for row in validations[:1] + validations[1:][-1:]
        for line in _accuracy_lines(row)
    ]
    return [*lines, f"  everything is in {folder.root}"]


class Console:
    """Shows the run's console file as it grows, from where it ends now."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._file = path.open(encoding="utf-8", errors="replace")
        self._file.seek(0, os.SEEK_END)

    def show(self) -> None:
        """Show what was written since the last call."""
        with contextlib.suppress(OSError):  # a closed terminal ends no run: the lines are a file
            sys.stdout.write(self._file.read())
            sys.stdout.flush()


def _seconds(data: dict[str, Any], name: str) -> str:
    return f"{data.get(f'timing_s/{name}', 0.0):.1f} s"

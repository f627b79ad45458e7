"""Report a step in one line; the rest goes to files."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from recipe.run.run_folder import RunFolder, accuracies, read_rows

# What the console calls the phases of a step, by verl's names.
_PHASES = {
    "gen": "rollout",
    "old_log_prob": "log-probs",
    "update_actor": "update",
    "update_weights": "sync",
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
        head = f"step {step:{len(str(self._total))}}/{self._total}"
        self._folder.say(describe(data, head, self._left(data, step)))

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


def describe(data: Mapping[str, Any], head: str, left: str = "") -> str:
    """Return a step's line: seconds by phase, what it learns from, its validation, time left."""
    told = [head]
    if "timing_s/step" in data:
        told.append(f"{_seconds(data, 'step'):6.1f} s")
        told += [f"{word} {_seconds(data, name):5.1f}" for name, word in _PHASES.items()]
        told += [f"{word} {value}" for word, value in _signal(data).items()]
    told += [f"accuracy {each}" for each in _accuracy_lines(data)]
    return "  ".join([*told, left]).rstrip()


def _signal(data: Mapping[str, Any]) -> dict[str, str]:
    """Return what a step learns from; with turns, what they change in place of the reward."""
    prompts = _count(data, "prompts")
    width = len(str(prompts))

    def of(part: str, whole: str) -> str:
        return f"{_count(data, part):{width}}/{_count(data, whole):<{width}}"

    has_turns = "turns/delta" in data  # a mean reward over the rows of all turns means little
    reward = data.get("critic/score/mean", 0.0)
    told = {"turns": _turns(data, "turns/")} if has_turns else {"reward": f"{reward:6.3f}"}
    told["informative"] = of("mixed_groups", "prompts")
    if "hint/used_level_1" in data:
        names = ("used_no_hint", *(f"used_level_{level}" for level in range(1, 100)))
        levels = [_count(data, each) for each in names if f"hint/{each}" in data]
        told["levels"] = " ".join(f"{level}:{num:<{width}}" for level, num in enumerate(levels))
        told["hints"] = of("generate_success", "generate_requested")
    return told | {"tokens": f"{_count(data, 'rollout_tokens') + _count(data, 'tokens'):7}"}


def _accuracy_lines(data: Mapping[str, Any]) -> list[str]:
    """Return a line on each validation set, with turns on what they change."""
    lines = []
    for name, value in accuracies(data).items():
        prefix = f"val-turns/{name}/"
        told = _turns(data, prefix) if f"{prefix}delta" in data else f"{100 * value:.1f} %"
        lines.append(f"{name}: {told}")
    return lines


def _turns(data: Mapping[str, Any], prefix: str) -> str:
    """Return the accuracies of first and last turn, and their difference with its interval."""
    names = ("acc_t1", "acc_t2", "delta", "delta_low", "delta_high")
    first, last, *change = (100 * data[prefix + name] for name in names)
    told = "{:+.1f} [{:+.1f}, {:+.1f}]".format(*change)
    return f"first {first:.1f} %, last {last:.1f} %, {told}"


def closing_lines(folder: RunFolder) -> list[str]:
    """Sum the run up: accuracies of its first and last validation, and where everything is."""
    validations = [row for row in read_rows(folder.metrics) if accuracies(row)]
    lines = [
        f"  step {row['step']}, without hints, {line}"
        for row in validations[:1] + validations[1:][-1:]
        for line in _accuracy_lines(row)
    ]
    page = f"  its page: hint report serve {shlex.quote(str(folder.root))}"
    return [*lines, f"  everything is in {folder.root}", page]


class Console:
    """Shows the run's console file as it grows, from where it ends now."""

    def __init__(self, folder: RunFolder) -> None:
        folder.console.touch()
        self._file = folder.console.open(encoding="utf-8", errors="replace")
        self._file.seek(0, os.SEEK_END)

    def show(self) -> None:
        """Show what was written since the last call."""
        # A closed terminal ends no run: the lines are a file.
        with contextlib.suppress(OSError):
            sys.stdout.write(self._file.read())
            sys.stdout.flush()


def _count(data: Mapping[str, Any], name: str) -> int:
    return int(data.get(f"hint/{name}", 0))


def _seconds(data: Mapping[str, Any], name: str) -> float:
    return data.get(f"timing_s/{name}", 0.0)

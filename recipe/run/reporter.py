"""Report a step on the console in two or three lines; everything else goes to files."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from recipe.run.checkpoints import resume_step
from recipe.run.run_folder import RunFolder, accuracies, read_rows

# What the console calls the phases of a step; verl's names.
_PHASES = {
    "rollout": "gen",
    "log-probs": "old_log_prob",
    "update": "update_actor",
    "sync": "update_weights",
}


class StepReporter:
    """Replaces verl's ``Tracking`` and passes everything on to it, each call within ``limit()``."""

    def __init__(
        self,
        tracking: Any,
        folder: RunFolder,
        total_steps: int,
        limit: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._tracking, self._folder, self._limit = tracking, folder, limit
        self._total = total_steps
        self._first: tuple[int, float] | None = None  # the step before the first, and its end

    def log(self, data: dict[str, Any], step: int, backend: Any = None) -> None:
        """Send one step's metrics to the file, to the backends, and in short to the console."""
        self._folder.append_metrics(step, data)
        with self._limit():
            self._tracking.log(data=data, step=step, backend=backend)
        for line in describe(data, f"step {step}/{self._total}", self._left(data, step)):
            self._folder.say(line)

    def _left(self, data: dict[str, Any], step: int) -> str:
        """Return the time left, from the mean step and what lay between steps, if known."""
        if "timing_s/step" not in data or step >= self._total:
            return ""
        now = time.monotonic()
        first, began = self._first = self._first or (step - 1, now - data["timing_s/step"])
        return f"{duration((now - began) / (step - first) * (self._total - step))} left"

    def finish(self, exit_code: int = 0) -> None:
        """Close the backends."""
        with self._limit():
            self._tracking.finish(exit_code=exit_code)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tracking, name)


def duration(seconds: float) -> str:
    """Return a time to plan by: ``40 s``, ``7 min``, ``2 h 5 min``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def describe(data: dict[str, Any], head: str, left: str = "") -> list[str]:
    """Return up to three lines on a training step, and those on a validation.

    With a multi-turn method the turns replace the hints; a method with neither shows neither.
    """
    lines = []
    if "timing_s/step" in data:
        times = ", ".join(f"{word} {_seconds(data, name)}" for word, name in _PHASES.items())
        first = f"{head}  {_seconds(data, 'step')}  ({times})  {left}".rstrip()
        lines = [first, *_reward_lines(data)]
    return lines + [f"  validation at {head}, {each}" for each in _accuracy_lines(data)]


def _accuracy_lines(data: dict[str, Any]) -> list[str]:
    """Return a line on each validation set, with turns on what they change."""
    lines = []
    for name, value in accuracies(data).items():
        prefix = f"val-turns/{name}/"
        told = _turns(data, prefix) if f"{prefix}delta" in data else f"{100 * value:.1f} %"
        lines.append(f"{name}: {told}")
    return lines


def _reward_lines(data: dict[str, Any]) -> list[str]:
    prompts = _count(data, "prompts")
    signal = f"informative groups {_count(data, 'mixed_groups')}/{prompts}"
    tokens = f"tokens {_count(data, 'rollout_tokens') + _count(data, 'tokens')}"
    if "turns/delta" in data:  # a mean reward over the rows of all turns means little
        return [f"  {signal}   {tokens}", f"  {_turns(data, 'turns/')}"]
    head = f"  reward {data.get('critic/score/mean', 0.0):.3f}   {signal}"
    if "hint/used_level_1" not in data:
        return [f"{head}   {tokens}"]
    num_at_first = round((1 - data.get("hint/zero_signal_before", 0.0)) * prompts)
    used = itertools.chain(["used_no_hint"], map("used_level_{}".format, itertools.count(1)))
    there = itertools.takewhile(lambda name: f"hint/{name}" in data, used)
    levels = " ".join(f"{level}:{_count(data, name)}" for level, name in enumerate(there))
    written = f"{_count(data, 'generate_success')}/{_count(data, 'generate_requested')}"
    return [
        f"{head}, {num_at_first} at the first level tried",
        f"  hint levels {levels}   hints written {written}   {tokens}",
    ]


def _turns(data: dict[str, Any], prefix: str) -> str:
    """Return what the further turns change: accuracies, their difference with its interval."""

    def share(name: str, sign: str = "") -> str:
        return f"{100 * data[prefix + name]:{sign}.1f}"

    interval = f"[{share('delta_low', '+')}, {share('delta_high', '+')}]"
    return (
        f"first turn {share('acc_t1')} % correct, last {share('acc_t2')} %: "
        f"{share('delta', '+')} {interval}   wrong to correct {share('wrong_to_right')} %, "
        f"correct to wrong {share('right_to_wrong')} %, same answer {share('unchanged')} %"
    )


def stopped_line(folder: RunFolder, checkpoints: str) -> str:
    """Return how to continue a run that was stopped, and from which step."""
    step = resume_step(checkpoints)
    where = f"resumes after step {step}" if step else "starts over (no checkpoint yet)"
    return f"stopped: with hint.run_dir={folder.root} the same command {where}"


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
    """Shows the run's console file as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = path.stat().st_size if path.exists() else 0  # what earlier starts have shown

    def show(self) -> None:
        """Show the lines that were written since the last call."""
        if not self._path.exists():
            return
        with open(self._path, "rb") as file:
            file.seek(self._seen)
            whole, end, _ = file.read().rpartition(b"\n")
        self._seen += len(whole) + len(end)
        with contextlib.suppress(OSError):  # a closed terminal ends no run: the lines are a file
            sys.stdout.write((whole + end).decode(errors="replace"))
            sys.stdout.flush()


def _seconds(data: dict[str, Any], name: str) -> str:
    return f"{data.get(f'timing_s/{name}', 0.0):.1f} s"


def _count(data: dict[str, Any], name: str) -> int:
    return int(data.get(f"hint/{name}", 0))

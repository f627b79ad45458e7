"""Report a step on the console in two or three lines; everything else goes to files."""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from recipe.run.checkpoints import resume_step
from recipe.run.rows import accuracies
from recipe.run.run_folder import RunFolder

_WINDOW = 20  # steps whose mean length gives the time left
_SAMPLES = re.compile(r"samples (\d+)/(\d+)")
_SAMPLES_EVERY_S = 10.0


class StepReporter:
    """Replaces verl's ``Tracking`` and passes everything on to it, each call within ``limit()``."""

    def __init__(
        self,
        tracking: Any,
        folder: RunFolder,
        total_steps: int,
        limit: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._tracking = tracking
        self._limit = limit
        self._folder = folder
        self._total = total_steps
        self._pace = Pace(total_steps)

    def log(self, data: dict[str, Any], step: int, backend: Any = None) -> None:
        """Send one step's metrics to the file, to the backends, and in short to the console."""
        self._folder.append_metrics(step, data)
        with self._limit():
            self._tracking.log(data=data, step=step, backend=backend)
        left = self._pace.left(step, data.get("timing_s/step"))
        for line in describe(data, f"step {step}/{self._total}", left):
            self._folder.say(line)

    def finish(self, exit_code: int = 0) -> None:
        """Close the backends."""
        with self._limit():
            self._tracking.finish(exit_code=exit_code)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tracking, name)


class Pace:
    """Estimate the time left from the mean of the latest units and what lay between them."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._clock = clock
        self._ends: deque[tuple[int, float]] = deque(maxlen=_WINDOW + 1)

    def left(self, done: int, unit_s: float | None = None) -> str:
        """Return the time left after ``done`` units, such as ``7 min left``; empty when unknown.

        Args:
            done: Units done so far, also before this process began.
            unit_s: Seconds of the unit that has just ended, all that is known after the first.
        """
        self._ends.append((done, self._clock()))
        (first, began), (_, ended) = self._ends[0], self._ends[-1]
        mean_s = (ended - began) / (done - first) if done > first else unit_s
        if mean_s is None or done >= self._total:
            return ""
        return f"{duration(mean_s * (self._total - done))} left"


def duration(seconds: float) -> str:
    """Return a time to plan by: ``40 s``, ``7 min``, ``2 h 5 min``, ``3 d 4 h``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    hours, days = minutes // 60, minutes // 1440
    if not hours:
        return f"{minutes} min"
    return f"{days} d {hours % 24} h" if days else f"{hours} h {minutes % 60} min"


def describe(data: dict[str, Any], head: str, left: str = "") -> list[str]:
    """Return up to three lines on a training step, and those on a validation.

    With a multi-turn method the turns replace the hints; a method with neither shows neither.
    """
    lines = []
    if "timing_s/step" in data:
        lines = [_time_line(data, head, left), *_reward_lines(data)]
    shares = accuracies(data)
    with_turns = [name for name in shares if f"val-turns/{name}/delta" in data]
    lines += [
        f"  validation at {head}, {name}: {_turns(data, f'val-turns/{name}/')}"
        for name in with_turns
    ]
    if shares and not with_turns:
        shown = "  ".join(f"{name} {100 * value:.1f} %" for name, value in shares.items())
        lines.append(f"  validation at {head}, no hints: {shown}")
    return lines


def stopped_line(folder: RunFolder, checkpoints: str) -> str:
    """Return how to continue a run that was stopped, and from which step."""
    step = resume_step(checkpoints)
    where = f"resumes after step {step}" if step else "starts over (no checkpoint yet)"
    return f"stopped: with hint.run_dir={folder.root} the same command {where}"


def closing_lines(folder: RunFolder) -> list[str]:
    """Sum the run up: accuracies at its ends, hint use, and where everything is."""
    rows = folder.read_metrics()
    validations = [row for row in rows if accuracies(row)]
    steps = [row for row in rows if "hint/prompts" in row]
    lines = []
    for name in accuracies(validations[-1]) if validations else ():
        # A resumed run may have a file more than its first validation had.
        own = [row for row in validations if name in accuracies(row)]
        ends, prefix = own[:1] + own[1:][-1:], f"val-turns/{name}/"
        if f"{prefix}delta" in own[-1]:
            lines += [f"  {name} at step {row['step']}: {_turns(row, prefix)}" for row in ends]
        else:
            values = (f"{100 * accuracies(row)[name]:.1f} % at step {row['step']}" for row in ends)
            lines.append(f"  {name}, without hints: {', '.join(values)}")
    if steps and _has_levels(steps[-1]):
        quarter = max(1, len(steps) // 4)
        early, late = (
            sum(row["hint/prompts_with_hint"] for row in part)
            / sum(row["hint/prompts"] for row in part)
            for part in (steps[:quarter], steps[-quarter:])
        )
        lines.append(
            f"  prompts trained under a hint: {100 * early:.0f} % in the first quarter of the "
            f"steps, {100 * late:.0f} % in the last"
        )
    return [*lines, f"  everything is in {folder.root}"]


class Console:
    """Shows the run's console file as it grows; of lines that count samples, one in a while."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0
        self._printed_at = time.monotonic()

    def show(self) -> None:
        """Show the lines that were written since the last call."""
        if not self._path.exists():
            return
        with open(self._path, "rb") as file:
            file.seek(self._seen)
            whole, end, _ = file.read().rpartition(b"\n")
        self._seen += len(whole) + len(end)
        for line in whole.decode(errors="replace").split("\n") if end else ():
            samples = _SAMPLES.match(line)
            now = time.monotonic()
            if samples and samples[1] != samples[2]:
                if now - self._printed_at < _SAMPLES_EVERY_S:
                    continue
                self._printed_at = now
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def _time_line(data: dict[str, Any], head: str, left: str) -> str:
    phases = {
        "rollout": "gen",
        "log-probs": "old_log_prob",
        "update": "update_actor",
        "sync": "update_weights",
    }
    times = ", ".join(f"{word} {_seconds(data, name)}" for word, name in phases.items())
    return f"{head}  {_seconds(data, 'step')}  ({times})" + (f"  {left}" if left else "")


def _reward_lines(data: dict[str, Any]) -> list[str]:
    prompts = _count(data, "prompts")
    signal = f"prompts with signal {_count(data, 'mixed_groups')}/{prompts}"
    tokens = f"tokens {_count(data, 'rollout_tokens') + _count(data, 'tokens')}"
    if "turns/delta" in data:
        # A mean reward over the rows of all turns means little.
        return [f"  {signal}   {tokens}", f"  {_turns(data, 'turns/')}"]
    head = f"  reward {data.get('critic/score/mean', 0.0):.3f}   {signal}"
    if not _has_levels(data):
        return [f"{head}   {tokens}"]
    num_at_first = round((1 - data.get("hint/zero_signal_before", 0.0)) * prompts)
    used = itertools.chain(["used_no_hint"], map("used_level_{}".format, itertools.count(1)))
    there = itertools.takewhile(lambda name: f"hint/{name}" in data, used)
    levels = " ".join(f"{level}:{_count(data, name)}" for level, name in enumerate(there))
    written = f"{_count(data, 'generate_success')}/{_count(data, 'generate_requested')}"
    faults = [
        f"{name.removeprefix('hint/fault_')} {count:.0f}"
        for name, count in data.items()
        if name.startswith("hint/fault_")
    ]
    written += f" ({', '.join(faults)})" if faults else ""
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
        f"first turn {share('acc_t1')} % right, last {share('acc_t2')} %: "
        f"{share('delta', '+')} {interval}   wrong to right {share('wrong_to_right')} %, "
        f"right to wrong {share('right_to_wrong')} %, same answer {share('unchanged')} %"
    )


def _has_levels(data: dict[str, Any]) -> bool:
    return any(name.startswith("hint/used_level_") for name in data)


def _seconds(data: dict[str, Any], name: str) -> str:
    return f"{data.get(f'timing_s/{name}', 0.0):.1f} s"


def _count(data: dict[str, Any], name: str) -> int:
    return int(data.get(f"hint/{name}", 0))

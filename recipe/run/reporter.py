"""Report a step in one line, or as a row of a table on a terminal; the rest goes to files."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from recipe.run.errors import DataError
from recipe.run.run_folder import RunFolder, accuracies, by_step, read_rows

# What the console calls the phases of a step: verl's name, the mark in the bar, its colour.
_PHASES = {
    "rollout": ("gen", "█", "blue"),
    "log-probs": ("old_log_prob", "▓", "magenta"),
    "update": ("update_actor", "▒", "green"),
    "sync": ("update_weights", "░", "yellow"),
}
_WITH_TABLES = ("wandb", "trackio")
_RESPONSE_COLUMNS = ("level", "response", "extracted", "reason", "trains")
_BAR, _HEIGHTS = 14, "▁▂▃▄▅▆▇█"  # characters of a step's bar; the marks of a share
_STEP_LINE = re.compile(r"step +\d+/\d+  (?:.*  (\S+ left)$)?")


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

    def log_samples(self, samples: Sequence[Mapping[str, Any]], step: int) -> None:
        """Send rows of ``samples.jsonl`` to wandb and trackio, as a table with a row a response."""
        import pandas

        rows = [
            {
                "step": step,
                "problem_id": sample["problem_id"],
                "problem": sample["problem"],
                "hint": sample["rounds"][each["round"]]["hint"],
                **{name: each[name] for name in _RESPONSE_COLUMNS},
                **{name: float(each[name]) for name in ("score", "reward")},
            }
            for sample in samples
            for each in sample["responses"]
        ]
        for name in [each for each in _WITH_TABLES if rows and each in self._tracking.logger]:
            backend = importlib.import_module(name)
            table = backend.Table(dataframe=pandas.DataFrame(rows))
            backend.log({"train/samples": table}, step=step)

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
        told += [f"{word} {_seconds(data, name):5.1f}" for word, (name, *_) in _PHASES.items()]
        told += [f"{word} {value}" for word, value in _signal(data).items()]
    told += [f"accuracy {name}: {value}" for name, value in _validations(data).items()]
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
    if levels := _levels(data):
        told["levels"] = " ".join(f"{level}:{num:<{width}}" for level, num in enumerate(levels))
        told["hints"] = of("generate_success", "generate_requested")
    return told | {"tokens": f"{_count(data, 'rollout_tokens') + _count(data, 'tokens'):7}"}


def _levels(data: Mapping[str, Any]) -> list[int]:
    """Return the prompts by the hint level that trains; none of a method without hints."""
    names = ("used_no_hint", *(f"used_level_{level}" for level in range(1, 100)))
    found = [_count(data, each) for each in names if f"hint/{each}" in data]
    return found if "hint/used_level_1" in data else []


def _validations(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the accuracy on each validation set, with turns what they change."""
    told = {name: f"{100 * value:.1f} %" for name, value in accuracies(data).items()}
    prefixes = {name: f"val-turns/{name}/" for name in told if f"val-turns/{name}/delta" in data}
    return told | {name: _turns(data, prefix) for name, prefix in prefixes.items()}


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
        f"  step {row['step']}, without hints, {name}: {value}"
        for row in validations[:1] + validations[1:][-1:]
        for name, value in _validations(row).items()
    ]
    page = f"  its page: hint report serve {shlex.quote(str(folder.root))}"
    return [*lines, f"  everything is in {folder.root}", page]


def step_table(rows: Sequence[Mapping[str, Any]], left: str = "") -> Any:
    """Return the newest steps as a table of rich, a row each, for a terminal."""
    from rich.table import Table
    from rich.text import Text

    trained = [_signal(row) for row in rows if "timing_s/step" in row]
    signal = [*trained[-1]][:2] if trained else []  # the rest is in the file
    sets = sorted({name for row in rows for name in accuracies(row)})
    has_levels = any(map(_levels, rows))
    table = Table(box=None, pad_edge=False, header_style="bold", caption_justify="left")
    for name in ("step", "seconds", *signal):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("phases", *(["levels"] if has_levels else []), *sets):
        table.add_column(name, no_wrap=True)
    for row in rows:
        is_trained = "timing_s/step" in row
        told = _signal(row) if is_trained else {}
        cells: list[Any] = [f"{_seconds(row, 'step'):.1f}" if is_trained else ""]
        cells += [told.get(name, "").strip() for name in signal]
        cells.append(Text.assemble(*_bar(row)))
        cells += [Text(_marks(_levels(row)), "cyan")] if has_levels else []
        found = _validations(row)
        table.add_row(str(row["step"]), *cells, *(found.get(name, "") for name in sets))
    key = [(f"{mark} {word}  ", colour) for word, (_, mark, colour) in _PHASES.items()]
    table.caption = Text.assemble(*key, (left, "bold"))
    return table


def _bar(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the phases of a step as marks with their colours, each as long as its share."""
    scale = _BAR / max(_seconds(row, "step"), 1e-9)
    return [(m * round(scale * _seconds(row, name)), style) for name, m, style in _PHASES.values()]


def _marks(counts: Sequence[int]) -> str:
    """Return a mark for each share, as high as it; a point for none."""
    most = len(_HEIGHTS) - 1
    return "".join(_HEIGHTS[round(most * n / sum(counts))] if n else "·" for n in counts)


class Console:
    """Shows the run's console file as it grows, from where it ends now.

    A file or a pipe gets the lines as they are; on a terminal a live table replaces the steps'.
    """

    def __init__(self, folder: RunFolder) -> None:
        folder.console.touch()
        self._file = folder.console.open(encoding="utf-8", errors="replace")
        self._file.seek(0, os.SEEK_END)
        self._metrics, self._live = folder.metrics, _live_display()

    def show(self) -> None:
        """Show what was written since the last call."""
        # A closed terminal ends no run: the lines are a file.
        with contextlib.suppress(OSError, DataError):
            text = self._file.read()
            if self._live is None:
                sys.stdout.write(text)
                sys.stdout.flush()
            elif text:
                self._show_live(text.splitlines())

    def close(self) -> None:
        """Show the rest, and leave the terminal as it was."""
        self.show()
        with contextlib.suppress(OSError):
            if self._live is not None:
                self._live.stop()

    def _show_live(self, lines: Sequence[str]) -> None:
        steps = [found for line in lines if (found := _STEP_LINE.match(line))]
        for line in lines:
            if not _STEP_LINE.match(line):
                self._live.console.print(line, markup=False, highlight=False)
        if steps:
            rows = by_step(read_rows(self._metrics))[-max(3, self._live.console.height - 6) :]
            self._live.start()
            self._live.update(step_table(rows, steps[-1][1] or ""), refresh=True)


def _live_display() -> Any:
    """Return rich's live display on a terminal that can show it; else nothing."""
    from rich.console import Console as Screen
    from rich.live import Live

    screen = Screen()
    is_plain = screen.is_dumb_terminal or screen.options.ascii_only
    return None if is_plain or not sys.stdout.isatty() else Live(console=screen, auto_refresh=False)


def _count(data: Mapping[str, Any], name: str) -> int:
    return int(data.get(f"hint/{name}", 0))


def _seconds(data: Mapping[str, Any], name: str) -> float:
    return data.get(f"timing_s/{name}", 0.0)

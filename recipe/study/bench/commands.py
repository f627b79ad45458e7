"""Runs of this package's commands with a limit, and what they leave: folder, end, no process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from recipe import REPOSITORY
from recipe.run.children import wait_until_gone
from recipe.run.errors import HintError

_MARK = "HINT_CHECK_RUN"
_END_S = 10.0  # of processes that were killed; one that waits for its disk does not end


class CommandError(HintError):
    """A command that did not end well."""


@dataclass(frozen=True)
class Finished:
    """A run that ended well."""

    folder: Path
    seconds: float

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Rows of ``metrics.jsonl`` that are training steps."""
        return [row for row in self.rows if "timing_s/step" in row]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows of ``metrics.jsonl``."""
        text = (self.folder / "metrics.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def mean(self, metric: str, *, skip: int = 0) -> float:
        """Return the mean of a metric over the steps after the first ``skip``."""
        values = [row[metric] for row in self.steps[skip:] if metric in row]
        if not values:
            raise CommandError(f"{self.folder}: no step has {metric}")
        return sum(values) / len(values)


def run_command(
    arguments: Sequence[str],
    folder: Path,
    limit_s: float,
    *,
    until: Callable[[], bool] | None = None,
    more_env: Mapping[str, str] | None = None,
) -> Finished:
    """Run ``python ARGUMENTS`` to its end, or kill it when ``until`` is true.

    Args:
        arguments: The script and what it is given.
        folder: Of the run; ``console.txt`` beside its files gets the output.
        limit_s: Longest time; all processes of the run are killed then, and at its end.
        until: Asked often; once true, the run is killed, which counts as ending well.
        more_env: Further variables of the environment.

    Raises:
        CommandError: With the last line of the output, or naming the limit.
    """
    folder.mkdir(parents=True, exist_ok=True)
    console, began = folder / "console.txt", time.monotonic()
    environment = {**os.environ, **(more_env or {}), _MARK: str(folder)}
    with open(console, "ab") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=REPOSITORY,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        is_cut = _wait(process, arguments[0], limit_s, until)
        seconds = time.monotonic() - began
    finally:
        _end(process, folder)
    if is_cut:
        return Finished(folder, seconds)
    if process.returncode:
        lines = console.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        errors = [each for each in lines if "rror" in each]
        told = (errors or lines or ["no output"])[-1]
        raise CommandError(f"exit code {process.returncode}: {told[:300]} ({console})")
    return Finished(folder, seconds)


def _wait(
    process: subprocess.Popen, program: str, limit_s: float, until: Callable[[], bool] | None
) -> bool:
    """Return whether ``until`` ended the wait."""
    deadline = time.monotonic() + limit_s
    while process.poll() is None:
        if until is not None and until():
            return True
        if time.monotonic() > deadline:
            raise CommandError(f"{program} did not end within {limit_s:g} s")
        time.sleep(0.1)
    return False


def _end(process: subprocess.Popen, folder: Path) -> None:
    """Kill what is left: Ray's and vLLM's processes have sessions of their own."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
    killed = []
    for other in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if other.environ().get(_MARK) == str(folder):
                other.kill()
                killed.append(other)
    wait_until_gone(killed, _END_S)

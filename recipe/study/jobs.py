"""Run jobs in processes of their own: Ray and verl cannot be started twice in one process.

Campaigns and Hydra's sweeps use it. A job that fails ends no other.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString

from recipe.run.children import deferred_signals, end_children, pause, start_child
from recipe.run.errors import ConfigError, HintError, one_line

_POLL_S = 0.2
_PLACES = ("hydra.sweep.dir", "hint.run_dir", "trainer.experiment_name")


@dataclass
class Job:
    """Something that Python programs make in steps.

    ``next_step`` returns what comes next and the arguments of the program that does it, or
    ``None`` when all is done; it reads that from the disk. ``log`` takes what the programs print;
    without one this process's console does.
    """

    name: str
    next_step: Callable[[], tuple[str, Sequence[str]] | None]
    log: Path | None = None


def run_jobs(jobs: Sequence[Job], num_at_once: int = 1, *, retries: bool = False) -> None:
    """Make the jobs, some side by side; a signal ends them all.

    Args:
        jobs: In their order.
        num_at_once: They share the machine's processors.
        retries: Whether a step that failed is tried once more.

    Raises:
        HintError: At the end, naming those that failed.
    """
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if num_at_once > 1:
        env.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // num_at_once)))
    failed: dict[str, str] = {}
    waiting = deque(_make(job, env, failed, retries=retries) for job in jobs)
    running: dict[Iterator[subprocess.Popen], subprocess.Popen] = {}
    with deferred_signals():
        try:
            while waiting or running:
                ready = [each for each, process in running.items() if process.poll() is not None]
                free = min(len(waiting), num_at_once - len(running))
                ready += [waiting.popleft() for _ in range(free)]
                for each in ready:
                    running.pop(each, None)
                running |= {each: process for each in ready if (process := next(each, None))}
                pause(_POLL_S)
        finally:
            end_children([*running.values()])
    if failed:
        shown = ", ".join(f"{name} ({why})" for name, why in failed.items())
        raise HintError(f"{len(failed)} of {len(jobs)} jobs failed: {shown}")


def _make(
    job: Job, env: Mapping[str, str], failed: dict[str, str], *, retries: bool
) -> Iterator[subprocess.Popen]:
    """Yield the process of each step, and go on when it has ended; ``failed`` gets why it ended."""
    last, tried = "", set()
    try:
        while found := job.next_step():
            step, arguments = found
            if step == last:
                raise HintError(f"{step}: it left nothing; trainer.save_freq must be above 0")
            say(f"{job.name}: {step}")
            with open(job.log, "a") if job.log else contextlib.nullcontext() as log:
                if log:
                    print("$", sys.executable, *arguments, file=log, flush=True)
                process = start_child([sys.executable, *arguments], env=env, log=log)
            yield process
            last = step
            if process.returncode:
                why = f"{step}: exit code {process.returncode}"
                if not retries or step in tried:
                    raise HintError(why)
                say(f"{job.name}: {why}; trying again")
                tried.add(step)
                last = ""
        say(f"{job.name}: done")
    except (HintError, OSError, ValueError) as error:  # of this job, which ends no other
        failed[job.name] = one_line(error)
        say(f"{job.name}: {failed[job.name]}")


def run_sweep(command: Sequence[str], settings: Sequence[str], options: Sequence[str]) -> None:
    """Run each job of ``--multirun`` in a folder of its own, one after the other.

    Args:
        command: The program that runs one job, and further arguments for it.
        settings: Those of the command line, sweeps included.
        options: Hydra's, without the one for the sweep.
    """
    overrides = OverridesParser.create().parse_overrides([*settings])
    swept = {each.get_key_element() for each in overrides if each.is_sweep_override()}
    given = {each.get_key_element().lstrip("+"): str(each.value()) for each in overrides}
    if wrong := [name for name in _PLACES if name in swept or "${" in given.get(name, "")]:
        raise ConfigError(
            f"{wrong[0]} is the folder of the whole sweep, in which each job gets its own: give "
            f"it one value"
        )
    places = [given[name] for name in _PLACES[:2] if name in given]
    name = given.get(_PLACES[2], time.strftime("multirun-%Y%m%d-%H%M%S"))
    root = Path([*places, f"outputs/{name}"][0]).absolute()
    own = ("hydra.mode", "hydra.sweep", "hydra/sweep")
    kept = [each for each in overrides if not each.get_key_element().startswith(own)]
    jobs = []
    for number, values in enumerate(BasicSweeper.split_arguments(kept, None)[0]):
        parts = [each.partition("=") for each in values]
        words = [f"{key.rsplit('.', 1)[-1]}-{value}" for key, _, value in parts if key in swept]
        name = re.sub(r"[^\w.-]+", "_", "-".join([str(number), *words]))[:100].rstrip("._-")
        of_run = re.sub(r"[^\w.-]+", "-", f"{root.name}-{name}")
        place = [f"{_PLACES[1]}={quoted(str(root / name))}", f"{_PLACES[2]}={quoted(of_run)}"]
        once = iter([("run", [*command, *values, *place, *options])])
        jobs.append(Job(name, lambda once=once: next(once, None)))
    say(f"{len(jobs)} jobs in {root}")
    run_jobs(jobs)


def quoted(value: str) -> str:
    """Return a value as an override may hold it, whatever characters it has."""
    return QuotedString(value, Quote.single).with_quotes()


def say(line: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)

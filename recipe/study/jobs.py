"""Run jobs in processes of their own; one that fails ends no other.

Campaigns and Hydra's sweeps use it: Ray and verl cannot be started twice in one process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString

from recipe.run.children import deferred_signals, end_children, pause, start_child
from recipe.run.errors import ConfigError, HintError, one_line

_POLL_S, _SAY_EVERY_S = 0.2, 60.0
_PLACES = ("hydra.sweep.dir", "hint.run_dir", "trainer.experiment_name")
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Job:
    """Something that programs make in steps.

    Attributes:
        name: For the console.
        next_step: Returns what comes next, and the arguments of the Python program that does it;
            ``None`` when all is done. It reads that from the disk, and remembers nothing.
        log: File that takes what the programs print; ``None``: this process's console.
    """

    name: str
    next_step: Callable[[], tuple[str, Sequence[str]] | None]
    log: Path | None = None


@dataclass
class Driver:
    """Makes jobs to their ends, some side by side; a signal ends them all.

    Attributes:
        num_at_once: Jobs that run together; they share the machine's processors.
        say: Takes a line for the person at the console.
        retries: Whether a failed step is tried once more.
        failed: Name of each job that failed -> why.
    """

    num_at_once: int
    say: Callable[[str], None]
    retries: bool = True
    failed: dict[str, str] = field(default_factory=dict)
    _waiting: deque[tuple[Job, str]] = field(default_factory=deque)  # with the step that ended well
    _running: list[tuple[Job, str, subprocess.Popen]] = field(default_factory=list)
    _tried: set[tuple[str, str]] = field(default_factory=set)

    def make(self, jobs: Sequence[Job]) -> None:
        """Make the jobs; ``failed`` has those that did not get to their ends."""
        self._waiting.extend((job, "") for job in jobs)
        said_s = time.monotonic()
        with deferred_signals():
            try:
                while self._waiting or self._running:
                    while self._waiting and len(self._running) < self.num_at_once:
                        self._begin(*self._waiting.popleft())
                    pause(_POLL_S)
                    for each in [each for each in self._running if each[2].poll() is not None]:
                        self._running.remove(each)
                        self._end(*each)
                    if self._running and time.monotonic() > said_s + _SAY_EVERY_S:
                        said_s = time.monotonic()
                        now = ", ".join(f"{job.name} {step}" for job, step, _ in self._running)
                        ended = len(jobs) - len(self._waiting) - len(self._running)
                        self.say(f"{ended} of {len(jobs)} ended; now {now}")
            finally:
                end_children([process for *_, process in self._running])

    def _begin(self, job: Job, before: str) -> None:
        """Start what comes next for a job."""
        try:
            found = job.next_step()
            if found is None:
                self.say(f"{job.name}: done")
                return
            step, arguments = found
            if step == before:
                raise HintError(
                    f"{step}: ended well and left nothing; trainer.save_freq must be above 0"
                )
            self.say(f"{job.name}: {step}")
            self._running.append((job, step, self._start(job, [sys.executable, *arguments])))
        except (HintError, OSError, ValueError) as error:  # of this job, which ends no other
            self.failed[job.name] = one_line(error)
            self.say(f"{job.name}: {self.failed[job.name]}")

    def _start(self, job: Job, command: Sequence[str]) -> subprocess.Popen:
        env = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if self.num_at_once > 1:
            env.setdefault(
                "OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // self.num_at_once))
            )
        if job.log is None:
            return start_child(command, env=env)
        with open(job.log, "a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            return start_child(command, env=env, log=log)

    def _end(self, job: Job, step: str, process: subprocess.Popen) -> None:
        """Queue a job for its next step, or again, or note why it failed."""
        if process.returncode == 0:
            self._waiting.appendleft((job, step))
            return
        why = f"{step}: exit code {process.returncode}"
        if self.retries and (job.name, step) not in self._tried:
            self._tried.add((job.name, step))
            self._waiting.append((job, ""))
            why += "; trying again"
        else:
            self.failed[job.name] = why
        self.say(f"{job.name}: {why}")


def run_sweep(command: Sequence[str], settings: Sequence[str], options: Sequence[str]) -> None:
    """Run each job of ``--multirun`` in a folder of its own, one after the other.

    Args:
        command: The program that runs one job, and further arguments for it.
        settings: Those of the command line, sweeps included.
        options: Hydra's, without the one for the sweep.

    Raises:
        ConfigError: If the folder of the whole sweep is not one for all jobs.
        HintError: At the end, if some jobs failed.
    """
    overrides = OverridesParser.create().parse_overrides([*settings])
    swept = {each.get_key_element() for each in overrides if each.is_sweep_override()}
    given = {each.get_key_element().lstrip("+"): str(each.value()) for each in overrides}
    if wrong := [name for name in _PLACES if name in swept or "${" in given.get(name, "")]:
        raise ConfigError(
            f"{wrong[0]} is the folder of the whole sweep, in which each job gets its own: give "
            f"it one value"
        )
    places = [f"outputs/{given[_PLACES[2]]}"] if _PLACES[2] in given else []
    places = [given[name] for name in _PLACES[:2] if name in given] + places
    root = Path([*places, time.strftime("outputs/multirun-%Y%m%d-%H%M%S")][0]).absolute()
    own = ("hydra.mode", "hydra.sweep", "hydra/sweep")
    kept = [each for each in overrides if not each.get_key_element().startswith(own)]
    jobs = []
    for number, values in enumerate(BasicSweeper.split_arguments(kept, None)[0]):
        parts = [each.partition("=") for each in values]
        words = [f"{key.rsplit('.', 1)[-1]}-{value}" for key, _, value in parts if key in swept]
        name = re.sub(r"[^\w.-]+", "_", "-".join([str(number), *words]))
        name = name[:_LONGEST_NAME].rstrip("._-")
        of_run = re.sub(r"[^\w.-]+", "-", f"{root.name}-{name}")
        place = [f"{_PLACES[1]}={quoted(str(root / name))}", f"{_PLACES[2]}={quoted(of_run)}"]
        once = iter([("run", [*command, *values, *place, *options])])
        jobs.append(Job(name, lambda once=once: next(once, None)))
    print(f"{len(jobs)} jobs in {root}", flush=True)
    driver = Driver(1, lambda line: print(line, flush=True), retries=False)
    driver.make(jobs)
    if driver.failed:
        shown = ", ".join(f"{name} ({why})" for name, why in driver.failed.items())
        raise HintError(f"{len(driver.failed)} of {len(jobs)} jobs failed: {shown}")


def quoted(value: str) -> str:
    """Return a value as an override may hold it, whatever characters it has."""
    return QuotedString(value, Quote.single).with_quotes()

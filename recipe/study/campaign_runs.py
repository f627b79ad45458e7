"""Make a campaign's runs: each trains, exports and evaluates in processes of its own.

What is done is read from the run's folder, never remembered: after any interruption, run the
same command again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from recipe.hint.adapter.preflight.machine import has_gpu
from recipe.hint.adapter.preflight.settings import files_of
from recipe.hint.command.aliases import resolve_aliases
from recipe.hint.command.compose import CONFIG_DIR, choose_hardware, explain, set_config_paths
from recipe.run.checkpoints import resume_step, step_folder
from recipe.run.children import deferred_signals, end_children, pause, start_child
from recipe.run.errors import ConfigError, HintError, one_line
from recipe.run.rows import read_rows
from recipe.run.run_folder import RunFolder
from recipe.run.typed import read_yaml
from recipe.run.whole_file import claimed, write_whole
from recipe.study.campaign import (
    CAMPAIGN_FILE,
    EVALUATION,
    MODEL_FOLDER,
    RESULTS,
    RUN_FILE,
    Campaign,
    Run,
    kept_file,
)
from recipe.study.jobs import quoted

LOG = "campaign.log"
# Without what a training may be given and an evaluation refuses: its weights have the adapter.
_EVALUATES = (
    *("trainer.eval_only=true", "data.val_max_samples=-1"),
    "actor_rollout_ref.model.lora_adapter_path=null",
)
_POLL_S, _SAY_EVERY_S = 0.2, 60.0
_FAULTS = (HintError, OSError, ValueError)  # of one run, which end no other


@dataclass(frozen=True)
class Job:
    """A run with its place, and the programs that make it.

    Attributes:
        run: What to make.
        folder: Where.
        programs: Folder of ``main_hint.py`` and ``main_export.py``.
    """

    run: Run
    folder: Path
    programs: Path

    def state(self) -> str:
        """Return ``done``, or a description of what comes next.

        Raises:
            ConfigError: If the folder holds another run.
        """
        self.run.check_made(self.folder)
        if (self.folder / RESULTS).is_file() or kept_file(self.folder).is_file():
            return "done"
        step, last = self._trained()
        if last and step == last:
            return "evaluate" if (self.folder / MODEL_FOLDER).is_dir() else "export"
        return f"train after step {step}" if step else "train"

    def command(self) -> list[str]:
        """Return the arguments of the program that does what comes next."""
        place, state = self._place(), self.state()
        if state == "export":
            step, _ = self._trained()
            checkpoint = step_folder(self.folder / "checkpoints", step)
            arguments = [str(checkpoint), str(self.folder / MODEL_FOLDER), "--dtype", "fp32"]
            return [str(self.programs / "main_export.py"), *arguments]
        train = [str(self.programs / "main_hint.py"), *self.run.settings]
        if state != "evaluate":
            return [*train, place]
        weights = f"actor_rollout_ref.model.path={quoted(str(self.folder / MODEL_FOLDER))}"
        return [*train, *self.run.evaluation, *_EVALUATES, weights, place]

    def checks(self) -> list[list[str]]:
        """Return the arguments that check the training, then the evaluation; they start nothing.

        The evaluation is checked as one of the weights that the training begins with, unless there
        are responses already.
        """
        train = [str(self.programs / "main_hint.py"), *self.run.settings]
        end = ["preflight_only=true", self._place()]
        if (self.folder / EVALUATION).exists():
            return [[*train, *end]]
        return [[*train, *end], [*train, *self.run.evaluation, *_EVALUATES, *end]]

    def _place(self) -> str:
        return f"hint.run_dir={quoted(str(self.folder))}"

    def complete_metrics(self) -> None:
        """Add the last step's line if the training was killed after its checkpoint."""
        step, _ = self._trained()
        RunFolder(self.folder).restore_metrics(step, step_folder(self.folder / "checkpoints", step))

    def steps(self) -> int:
        """Return the last step that the run wrote metrics of; 0 where they cannot be read."""
        with contextlib.suppress(HintError):
            rows = read_rows(self.folder / "metrics.jsonl")
            return max((row["step"] for row in rows), default=0)
        return 0

    def _trained(self) -> tuple[int, int]:
        """Return the step to resume from and the last step; 0 where there is none."""
        config = self.folder / "config.yaml"
        if not config.is_file():
            return 0, 0
        try:
            node = read_yaml(config.read_text("utf-8"))
            last = int(node["trainer"]["total_training_steps"])
        except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError) as error:
            raise ConfigError(
                f"{config} cannot be read ({error}); restore it, or move {self.folder} away"
            ) from error
        return resume_step(self.folder / "checkpoints") or 0, last


@dataclass
class _Running:
    """A job at work."""

    job: Job
    state: str
    process: subprocess.Popen
    began_s: float
    is_from_start: bool


@dataclass
class Driver:
    """Makes jobs, some at a time, and tells how far it is.

    Retries a failed job once per state that it reaches.

    Attributes:
        root: Folder of the campaign.
        num_at_once: Jobs side by side; they share the machine's processors.
        say: Takes a line for the person at the console.
        seconds: How long each job took that was made from its beginning.
        failed: Job's name -> why.
    """

    root: Path
    num_at_once: int
    say: Callable[[str], None]
    seconds: list[float] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    _failed_at: set[tuple[str, str]] = field(default_factory=set)  # a job's name and its state
    _waiting: deque[Job] = field(default_factory=deque)

    def make(self, jobs: Sequence[Job], prepare: Callable[[], object] | None = None) -> None:
        """Make every job that is not done; one that fails ends no other.

        Args:
            jobs: What to make.
            prepare: Called first, once no other command can write to the folder.

        Raises:
            HintError: At the end, if some failed.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with claimed(self.root / ".lock"), deferred_signals():
            if prepare is not None:
                prepare()
            self._waiting.extend(each for each in jobs if each.state() != "done")
            total = len(self._waiting)
            self.say(f"{len(jobs)} runs, {len(jobs) - total} of them done")
            self._drive(total)
        if self.failed:
            shown = ", ".join(f"{name} ({why})" for name, why in self.failed.items())
            raise HintError(
                f"{len(self.failed)} of {len(jobs)} runs failed: {shown}; {LOG} in each run's "
                f"folder has the reason, and the same command makes them again"
            )

    def _drive(self, total: int) -> None:
        said_s = time.monotonic()
        running: dict[str, _Running] = {}  # by the job's name
        try:
            while self._waiting or running:
                while self._waiting and len(running) < self.num_at_once:
                    if begun := self._begin(self._waiting.popleft()):
                        running[begun.job.run.name] = begun
                pause(_POLL_S)
                for name, each in [*running.items()]:
                    if now := self._look_at(each):
                        running[name] = now
                    else:
                        del running[name]
                if time.monotonic() > said_s + _SAY_EVERY_S and running:
                    said_s = time.monotonic()
                    self.say(self._progress([*running.values()], len(self._waiting), total))
        finally:
            end_children([each.process for each in running.values()])

    def _begin(self, job: Job, before: _Running | None = None) -> _Running | None:
        """Start what comes next for a job; return nothing if it cannot be started."""
        try:
            state = job.state()
            if before is None:
                self.say(f"{job.run.name}: {state}")
            began_s = before.began_s if before else time.monotonic()
            return self._start(job, began_s, before.is_from_start if before else state == "train")
        except _FAULTS as error:
            return self._fail(job, one_line(error))

    def _fail(self, job: Job, why: str, *, by_chance: bool = True) -> None:
        """Queue a failed job again, once per state, where another try may end otherwise."""
        name = job.run.name
        try:
            state = job.state()
        except _FAULTS:  # somebody has to look at its folder
            state = ""
        if state == "done":
            self.say(f"{name}: done, though {why}")
        elif by_chance and state and (name, state) not in self._failed_at:
            self._failed_at.add((name, state))
            self.say(f"{name}: {why}; trying again, from: {state}")
            self._waiting.append(job)
        else:
            self.failed[name] = why
            self.say(f"{name}: {why}")

    def _start(self, job: Job, began_s: float, is_from_start: bool) -> _Running:
        job.folder.mkdir(parents=True, exist_ok=True)
        write_whole(job.folder / RUN_FILE, json.dumps(job.run.as_json(), indent=1) + "\n")
        state, command = job.state(), job.command()
        if state == "export":
            job.complete_metrics()
            for left in job.folder.glob(f".{MODEL_FOLDER}.*"):  # by an export that was killed
                _remove(left)
        if state.startswith("train"):
            # It was made with weights that the run no longer has.
            for name in (EVALUATION, MODEL_FOLDER):
                _remove(job.folder / name)
        with open(job.folder / LOG, "a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n")
            log.flush()
            env = environment(self.num_at_once)
            process = start_child([sys.executable, *command], env=env, log=log)
        return _Running(job, state, process, began_s, is_from_start)

    def _look_at(self, running: _Running) -> _Running | None:
        """Return what is running for this job now; nothing if it has ended."""
        code, job = running.process.poll(), running.job
        if code is None:
            return running
        if code:
            return self._fail(job, f"{running.state}: exit code {code}")
        try:
            state = job.state()
        except _FAULTS as error:
            return self._fail(job, one_line(error))
        if state == running.state:
            why = f"{state}: ended well and left nothing; trainer.save_freq must be above 0"
            return self._fail(job, why, by_chance=False)
        if state != "done":
            return self._begin(job, running)
        seconds = time.monotonic() - running.began_s
        self.seconds += [seconds] * running.is_from_start
        self.say(f"{job.run.name}: done after {seconds / 60:.1f} min")
        return None

    def _progress(self, running: Sequence[_Running], num_waiting: int, total: int) -> str:
        at = ", ".join(
            f"{each.job.run.name} {each.state} (step {each.job.steps()})" for each in running
        )
        ended = total - num_waiting - len(running)
        left = ""
        if self.seconds:
            mean_s = sum(self.seconds) / len(self.seconds)
            begun_s = sum(min(time.monotonic() - each.began_s, mean_s) for each in running)
            left_s = ((total - ended) * mean_s - begun_s) / self.num_at_once
            left = f", about {left_s / 60:.0f} min left"
        return f"{ended} of {total} ended{left}; now {at}"


def jobs_of(campaign: Campaign, root: Path, programs: Path, only: Sequence[str] = ()) -> list[Job]:
    """Return the jobs of a campaign, of some of its arms where ``only`` names them.

    Raises:
        ConfigError: If a name is not an arm.
    """
    for name in only:
        if name not in campaign.arms:
            raise ConfigError(f"--only {name}: the arms are {', '.join(campaign.arms)}")
    runs = [run for run in campaign.runs() if not only or run.arm in only]
    # The programs work in other folders than this one.
    return [Job(run, (root / run.name).absolute(), programs) for run in runs]


def check_claims(campaign: Campaign, jobs: Sequence[Job], path: Path) -> None:
    """Check that arms will be evaluated on the problems that are claimed of them.

    Arms whose jobs are done are left out, and those with files that cannot be read here: their own
    checks say why.

    Raises:
        ConfigError: Naming the campaign's file, the claim and what its arm is evaluated on.
    """
    runs = {job.run.arm: job.run for job in jobs if job.state() != "done"}
    sources: dict[str, set[str]] = {}
    for number, claim in enumerate(campaign.claims):
        for arm in (each for each in (claim.arm, claim.more_than) if each in runs):
            if arm not in sources:
                sources[arm] = _evaluated_on(runs[arm], path)
            if sources[arm] and claim.source not in sources[arm]:
                raise ConfigError(
                    f"{path}: claims[{number}]: {arm} will not be evaluated on {claim.source}; "
                    f"choose from {', '.join(sorted(sources[arm]))}, or change its data.val_files"
                )


def _evaluated_on(run: Run, path: Path) -> set[str]:
    """Return the data sources of a run's evaluation; none where a file cannot be read."""
    settings = [*run.settings, *run.evaluation]
    try:
        set_config_paths()
        settings, _ = choose_hardware(resolve_aliases(settings), has_gpu())
        with initialize_config_dir(str(CONFIG_DIR), version_base=None):
            files = files_of(compose("hint_trainer", settings), "data.val_files")
    except (HydraException, OmegaConfBaseException, ConfigError) as error:
        why = str(error) if isinstance(error, ConfigError) else explain(error, settings, CONFIG_DIR)
        raise ConfigError(f"{path}: arms.{run.arm}: {why}") from error
    try:
        tables = [pq.read_table(each, columns=["data_source"]) for each in files]
    except (OSError, KeyError, pa.ArrowException):
        return set()
    return {str(name) for table in tables for name in table["data_source"].unique().to_pylist()}


def keep_file(campaign: Campaign, path: Path, root: Path) -> None:
    """Keep the campaign's file with its runs, for the page of results.

    Raises:
        ConfigError: If a run that is there is not of this file; the file kept before stays.
    """
    for run in campaign.runs():
        run.check_made(root / run.name)
    root.mkdir(parents=True, exist_ok=True)
    write_whole(root / CAMPAIGN_FILE, path.read_text(encoding="utf-8"))


def _remove(path: Path) -> None:
    """Remove a folder, or a link to one."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def environment(num_at_once: int) -> Mapping[str, str]:
    """Return the environment of jobs: with so many at once they share the processors."""
    threads = max(1, (os.cpu_count() or 1) // num_at_once)
    shared = {"OMP_NUM_THREADS": str(threads)} if num_at_once > 1 else {}
    return {**shared, **os.environ, "PYTHONUNBUFFERED": "1"}

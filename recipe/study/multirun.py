"""``--multirun``: Hydra expands the sweep, and each of its jobs runs in a process of its own.

Ray and verl cannot be started twice in one process; and a job that is killed takes no other along.
"""

from __future__ import annotations

import contextlib
import functools
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.types import RunMode
from omegaconf import DictConfig

from recipe.hint.adapter.preflight.folder import check_folder, check_name
from recipe.run.children import KILLED_S, deferred_signals, ends_with_this, raise_deferred
from recipe.run.errors import HintError, Terminated

_RUN_DIR, _NAME = "hint.run_dir", "trainer.experiment_name"
_OPTIONS = ("-m", "--multirun")
_LONGEST_NAME = 100
# Of Hydra's own settings, those that make a sweep.
_OF_THE_SWEEP = re.compile(r"^[+~]*hydra[./](mode|sweep|sweeper|launcher)\b")
# How long an interrupted job may take to end Ray before it is interrupted again, then killed.
_GRACE_S = 30.0
_POLL_S = 1.0


@dataclass
class Sweep:
    """The jobs of one command.

    Attributes:
        script: The program that runs one job.
        options: Hydra's options of the command.
        settings: The command's settings, sweeps included.
        own_arguments: Further arguments of each job that Hydra does not know.
        ends: What became of each job: folder -> exit code.
    """

    script: str
    options: Sequence[str]
    settings: Sequence[str]
    own_arguments: Sequence[str] = ()
    ends: dict[Path, int] = field(default_factory=dict)

    @functools.cached_property
    def _overrides(self) -> list[Override]:
        return OverridesParser.create().parse_overrides(list(self.settings))

    def folder_settings(self) -> list[str]:
        """Return the settings that put the sweep's folder where the command wants its runs.

        Raises:
            ConfigError: If the name or folder cannot be one.
        """
        is_asked_for = any(each in self.options for each in _OPTIONS) or any(
            each.lower() == "hydra.mode=multirun" for each in self.settings
        )
        if not is_asked_for:
            return []
        # The values that are the same for every job and refer to no other setting.
        given = {
            each.get_key_element().lstrip("+"): each.value()
            for each in self._overrides
            if not each.is_sweep_override() and not each.is_delete() and not _refers(each)
        }
        if "hydra.sweep.dir" in given:
            return []
        if _RUN_DIR in given:
            check_folder(_RUN_DIR, given[_RUN_DIR])
            return [f"hydra.sweep.dir={quoted(str(given[_RUN_DIR]))}"]
        if _NAME in given:
            check_name(_NAME, given[_NAME])
            return [f"hydra.sweep.dir={quoted(f'outputs/{given[_NAME]}')}"]
        return []

    def run_job(self, config: DictConfig) -> str:
        """Run the job that Hydra has composed, to its end.

        Returns:
            A line that says how it ended; :meth:`check` raises for the failed ones.
        """
        hydra = HydraConfig.get()
        overrides = [str(each) for each in hydra.overrides.task]
        own_place: list[str] = []
        # Whether the jobs' folders follow from the settings, by a sweep or by a reference.
        if any(
            each.get_key_element().lstrip("+") in (_RUN_DIR, _NAME)
            and (each.is_sweep_override() or _refers(each))
            for each in self._overrides
        ):
            folder = Path(config.hint.run_dir).absolute()
        else:
            name = str(hydra.sweep.subdir)
            if name == ".":  # if it was given, the user has chosen the jobs' folders
                swept = {
                    each.get_key_element() for each in self._overrides if each.is_sweep_override()
                }
                name = _job_name(
                    hydra.job.num, overrides, swept | set(hydra.sweeper.get("params") or {})
                )
            folder = (Path(hydra.sweep.dir) / name).absolute()
            run_name = re.sub(r"[^\w.-]+", "-", f"{folder.parent.name}-{folder.name}")
            own_place = [f"{_RUN_DIR}={quoted(str(folder))}", f"{_NAME}={quoted(run_name)}"]
        if folder in self.ends:
            self.ends[Path(f"{folder} (job {hydra.job.num})")] = 2
            return f"job {hydra.job.num} failed: {folder} is the folder of an earlier job"
        kept = [each for each in hydra.overrides.hydra if not _OF_THE_SWEEP.match(each)]
        options = [each for each in self.options if each not in _OPTIONS]
        arguments = [*self.own_arguments, *overrides, *kept, *own_place, *options]
        code = _run_process([sys.executable, self.script, *arguments])
        self.ends[folder] = code
        return (
            f"job {hydra.job.num} {'done' if code == 0 else f'failed with code {code}'}: {folder}"
        )

    def check(self) -> None:
        """Remove folders that hold only Hydra's note of the sweep, and report the failed jobs.

        Raises:
            HintError: If one did.
        """
        for folder in (*self.ends, *{folder.parent for folder in self.ends}):
            note = folder / "multirun.yaml"
            if folder.is_dir() and not set(folder.iterdir()) - {note}:
                note.unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    folder.rmdir()
        failed = [f"{folder.name} (code {code})" for folder, code in self.ends.items() if code]
        if failed:
            raise HintError(f"{len(failed)} of {len(self.ends)} jobs failed: {', '.join(failed)}")


def is_multirun() -> bool:
    """Return whether Hydra called us for a job of a sweep, not for a run."""
    return HydraConfig.get().mode == RunMode.MULTIRUN


def _refers(override: Override) -> bool:
    return "${" in str(override.value())


def _job_name(number: int, overrides: Sequence[str], swept: set[str]) -> str:
    """Name a job's folder by its number, which no other job has, and what the job differs in."""
    parts = [each.partition("=") for each in overrides]
    words = [f"{key.rsplit('.', 1)[-1]}-{value}" for key, _, value in parts if key in swept]
    name = re.sub(r"[^\w.-]+", "_", "-".join([str(number), *words]))
    return name[:_LONGEST_NAME].rstrip("._-")


def quoted(value: str) -> str:
    """Return a value as an override may hold it, whatever characters it has."""
    return QuotedString(value, Quote.single).with_quotes()


def _run_process(command: Sequence[str]) -> int:
    """Run a job to its end; an interrupted one ends before the interruption is raised."""
    with deferred_signals():
        # In this session: a terminal's Ctrl-C reaches the job too.
        process = subprocess.Popen(command, preexec_fn=ends_with_this())
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
                raise_deferred()
            return process.wait(KILLED_S)
        except subprocess.TimeoutExpired:
            raise HintError(
                f"process {process.pid} was killed but does not end: it waits for a disk or device"
            ) from None
        except KeyboardInterrupt as stop:
            if isinstance(stop, Terminated):
                process.terminate()
            try:  # a terminal interrupts the job too; a signal to this process alone does not
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE_S)
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE_S)
            finally:  # after a second signal too
                process.kill()
            raise

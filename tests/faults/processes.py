"""A run seen from outside: its processes by kind, and the phase it is in."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from catalogue import PROCESSES

_GONE = (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess)
# What the trainer's process is called while it works: Ray shows the method.
_METHODS = {
    "log-probs": "compute_log_prob",
    "update": "update_actor",
    "sync": "update_weights",
    "save": "save_checkpoint",
}


class NotHit(Exception):
    """The run ended, or took too long, before the moment of the fault."""


class Observer:
    """The processes of one command, and what they are doing."""

    def __init__(self, command: subprocess.Popen, folder: Path) -> None:
        self.command = command
        self._console = folder / "logs/console.log"
        self._seen: dict[int, psutil.Process] = {}
        self._stop = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def close(self) -> None:
        """Stop looking for new processes."""
        self._stop.set()

    def of_kind(self, kind: str) -> list[psutil.Process]:
        """Return the living processes of a kind."""
        if kind == "command":
            return [psutil.Process(self.command.pid)]
        for _ in range(2):
            found = [process for process in self.alive() if PROCESSES[kind] in title(process)]
            if found:
                return found
            self._look()
        return []

    def alive(self) -> list[psutil.Process]:
        """Return every process that the command started, at any depth, and that still lives."""
        return [process for process in list(self._seen.values()) if _lives(process)]

    def await_phase(self, phase: str, kind: str, limit_s: float) -> None:
        """Return in the middle of a phase, when a process of the kind is there.

        Raises:
            NotHit: The run ended before, or ``limit_s`` passed.
        """
        is_there: Callable[[], object] = lambda: not kind or self.of_kind(kind)  # noqa: E731
        if phase == "start":
            self._until(is_there, limit_s)
            self._pause(1.0)
        elif phase == "validation":
            self._until(lambda: "ready\n" in self._said(), limit_s)
            self._pause(0.7)
        else:
            # Of a later step than the first of this start.
            self._until(lambda: "ready\n" in self._said(), limit_s)
            trainers = self.of_kind("trainer")
            if not trainers:
                raise NotHit
            self._until(self.steps_done, limit_s, every_s=0.01)
            if phase == "rollout":
                self._pause(0.5)  # a rollout takes about a second, its level 0 half of it
            else:
                self._until(lambda: _METHODS[phase] in title(trainers[0]), limit_s, every_s=0.004)
        self._until(is_there, 10)

    def steps_done(self) -> int:
        """Return the last step that this start said it has done; 0 before the first."""
        found = re.findall(r"^step (\d+)/", self._said(), flags=re.MULTILINE)
        return int(found[-1]) if found else 0

    def has_stopped_ones(self) -> bool:
        """Whether a process is still stopped by a signal."""
        return any(_status(process) == psutil.STATUS_STOPPED for process in self.alive())

    def _until(self, condition: Callable[[], object], limit_s: float, every_s: float = 0.1) -> None:
        deadline = time.monotonic() + limit_s
        while not condition():
            if self.command.poll() is not None or time.monotonic() > deadline:
                raise NotHit
            time.sleep(every_s)

    def _pause(self, seconds: float) -> None:
        time.sleep(seconds)
        if self.command.poll() is not None:
            raise NotHit

    def _said(self) -> str:
        return self._console.read_text() if self._console.exists() else ""

    def _watch(self) -> None:
        while not self._stop.wait(0.7):
            self._look()

    def _look(self) -> None:
        with contextlib.suppress(*_GONE):
            # A process whose parent died is nobody's child: so its children are looked at too.
            for known in [psutil.Process(self.command.pid), *self.alive()]:
                with contextlib.suppress(*_GONE):
                    self._seen |= {child.pid: child for child in known.children(recursive=True)}


def title(process: psutil.Process) -> str:
    """Return what a process calls itself; nothing for one that has ended."""
    try:
        return Path(f"/proc/{process.pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def send(act: str, process: psutil.Process) -> None:
    """Do one of ``catalogue.SIGNALS`` to a process."""
    with contextlib.suppress(*_GONE):
        if act == "pause":
            process.suspend()
            time.sleep(5)
            process.resume()
        else:
            number = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "term": signal.SIGTERM}
            process.send_signal(number[act])


def end(processes: list[psutil.Process], command: subprocess.Popen) -> None:
    """Kill the command with its group, and these processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(command.pid, signal.SIGKILL)
    for process in processes:
        with contextlib.suppress(*_GONE):
            process.kill()
    command.wait()


def _lives(process: psutil.Process) -> bool:
    return process.is_running() and _status(process) not in (psutil.STATUS_ZOMBIE, "")


def _status(process: psutil.Process) -> str:
    try:
        return process.status()
    except _GONE:
        return ""

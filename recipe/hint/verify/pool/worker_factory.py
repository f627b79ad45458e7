"""Where workers come from: one process with the grade function imported, copied on demand."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

from recipe.hint.errors import VerifierError
from recipe.hint.verify.options import GradeOptions
from recipe.hint.verify.pool.worker_handle import Line, WorkerDied, WorkerHandle

_SOURCE_ROOT = Path(__file__).resolve().parents[4]


class WorkerFactoryProcess:
    """One process with the grade function imported, which copies itself into workers.

    A copy is there in milliseconds, where a start from nothing imports for seconds.

    Raises:
        OSError: The process cannot be created.
    """

    def __init__(self, grade_path: str, options: GradeOptions) -> None:
        ours, theirs = socket.socketpair()
        self._line = Line(ours)
        self._lock = threading.Lock()
        arguments = [str(theirs.fileno()), grade_path, str(os.getpid())]
        arguments.append(json.dumps(asdict(options)))
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "recipe.hint.verify.pool.worker_process", *arguments],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    env=_environment(),
                    # Ctrl-C in a terminal goes to the whole process group; this leaves it.
                    start_new_session=True,
                )
        except OSError:
            ours.close()
            raise
        self.pid = self._process.pid

    def wait_until_ready(self, deadline: float) -> None:
        """Wait for the imports.

        Raises:
            TimeoutError: ``deadline`` (``time.monotonic`` seconds) has passed.
            WorkerDied: The process ended instead; the message is its reason, where it left one.
        """
        answer = self._line.receive(deadline)
        if answer != "ready":
            raise WorkerDied(answer["failed"])

    def start_worker(self, deadline: float) -> WorkerHandle:
        """A new copy; errors as in ``wait_until_ready``, and OSError when it ended at once."""
        with self._lock:
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    self._line.send(b"copy\n", deadline, theirs.fileno())
                return WorkerHandle(ours, self._line.receive(deadline))
            except (TimeoutError, WorkerDied, OSError):
                ours.close()
                raise

    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process, and with it all its copies."""
        self._process.kill()

    def reap(self) -> int:
        """Kill, wait and close; the exit code, negative for a signal."""
        self._process.kill()
        code = self._process.wait()
        self._line.socket.close()
        return code


class WorkerFactory:
    """Makes workers; starts its process with the first of them, and again when it has died."""

    def __init__(self, grade_path: str, options: GradeOptions, start_timeout_s: float) -> None:
        self._grade_path = grade_path
        self._options = options
        self._start_timeout_s = start_timeout_s
        self._process: WorkerFactoryProcess | None = None
        self._is_closed = False
        self._starting = threading.Lock()

    def start_worker(self, name: str) -> WorkerHandle:
        """A new worker; ``name`` is for the message.

        Raises:
            VerifierError: Why there is none.
        """
        problem: Exception | None = None
        for _ in range(2):  # once more when the process has been killed since the last time
            process = self._find_process(name)
            try:
                return process.start_worker(time.monotonic() + self._start_timeout_s)
            except (TimeoutError, WorkerDied, OSError) as caught:
                problem = caught
                process.reap()  # waited for, or the next round would find it still there
        raise VerifierError(f"{name} cannot be started: {problem!r}; free memory or processes")

    def stop(self) -> None:
        """Start nothing more; a start that is under way fails."""
        self._is_closed = True
        # Not one that is ready: it has to see its workers end, or they stay as zombies.
        if self._process is not None and self._starting.locked():
            self._process.kill()

    def close(self) -> None:
        """End the process and the workers that are left."""
        self.stop()
        if self._process is not None:
            self._process.reap()

    def _find_process(self, name: str) -> WorkerFactoryProcess:
        with self._starting:
            if self._process is not None and self._process.is_alive():
                return self._process
            if self._process is not None:
                self._process.reap()
            try:
                process = self._process = WorkerFactoryProcess(self._grade_path, self._options)
            except OSError as problem:
                raise VerifierError(
                    f"{name} cannot be started: {problem}; free memory or processes"
                ) from problem
            if self._is_closed:
                process.kill()
            reason = ""
            try:
                process.wait_until_ready(time.monotonic() + self._start_timeout_s)
                return process
            except TimeoutError:
                what = f"did not answer within start_timeout_s={self._start_timeout_s:g}"
            except WorkerDied as died:
                what, reason = "died", str(died)
            raise VerifierError(
                f"{name} (pid {process.pid}, exit code {process.reap()}) {what} while importing "
                f"{self._options.function_path or self._grade_path}"
                f"{': ' * bool(reason)}{reason}; see stderr"
            )


def _environment() -> dict[str, str]:
    python_path = [str(_SOURCE_ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
        # The working folder of a Ray actor may hold files that shadow modules.
        "PYTHONSAFEPATH": "1",
        # One grade computes on one core, and a copy of a process has no threads of a library.
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
    }

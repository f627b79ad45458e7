"""The pool's end of its processes: the worker factory, and the workers that it forks."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recipe.run.errors import VerifierError
from recipe.verify.line import Line, PeerDied
from recipe.verify.options import GradeOptions

_START_LIMIT_S = 120.0  # for the imports of a grade
_SOURCE_ROOT = Path(__file__).resolve().parents[3]
_END_LIMIT_MS = 10_000
_LEAST_WAIT_S = 0.01


class WorkerHandle:
    """One grading process and the socket to it; used by one thread, killed by any."""

    def __init__(self, end: socket.socket, pid: int) -> None:
        # Holds on to the process itself: its number may be given to another after its end.
        self._process_fd = os.pidfd_open(pid)
        self._line = Line(end)
        self._start = time.monotonic()
        self.pid = pid

    def send(self, message: object, wall_s: float) -> None:
        """Send one line until the process is ``wall_s`` old; errors as in ``Line.send``."""
        self._line.send(message, self._start + wall_s)

    def receive(self, cpu_s: float, wall_s: float) -> Any:
        """Wait for one line; may be called again with later limits after a ``TimeoutError``.

        Args:
            cpu_s: Processor time of the process that ends the wait. A process uses at most a second
                of it in a second (one with threads that compute together is found late by as much).
            wall_s: Age of the process that ends the wait: it waits, or others keep the processor.

        Raises:
            TimeoutError: A limit has passed.
            PeerDied: The process ended, or sent a line that is not JSON.
        """
        end = self._start + wall_s
        while (left_s := min(cpu_s - self.cpu_s(), end - time.monotonic())) > 0:
            with contextlib.suppress(TimeoutError):
                return self._line.receive(time.monotonic() + max(left_s, _LEAST_WAIT_S))
        raise TimeoutError

    def cpu_s(self) -> float:
        """Return the processor time that the process used, without processes that it started."""
        try:
            # The kernel's number for the clock of a process (clock_getcpuclockid).
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:  # it has ended, which the socket tells
            return 0.0

    def kill(self) -> None:
        """End the process and all of its group; whoever waits on the socket sees its end."""
        # The group first: its number is the process's, and taken as long as that lives.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(self._process_fd, signal.SIGKILL)

    def reap(self) -> None:
        """Kill, wait for the end, close; only once, and nobody kills it later."""
        self.kill()
        waiter = select.poll()
        waiter.register(self._process_fd, select.POLLIN)
        waiter.poll(_END_LIMIT_MS)
        os.close(self._process_fd)
        self._line.socket.close()


class WorkerFactory:
    """Forks workers from one process that has imported the grade function.

    A fork takes milliseconds, where a start from nothing imports for seconds. The process starts
    with the first worker, and again when it has died.
    """

    def __init__(self, grade_path: str, options: GradeOptions) -> None:
        self._grade_path = grade_path
        self._options = options
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start_worker(self) -> WorkerHandle:
        """Fork a worker.

        Raises:
            VerifierError: Why there is none.
        """
        with self._lock:
            self._start()
            try:
                return self._fork(time.monotonic() + _START_LIMIT_S)
            except (TimeoutError, PeerDied) as problem:
                self._reap()
                reason = repr(problem)
            except OSError as problem:  # the process goes on, and the grades beside this one
                reason = str(problem)
        raise VerifierError(f"no grading process: {reason}; free memory or processes")

    def check(self) -> None:
        """Start the process and wait for its imports.

        Raises:
            VerifierError: It did not get ready; the message says why.
        """
        with self._lock:
            self._start()

    def close(self) -> None:
        """End the process and the workers that are left."""
        with self._lock:
            self._reap()

    def _fork(self, deadline: float) -> WorkerHandle:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._line.send("fork", deadline, theirs.fileno())
            pid = self._line.receive(deadline)
            if pid < 0:
                raise OSError(-pid, os.strerror(-pid))
            return WorkerHandle(ours, pid)
        except BaseException:
            ours.close()  # a worker that is already there ends with it
            raise

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self._reap()
        self._process = self._popen()
        try:
            answer = self._line.receive(time.monotonic() + _START_LIMIT_S)
            if answer == "ready":
                return
            what = str(answer["failed"])
        except TimeoutError:
            what = f"no answer within {_START_LIMIT_S:g} s"
        except PeerDied:
            what = f"it ended with exit code {self._process.wait()}"
        self._reap()
        path = self._options.function_path or self._grade_path
        raise VerifierError(f"a grading process cannot import {path}: {what}; see stderr")

    def _popen(self) -> subprocess.Popen[bytes]:
        ours, theirs = socket.socketpair()
        arguments = [str(theirs.fileno()), self._grade_path, str(os.getpid())]
        arguments.append(json.dumps(asdict(self._options)))
        python_path = [str(_SOURCE_ROOT), os.environ.get("PYTHONPATH", "")]
        environment = {
            # One grade computes on one core, and a fork has no threads of a library.
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, python_path)),
            # The working folder of a Ray actor may hold files that shadow modules.
            "PYTHONSAFEPATH": "1",
        }
        self._line = Line(ours)
        with theirs:
            return subprocess.Popen(
                [sys.executable, "-m", "recipe.verify.pool.worker_process", *arguments],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=environment,
                # Ctrl-C in a terminal goes to the whole process group; this leaves it.
                start_new_session=True,
            )

    def _reap(self) -> None:
        """Kill, wait and close."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            self._line.socket.close()

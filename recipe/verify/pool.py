"""Grade in processes that can be killed, so that no response can hang a run.

Each grade has a process of its own, a fork of one that has imported everything
(``worker_process``), so nothing is left from one grade to the next. A thread here starts it, feeds
it, and ends it with all that it started. There is no ``signal.alarm``, no fork of the caller and no
``multiprocessing``: the pool works in a daemonic process (a Ray actor), in any thread and under
asyncio.

A grade ends when its process has used ``timeout_s`` of processor time, read from outside: a busy
machine makes a grade late, not wrong. The backstop is a limit on the wall clock, ``wall_factor``
times as long, for a grade that waits for something.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from recipe.run.errors import ConfigError, VerifierError
from recipe.verify.grading import quick_grade
from recipe.verify.options import GradeOptions
from recipe.verify.schema import Item, Verdict

logger = logging.getLogger(__name__)

_GRADE = "recipe.verify.grading:grade"
_DEFAULTS = GradeOptions()
# A program ends inside the limit of its grade, so that it is the program's verdict that counts.
_PROGRAM_SHARE = 0.8
_START_LIMIT_S = 120.0  # for the imports of a grade
_SOURCE_ROOT = Path(__file__).resolve().parents[2]
_END_LIMIT_MS = 10_000
_LEAST_WAIT_S = 0.01


def _receive(end: socket.socket, left_s: Callable[[], float]) -> Any:
    """Wait for one line of JSON; ``TimeoutError`` when no time is left, ``EOFError`` at an end."""
    received = b""
    while not received.endswith(b"\n"):
        if (left := left_s()) <= 0:
            raise TimeoutError
        end.settimeout(max(left, _LEAST_WAIT_S))
        with contextlib.suppress(TimeoutError):
            chunk = end.recv(1 << 16)
            if not chunk:
                raise EOFError
            received += chunk
    return json.loads(received)


class _Worker:
    """One grading process and the socket to it; used by one thread, killed by any."""

    def __init__(self, end: socket.socket, pid: int) -> None:
        # Holds on to the process itself: its number may be given to another after its end.
        self._process_fd = os.pidfd_open(pid)
        self._end = end
        self.pid = pid

    def ask(self, item: Item, cpu_s: float, wall_s: float) -> Any:
        """Return the answer on an item; errors as ``_receive``.

        A process uses at most a second of ``cpu_s`` in a second; one with threads that compute
        together is found late by as much.
        """
        deadline = time.monotonic() + wall_s
        self._end.settimeout(wall_s)
        self._end.sendall(json.dumps(item).encode() + b"\n")
        return _receive(self._end, lambda: min(cpu_s - self.cpu_s(), deadline - time.monotonic()))

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
        self._end.close()


class VerifierPool:
    """Grades batches, ``num_workers`` at a time, each grade in a process and under limits.

    The processes are forks of one that starts with the first response that needs it, and again
    when it has died. Close the pool, or use ``with``.

    Args:
        num_workers: Grades that run at the same time.
        timeout_s: Processor time of one grade; beyond it the process is killed and the verdict is
            ``timeout``.
        options: What may be chosen about grading.
        grade_path: ``module:function`` with the signature of ``grading.grade``.
    """

    def __init__(
        self,
        num_workers: int = 2,
        timeout_s: float = 10.0,
        *,
        options: GradeOptions = _DEFAULTS,
        grade_path: str = _GRADE,
    ) -> None:
        if num_workers <= 0 or timeout_s <= 0:
            raise ConfigError(f"{num_workers=} and {timeout_s=} must be above 0")
        self._timeout_s = timeout_s
        self._wall_s = timeout_s * options.wall_factor
        program_wall_s = min(options.program_wall_s, _PROGRAM_SHARE * self._wall_s)
        self._options = replace(options, program_wall_s=program_wall_s)
        self._grade_path = grade_path
        self._threads = ThreadPoolExecutor(num_workers, "verifier worker")
        self._factory: subprocess.Popen[bytes] | None = None
        self._factory_lock = threading.Lock()
        self._lock = threading.Lock()
        self._workers: set[_Worker] = set()
        self._is_closed = False

    async def grade_many(
        self, items: Sequence[Item], ids: Sequence[str] | None = None
    ) -> list[Verdict]:
        """Return the verdicts in the order of ``items``.

        Args:
            items: What to grade.
            ids: A name per item (its prompt id), for the log.

        Raises:
            VerifierError: A worker could not be started, or the pool is closed.
        """
        return list(await asyncio.gather(*map(asyncio.wrap_future, self.submit(items, ids))))

    def grade_many_blocking(
        self, items: Sequence[Item], ids: Sequence[str] | None = None
    ) -> list[Verdict]:
        """Do the same as ``grade_many``, for callers without an event loop."""
        return [future.result() for future in self.submit(items, ids)]

    def submit(
        self, items: Sequence[Item], ids: Sequence[str] | None = None
    ) -> list[Future[Verdict]]:
        """Do the same as ``grade_many``, as a future per item."""
        self._check_open()
        futures = []
        for item, name in zip(items, ids or [""] * len(items), strict=True):
            verdict = quick_grade(item, self._options) if self._grade_path == _GRADE else None
            if verdict is None:
                futures.append(self._threads.submit(self._run, item, name))
            else:
                futures.append(decided := Future[Verdict]())
                decided.set_result(_logged(verdict, name, "the grade says so"))
        return futures

    def check(self) -> None:
        """Import what a grade needs; ``VerifierError`` says why that failed."""
        with self._factory_lock:
            self._start_factory()

    def close(self) -> None:
        """Kill the processes and fail what is still waiting; safe to call twice."""
        with self._lock:
            self._is_closed = True
            for worker in self._workers:
                worker.kill()
        self._threads.shutdown()
        with self._factory_lock:
            self._end_factory()

    def __enter__(self) -> VerifierPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise VerifierError("the verifier pool is closed; make a new one to grade")

    def _run(self, item: Item, name: str) -> Verdict:
        """Make one grade in a process of its own."""
        self._check_open()
        worker = self._start_worker(item.kind)
        try:
            with self._lock:
                self._workers.add(worker)
                if self._is_closed:
                    worker.kill()
            verdict, why = self._grade(worker, item)
        finally:
            with self._lock:
                self._workers.discard(worker)
            worker.reap()
        if verdict.is_ungraded:  # perhaps killed by close(), not by the grade
            self._check_open()
        return _logged(verdict, name, why)

    def _grade(self, worker: _Worker, item: Item) -> tuple[Verdict, str]:
        """Return one verdict, and why there is none."""
        try:
            answer = worker.ask(item, self._timeout_s, self._wall_s)
            if isinstance(answer, str):
                return Verdict(0.0, "error"), answer
            return Verdict(*answer), "the grade says so"
        except TimeoutError:
            return Verdict(0.0, "timeout"), (
                f"no verdict after {worker.cpu_s():.1f} s of processor time (limit "
                f"{self._timeout_s:g} s, {self._wall_s:g} s on the wall)"
            )
        except (OSError, EOFError):
            return Verdict(0.0, "error"), f"its process (pid {worker.pid}) died"
        except (ValueError, RecursionError, TypeError):  # a grade that wrote into the socket
            return Verdict(0.0, "error"), f"its process (pid {worker.pid}) sent no verdict"

    def _start_worker(self, kind: str) -> _Worker:
        with self._factory_lock:
            self._start_factory()
            deadline = time.monotonic() + _START_LIMIT_S
            ours, theirs = socket.socketpair()
            try:
                with theirs:
                    self._factory_end.settimeout(_START_LIMIT_S)
                    socket.send_fds(self._factory_end, [f"fork {kind}".encode()], [theirs.fileno()])
                pid = _receive(self._factory_end, lambda: deadline - time.monotonic())
                return _Worker(ours, pid)
            except (OSError, EOFError) as problem:
                ours.close()  # a worker that is already there ends with it
                self._end_factory()
                raise VerifierError(
                    f"no grading process: {problem!r}; free memory or processes"
                ) from problem

    def _start_factory(self) -> None:
        """Start the process that forks the others, where there is none; wait for its imports."""
        if self._factory is not None and self._factory.poll() is None:
            return
        self._end_factory()
        self._factory_end, theirs = socket.socketpair()
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
        with theirs:
            self._factory = subprocess.Popen(
                [sys.executable, "-m", "recipe.verify.worker_process", *arguments],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=environment,
                # Ctrl-C in a terminal goes to the whole process group; this leaves it.
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_LIMIT_S
        try:
            failed = _receive(self._factory_end, lambda: deadline - time.monotonic())
        except TimeoutError:
            failed = f"no answer within {_START_LIMIT_S:g} s"
        except (OSError, EOFError):
            failed = f"it ended with exit code {self._factory.wait()}"
        if failed:
            self._end_factory()
            path = self._options.function_path or self._grade_path
            raise VerifierError(f"a grading process cannot import {path}: {failed}; see stderr")

    def _end_factory(self) -> None:
        factory, self._factory = self._factory, None
        if factory is not None:
            factory.kill()
            factory.wait()
            self._factory_end.close()


def _logged(verdict: Verdict, name: str, why: str) -> Verdict:
    if verdict.is_ungraded:
        logger.warning("%s on prompt %s: %s", verdict.reason, name or "(no id)", why)
    return verdict

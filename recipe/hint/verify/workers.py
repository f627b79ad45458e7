"""Grades in processes that can be killed, so that no answer can hang a run.

Each worker is one process with one thread here that starts it, feeds it one grade at a
time and replaces it when it hangs or dies. There is no ``signal.alarm``, no fork of the
caller and no ``multiprocessing``: the pool works in a daemonic process (a Ray actor), in
any thread and under asyncio.

``num_workers`` grades run at a time. One that takes longer than ``LATE_S`` goes on but no
longer counts, and a spare worker takes its place; so hung grades delay the others by
``LATE_S`` and not by ``timeout_s``, until ``MAX_SPARES`` of them hang at the same time.

Covered: endless loops, also inside C code; crashes; exhausted memory. Not covered: a grade
function with side effects outside its process. ``timeout_s`` is wall-clock time, so more
workers than cores make slow grades look like hung ones.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from recipe.hint.errors import ConfigError, VerifierError
from recipe.hint.schema import Item, Verdict
from recipe.hint.verify.audit import SECOND, AuditLog
from recipe.hint.verify.batches import Batch
from recipe.hint.verify.grading import quick_grade
from recipe.hint.verify.nursery import Nursery
from recipe.hint.verify.options import GradeOptions
from recipe.hint.verify.worker_handle import WorkerDied, WorkerHandle

logger = logging.getLogger(__name__)

GRADE = "recipe.hint.verify.grading:grade"
_QUICK = {GRADE: quick_grade}
_DEFAULTS = GradeOptions()
LATE_S = 0.5
MAX_SPARES = 8
_CLOSE_LIMIT_S = 10.0
# A program ends inside the limit of its grade, so it costs no worker.
_PROGRAM_SHARE = 0.8
_CLOSED = "the verifier pool is closed; make a new one to grade"
_Job = tuple[Batch, int]  # where the verdict goes, and which item it is


class VerifierPool:
    """Grades batches in ``num_workers`` processes, each grade under its own time limit.

    Processes start with the first answer that needs one. Close the pool, or use ``with``.

    Args:
        num_workers: Processes, and grades that run at the same time.
        timeout_s: Limit of one grade; beyond it the process is killed and the verdict is
            ``timeout``.
        options: What may be chosen about grading.
        audit_path: File to which verdicts are appended that the second judge disagrees with.
        grade_path: ``module:function`` with the signature of ``grading.grade``.
        start_timeout_s: Limit for a process to import its grade function.

    Attributes:
        graded: Verdicts given, ``quick`` and failed ones included.
        quick: Those decided here, without a process.
        timeouts: Grades that were killed.
        errors: Verdicts with reason ``error``, from a dead process or from the grade.
    """

    def __init__(
        self,
        num_workers: int = 2,
        timeout_s: float = 10.0,
        *,
        options: GradeOptions = _DEFAULTS,
        audit_path: str | Path | None = None,
        grade_path: str = GRADE,
        start_timeout_s: float = 60.0,
    ) -> None:
        limits = {"num_workers": num_workers, "timeout_s": timeout_s}
        for name, value in {**limits, "start_timeout_s": start_timeout_s}.items():
            if value <= 0:
                raise ConfigError(f"{name} must be above 0, got {value}")
        self.num_workers = num_workers
        self.timeout_s = timeout_s
        self.start_timeout_s = start_timeout_s
        self.grade_path = grade_path
        wall_s = min(options.program_wall_s, _PROGRAM_SHARE * timeout_s)
        self.options = replace(options, program_wall_s=wall_s)
        self.graded = self.quick = self.timeouts = self.errors = 0
        self._audit: AuditLog | None = None
        if audit_path is not None:
            second = VerifierPool(num_workers, timeout_s, grade_path=SECOND)
            self._audit = AuditLog(audit_path, second)
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._workers: dict[str, WorkerHandle] = {}
        self._slots = threading.Semaphore(num_workers)
        self._late: set[str] = set()  # threads that have given their slot away
        self._num_waiting = 0  # threads that wait for a slot
        self._nursery = Nursery(grade_path, self.options, start_timeout_s)
        self._is_closed = False

    @property
    def disagreements(self) -> int:
        """Verdicts that the second judge disagreed with; 0 without ``audit_path``."""
        return self._audit.disagreements if self._audit else 0

    async def judge_many(
        self, items: Sequence[Item], ids: Sequence[str] | None = None
    ) -> list[Verdict]:
        """Verdicts in the order of ``items``.

        Args:
            items: What to grade.
            ids: A name per item (its prompt id), for the log and the audit file.

        Raises:
            VerifierError: A worker could not be started, or the pool is closed.
        """
        return await asyncio.wrap_future(self.submit(items, ids))

    def judge_many_blocking(
        self, items: Sequence[Item], ids: Sequence[str] | None = None
    ) -> list[Verdict]:
        """Same as ``judge_many``, for callers without an event loop."""
        return self.submit(items, ids).result()

    def counters(self) -> dict[str, int]:
        """A consistent copy of the four counters."""
        with self._lock:
            names = ("graded", "quick", "timeouts", "errors")
            return {name: getattr(self, name) for name in names}

    def close(self) -> None:
        """Kill the processes and fail what is still waiting; safe to call twice."""
        with self._lock:
            self._is_closed = True
            workers, threads = list(self._workers.values()), list(self._threads)
        self._nursery.stop()
        for worker in workers:
            worker.kill()
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            thread.join(_CLOSE_LIMIT_S)
        self._nursery.close()
        if self._audit:
            self._audit.close()

    def __enter__(self) -> VerifierPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(
        self, items: Sequence[Item], ids: Sequence[str] | None = None
    ) -> Future[list[Verdict]]:
        """Same as ``judge_many``, as a future of any thread; it cannot be cancelled."""
        items = [Item(*item) for item in items]
        batch = Batch(items, ids)
        decide = _QUICK.get(self.grade_path)
        quick: dict[int, Verdict] = {}
        for index, item in enumerate(items):
            verdict = decide(item, self.options) if decide else None
            if verdict is not None:
                quick[index] = verdict
        jobs = [index for index in range(len(items)) if index not in quick]
        with self._lock:
            if self._is_closed:
                raise VerifierError(_CLOSED)
            while jobs and len(self._threads) < self.num_workers:
                self._start_thread()
            self.quick += len(quick)
            for index in jobs:  # under the lock, so that none comes after close()'s end marks
                self._jobs.put((batch, index))
        for index, verdict in quick.items():
            self._settle(batch, index, verdict)
        return batch.future

    def _settle(self, batch: Batch, index: int, verdict: Verdict) -> None:
        with self._lock:
            self.graded += 1
            self.timeouts += verdict.reason == "timeout"
            self.errors += verdict.reason == "error"
        if verdict.is_undecided:
            logger.warning("%s on prompt %s", verdict.reason, batch.name(index) or "(no id)")
        settle = functools.partial(batch.settle, index, verdict)
        if self._audit:
            self._audit.check(batch.items[index], verdict, name=batch.name(index), then=settle)
        else:
            settle()

    def _start_thread(self) -> None:
        number = len(self._threads) + 1
        kind = f"of {self.num_workers}" if number <= self.num_workers else "(a spare)"
        name = f"verifier worker {number} {kind}"
        thread = threading.Thread(target=self._feed, args=(name,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _feed(self, name: str) -> None:
        """Body of one worker's thread: one grade after another, each in a slot."""
        worker: WorkerHandle | None = None
        while (job := self._next_job()) is not None:
            worker = self._do(name, worker, *job)
            with self._lock:
                is_late = name in self._late
                self._late.discard(name)
            if not is_late:
                self._slots.release()
        self._slots.release()
        if worker is not None:
            worker.reap()

    def _next_job(self) -> _Job | None:
        with self._lock:
            self._num_waiting += 1
        self._slots.acquire()
        with self._lock:
            self._num_waiting -= 1
        return self._jobs.get()

    def _give_way(self, name: str) -> None:
        """Let another worker run in the place of one whose grade is late."""
        with self._lock:
            self._late.add(name)
            can_start = len(self._threads) < self.num_workers + MAX_SPARES
            if self._num_waiting == 0 and can_start and not self._is_closed:
                self._start_thread()
        self._slots.release()

    def _do(
        self, name: str, worker: WorkerHandle | None, batch: Batch, index: int
    ) -> WorkerHandle | None:
        """One job; the worker for the next one, if it is still there."""
        if self._is_closed:
            batch.fail(VerifierError(_CLOSED))
            return worker
        try:
            worker = worker or self._start(name)
        except VerifierError as problem:
            batch.fail(problem)
            return None
        request = json.dumps(batch.items[index]).encode("ascii") + b"\n"
        verdict, is_alive = self._grade(name, worker, request)
        if not is_alive and self._is_closed:  # killed by close(), not by the grade
            batch.fail(VerifierError(_CLOSED))
        else:
            self._settle(batch, index, verdict)
        return worker if is_alive else None

    def _start(self, name: str) -> WorkerHandle:
        worker = self._nursery.start_worker(name)
        with self._lock:
            self._workers[name] = worker
            if self._is_closed:
                worker.kill()
        return worker

    def _grade(self, name: str, worker: WorkerHandle, request: bytes) -> tuple[Verdict, bool]:
        """One verdict, and whether the process is still there for the next."""
        deadline = time.monotonic() + self.timeout_s
        try:
            return Verdict(*self._answer(name, worker, request, deadline)), True
        except TimeoutError:
            verdict, what = Verdict(0.0, "timeout"), f"gave no verdict in {self.timeout_s:g} s"
        except WorkerDied:
            verdict, what = Verdict(0.0, "error"), "died while grading"
        worker.reap()
        if not self._is_closed:
            logger.warning("%s (pid %d) %s; replaced", name, worker.pid, what)
        return verdict, False

    def _answer(self, name: str, worker: WorkerHandle, request: bytes, deadline: float) -> list:
        worker.send(request, deadline)
        try:
            return worker.receive(min(time.monotonic() + LATE_S, deadline))
        except TimeoutError:
            if time.monotonic() >= deadline:
                raise
        self._give_way(name)
        return worker.receive(deadline)

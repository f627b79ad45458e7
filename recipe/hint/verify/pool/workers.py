"""Grades in processes that can be killed, so that no answer can hang a run.

Each grade has a process of its own, a copy of one that has imported everything
(``worker_process``), so nothing of one grade is there at the next. A thread here starts it, feeds
it, and ends it with all that it started. There is no ``signal.alarm``, no fork of the caller and no
``multiprocessing``: the pool works in a daemonic process (a Ray actor), in any thread and under
asyncio.

A grade ends when its process has used ``timeout_s`` of processor time, read from outside: a busy
machine makes a grade late, not wrong. Behind that is a limit on the wall, ``wall_factor`` times as
long, for a grade that waits for something.

``num_workers`` grades run at a time. One that has used ``LATE_S`` goes on but no longer counts, and
a spare thread takes its place; so endless grades delay the others by ``LATE_S`` and not by
``timeout_s``, until ``MAX_SPARES`` of them run at the same time.

Covered: endless loops, also inside C code; crashes; exhausted memory; processes that a grade
starts, unless they leave its session. Not covered: other side effects outside the process.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from recipe.hint.errors import ConfigError, VerifierError
from recipe.hint.schema import Item, Verdict
from recipe.hint.verify.audit import SECOND, AuditLog
from recipe.hint.verify.grading import quick_grade
from recipe.hint.verify.options import GradeOptions
from recipe.hint.verify.pool.batches import Batch
from recipe.hint.verify.pool.worker_factory import WorkerFactory
from recipe.hint.verify.pool.worker_handle import Limits, WorkerDied, WorkerHandle

logger = logging.getLogger(__name__)

GRADE = "recipe.hint.verify.grading:grade"
_QUICK = {GRADE: quick_grade}
_DEFAULTS = GradeOptions()
LATE_S = 0.5
MAX_SPARES = 8
_CLOSE_LIMIT_S = 10.0
# A program ends inside the limit of its grade, so that it is the program's verdict that counts.
_PROGRAM_SHARE = 0.8
_CLOSED = "the verifier pool is closed; make a new one to grade"
_Job = tuple[Batch, int]  # where the verdict goes, and which item it is


class VerifierPool:
    """Grades batches, ``num_workers`` at a time, each grade in a process and under limits.

    Processes start with the first answer that needs one. Close the pool, or use ``with``.

    Args:
        num_workers: Grades that run at the same time.
        timeout_s: Processor time of one grade; beyond it the process is killed and the verdict is
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
        wall_s = min(options.program_wall_s, _PROGRAM_SHARE * timeout_s * options.wall_factor)
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
        self._nursery = WorkerFactory(grade_path, self.options, start_timeout_s)
        self._is_closed = False

    @property
    def disagreements(self) -> int:
        """Verdicts that the second judge disagreed with; 0 without ``audit_path``."""
        return self._audit.disagreements if self._audit else 0

    async def grade_many(
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
        """Same as ``grade_many``, for callers without an event loop."""
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
        """Same as ``grade_many``, as a future of any thread; it cannot be cancelled."""
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

    def _settle(self, batch: Batch, index: int, verdict: Verdict, why: str = "") -> None:
        with self._lock:
            self.graded += 1
            self.timeouts += verdict.reason == "timeout"
            self.errors += verdict.reason == "error"
        if verdict.is_ungraded:
            name = batch.name(index) or "(no id)"
            logger.warning("%s on prompt %s: %s", verdict.reason, name, why or "the grade says so")
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
        """Body of one thread: one grade after another, each in a slot."""
        while (job := self._next_job()) is not None:
            try:
                self._do(name, *job)
            except Exception as problem:  # noqa: BLE001 - or the caller would wait for ever
                job[0].fail(VerifierError(f"{name}: {type(problem).__name__}: {problem}"))
            with self._lock:
                is_late = name in self._late
                self._late.discard(name)
            if not is_late:
                self._slots.release()
        self._slots.release()

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

    def _do(self, name: str, batch: Batch, index: int) -> None:
        """One job, in a process of its own."""
        if self._is_closed:
            batch.fail(VerifierError(_CLOSED))
            return
        try:
            worker = self._start(name)
        except VerifierError as problem:
            batch.fail(problem)
            return
        request = json.dumps(batch.items[index]).encode("ascii") + b"\n"
        verdict, why = self._grade(name, worker, request)
        worker.reap()
        with self._lock:
            del self._workers[name]
        if verdict.is_ungraded and self._is_closed:  # killed by close(), not by the grade
            batch.fail(VerifierError(_CLOSED))
        else:
            self._settle(batch, index, verdict, why)

    def _start(self, name: str) -> WorkerHandle:
        worker = self._nursery.start_worker(name)
        with self._lock:
            self._workers[name] = worker
            if self._is_closed:
                worker.kill()
        return worker

    def _grade(self, name: str, worker: WorkerHandle, request: bytes) -> tuple[Verdict, str]:
        """One verdict, and why there is none."""
        limits = Limits(self.timeout_s, self.timeout_s * self.options.wall_factor)
        try:
            answer = self._answer(name, worker, request, limits)
        except TimeoutError:
            cpu_s = worker.cpu_s()
            return Verdict(0.0, "timeout"), (
                f"no verdict after {cpu_s:.1f} s of processor time (limit {self.timeout_s:g} s, "
                f"{limits.wall_s:g} s on the wall)"
            )
        except WorkerDied as died:
            return Verdict(0.0, "error"), f"its process (pid {worker.pid}) {str(died) or 'died'}"
        match answer:
            case {"verdict": [*fields]}:
                return Verdict(*fields), ""
            case {"raised": reason}:
                return Verdict(0.0, "error"), str(reason)
        return Verdict(0.0, "error"), f"its process (pid {worker.pid}) sent no verdict"

    def _answer(self, name: str, worker: WorkerHandle, request: bytes, limits: Limits) -> dict:
        worker.send(request, limits.deadline)
        late_s = min(LATE_S, self.timeout_s)
        try:
            return worker.receive(Limits(late_s, late_s * self.options.wall_factor))
        except TimeoutError:
            self._give_way(name)
        return worker.receive(limits)

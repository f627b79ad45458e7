"""Grade in processes that can be killed, so that no response can hang a run.

Each grade has a process of its own, a fork of one that has imported everything
(``worker_process``), so nothing is left from one grade to the next. A thread here starts it, feeds
it, and ends it with all that it started. There is no ``signal.alarm``, no fork of the caller and no
``multiprocessing``: the pool works in a daemonic process (a Ray actor), in any thread and under
asyncio.

A grade ends when its process has used ``timeout_s`` of processor time, read from outside: a busy
machine makes a grade late, not wrong. The backstop is a limit on the wall clock, ``wall_factor``
times as long, for a grade that waits for something.

``num_workers`` grades run at a time, each in a slot. One that has used ``LATE_S`` goes on but gives
its slot to a spare thread; so endless grades delay the others by ``LATE_S`` and not by
``timeout_s``, until ``MAX_SPARES`` of them run at the same time.

Covered: endless loops, also inside C code; crashes; exhausted memory; processes that a grade
starts, unless they leave its session. Not covered: other side effects outside the process.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from recipe.run.errors import ConfigError, VerifierError
from recipe.verify.grading import quick_grade
from recipe.verify.line import PeerDied
from recipe.verify.options import GradeOptions
from recipe.verify.pool.processes import WorkerFactory, WorkerHandle
from recipe.verify.schema import Item, Verdict

logger = logging.getLogger(__name__)

GRADE = "recipe.verify.grading:grade"
_QUICK = {GRADE: quick_grade}
_DEFAULTS = GradeOptions()
LATE_S = 0.5
MAX_SPARES = 8
_CLOSE_LIMIT_S = 10.0
# A program ends inside the limit of its grade, so that it is the program's verdict that counts.
_PROGRAM_SHARE = 0.8
_CLOSED = "the verifier pool is closed; make a new one to grade"


class _Batch:
    """One call's verdicts; ``future`` resolves when the last one is in, or one fails."""

    def __init__(self, items: Sequence[Item], ids: Sequence[str] | None) -> None:
        if ids is not None and len(ids) != len(items):
            raise ValueError(f"got {len(ids)} ids for {len(items)} items; give one per item")
        self.items = items
        self.ids = ids or [""] * len(items)
        self.future: Future[list[Verdict]] = Future()
        # Running futures cannot be cancelled, so a cancelled caller never races a worker.
        self.future.set_running_or_notify_cancel()
        self._verdicts: dict[int, Verdict] = {}
        self._lock = threading.Lock()
        if not items:
            self.future.set_result([])

    def settle(self, index: int, verdict: Verdict) -> None:
        with self._lock:
            self._verdicts[index] = verdict
            if len(self._verdicts) == len(self.items):
                self.future.set_result([self._verdicts[i] for i in range(len(self.items))])

    def fail(self, error: VerifierError) -> None:
        with self._lock:
            if not self.future.done():
                self.future.set_exception(error)


@dataclass(slots=True)
class _Job:
    """One item, and where its verdict goes."""

    batch: _Batch
    index: int
    has_slot: bool = True


class VerifierPool:
    """Grades batches, ``num_workers`` at a time, each grade in a process and under limits.

    Processes start with the first response that needs one. Close the pool, or use ``with``.

    Args:
        num_workers: Grades that run at the same time.
        timeout_s: Processor time of one grade; beyond it the process is killed and the verdict is
            ``timeout``.
        options: What may be chosen about grading.
        grade_path: ``module:function`` with the signature of ``grading.grade``.
        start_timeout_s: Limit for a process to import its grade function.
    """

    def __init__(
        self,
        num_workers: int = 2,
        timeout_s: float = 10.0,
        *,
        options: GradeOptions = _DEFAULTS,
        grade_path: str = GRADE,
        start_timeout_s: float = 60.0,
    ) -> None:
        limits = {"num_workers": num_workers, "timeout_s": timeout_s}
        for name, value in {**limits, "start_timeout_s": start_timeout_s}.items():
            if value <= 0:
                raise ConfigError(f"{name} must be above 0, got {value}")
        self._num_workers = num_workers
        self.timeout_s = timeout_s
        self._wall_s = timeout_s * options.wall_factor
        program_wall_s = min(options.program_wall_s, _PROGRAM_SHARE * self._wall_s)
        self._options = replace(options, program_wall_s=program_wall_s)
        self._grade_path = grade_path
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._workers: dict[str, WorkerHandle] = {}  # by the name of the thread
        self._slots = threading.Semaphore(num_workers)
        self._factory = WorkerFactory(grade_path, self._options, start_timeout_s)
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
        return await asyncio.wrap_future(self.submit(items, ids))

    def grade_many_blocking(
        self, items: Sequence[Item], ids: Sequence[str] | None = None
    ) -> list[Verdict]:
        """Do the same as ``grade_many``, for callers without an event loop."""
        return self.submit(items, ids).result()

    def submit(
        self, items: Sequence[Item], ids: Sequence[str] | None = None
    ) -> Future[list[Verdict]]:
        """Do the same as ``grade_many``, as a future of any thread; it cannot be cancelled."""
        batch = _Batch(items, ids)
        decide = _QUICK.get(self._grade_path)
        verdicts = [decide(item, self._options) if decide else None for item in items]
        with self._lock:
            if self._is_closed:
                raise VerifierError(_CLOSED)
            for index, verdict in enumerate(verdicts):
                if verdict is not None:
                    continue
                if len(self._threads) < self._num_workers + MAX_SPARES:
                    name = f"verifier worker {len(self._threads) + 1}"
                    thread = threading.Thread(
                        target=self._feed, args=(name,), name=name, daemon=True
                    )
                    thread.start()  # first: one that has not started serves nobody
                    self._threads.append(thread)
                # Under the lock, so that none comes after the end marks of close().
                self._jobs.put(_Job(batch, index))
        for index, verdict in enumerate(verdicts):
            if verdict is not None:
                self._settle(_Job(batch, index), verdict)
        return batch.future

    def close(self) -> None:
        """Kill the processes and fail what is still waiting; safe to call twice."""
        with self._lock:
            self._is_closed = True
            workers, threads = list(self._workers.values()), list(self._threads)
        self._factory.stop_start()
        for worker in workers:
            worker.kill()
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            thread.join(_CLOSE_LIMIT_S)
        self._factory.close()

    def __enter__(self) -> VerifierPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _settle(self, job: _Job, verdict: Verdict, why: str = "") -> None:
        name = job.batch.ids[job.index]
        if verdict.is_ungraded:
            why = why or "the grade says so"
            logger.warning("%s on prompt %s: %s", verdict.reason, name or "(no id)", why)
        job.batch.settle(job.index, verdict)

    def _feed(self, name: str) -> None:
        """Make one grade after another, each in a slot: the body of one thread."""
        while True:
            self._slots.acquire()
            job = self._jobs.get()
            if job is not None:
                try:
                    self._run(name, job)
                except VerifierError as problem:
                    job.batch.fail(problem)
                except Exception as problem:  # noqa: BLE001 - or the caller would wait for ever
                    job.batch.fail(VerifierError(f"{name}: {type(problem).__name__}: {problem}"))
            if job is None or job.has_slot:
                self._slots.release()
            if job is None:
                return

    def _run(self, name: str, job: _Job) -> None:
        """Make one grade, in a process of its own."""
        if self._is_closed:
            raise VerifierError(_CLOSED)
        worker = self._factory.start_worker()
        with self._lock:
            self._workers[name] = worker
            if self._is_closed:
                worker.kill()
        try:
            verdict, why = self._grade(worker, job)
        finally:
            worker.reap()
            with self._lock:
                del self._workers[name]
        if verdict.is_ungraded and self._is_closed:  # killed by close(), not by the grade
            raise VerifierError(_CLOSED)
        self._settle(job, verdict, why)

    def _grade(self, worker: WorkerHandle, job: _Job) -> tuple[Verdict, str]:
        """Return one verdict, and why there is none."""
        late_s = min(LATE_S, self.timeout_s)
        try:
            worker.send(job.batch.items[job.index], self._wall_s)
            try:
                answer = worker.receive(late_s, late_s * self._options.wall_factor)
            except TimeoutError:
                job.has_slot = False
                self._slots.release()
                answer = worker.receive(self.timeout_s, self._wall_s)
        except TimeoutError:
            return Verdict(0.0, "timeout"), (
                f"no verdict after {worker.cpu_s():.1f} s of processor time (limit "
                f"{self.timeout_s:g} s, {self._wall_s:g} s on the wall)"
            )
        except PeerDied as died:
            return Verdict(0.0, "error"), f"its process (pid {worker.pid}) {str(died) or 'died'}"
        match answer:
            case {"verdict": [*fields]}:
                return Verdict(*fields), ""
            case {"raised": reason}:
                return Verdict(0.0, "error"), str(reason)
        return Verdict(0.0, "error"), f"its process (pid {worker.pid}) sent no verdict"

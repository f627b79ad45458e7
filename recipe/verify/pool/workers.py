"""Grade in processes that can be killed, so that no response can hang a run.

Each grade has a process of its own, a fork of one that has imported everything
(``worker_process``), so nothing is left from one grade to the next. A thread here starts it, feeds
it, and ends it with all that it started. There is no ``signal.alarm``, no fork of the caller and no
``multiprocessing``: the pool works in a daemonic process (a Ray actor), in any thread and under
asyncio.

A grade ends when its process has used ``timeout_s`` of processor time, read from outside: a busy
machine makes a grade late, not wrong. The backstop is a limit on the wall clock, ``wall_factor``
times as long, for a grade that waits for something.

``num_workers`` grades run at a time, each in a slot. One that has used ``_LATE_S`` goes on but
gives its slot back; so endless grades delay the others by ``_LATE_S`` and not by ``timeout_s``,
until ``_MAX_SPARES`` of them run at the same time.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from recipe.run.errors import ConfigError, VerifierError
from recipe.verify.grading import quick_grade
from recipe.verify.line import PeerDied
from recipe.verify.options import GradeOptions
from recipe.verify.pool.processes import WorkerFactory, WorkerHandle
from recipe.verify.schema import Item, Verdict

logger = logging.getLogger(__name__)

GRADE = "recipe.verify.grading:grade"
_DEFAULTS = GradeOptions()
_LATE_S = 0.5
_MAX_SPARES = 8
# A program ends inside the limit of its grade, so that it is the program's verdict that counts.
_PROGRAM_SHARE = 0.8
_CLOSED = "the verifier pool is closed; make a new one to grade"


class VerifierPool:
    """Grades batches, ``num_workers`` at a time, each grade in a process and under limits.

    Processes start with the first response that needs one. Close the pool, or use ``with``.

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
        grade_path: str = GRADE,
    ) -> None:
        if num_workers <= 0 or timeout_s <= 0:
            raise ConfigError(f"{num_workers=} and {timeout_s=} must be above 0")
        self._timeout_s = timeout_s
        self._wall_s = timeout_s * options.wall_factor
        program_wall_s = min(options.program_wall_s, _PROGRAM_SHARE * self._wall_s)
        self._options = replace(options, program_wall_s=program_wall_s)
        self._is_quick_known = grade_path == GRADE
        self._factory = WorkerFactory(grade_path, self._options)
        self._threads = ThreadPoolExecutor(num_workers + _MAX_SPARES, "verifier worker")
        self._slots = threading.Semaphore(num_workers)
        self._lock = threading.Lock()
        self._workers: set[WorkerHandle] = set()
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
        named = zip(items, ids or [""] * len(items), strict=True)
        return [self._submit(item, name) for item, name in named]

    def close(self) -> None:
        """Kill the processes and fail what is still waiting; safe to call twice."""
        with self._lock:
            self._is_closed = True
            for worker in self._workers:
                worker.kill()
        self._threads.shutdown()
        self._factory.close()

    def __enter__(self) -> VerifierPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self, item: Item, name: str) -> Future[Verdict]:
        if self._is_closed:
            raise VerifierError(_CLOSED)
        verdict = quick_grade(item, self._options) if self._is_quick_known else None
        if verdict is None:
            return self._threads.submit(self._run, item, name)
        decided: Future[Verdict] = Future()
        decided.set_result(_logged(verdict, name, "the grade says so"))
        return decided

    def _run(self, item: Item, name: str) -> Verdict:
        """Make one grade, in a slot and in a process of its own."""
        slot = _Slot(self._slots)
        try:
            if self._is_closed:
                raise VerifierError(_CLOSED)
            worker = self._factory.start_worker()
            try:
                with self._lock:
                    self._workers.add(worker)
                    if self._is_closed:
                        worker.kill()
                verdict, why = self._grade(worker, item, slot)
            finally:
                with self._lock:
                    self._workers.discard(worker)
                worker.reap()
        finally:
            slot.leave()
        if verdict.is_ungraded and self._is_closed:  # killed by close(), not by the grade
            raise VerifierError(_CLOSED)
        return _logged(verdict, name, why)

    def _grade(self, worker: WorkerHandle, item: Item, slot: _Slot) -> tuple[Verdict, str]:
        """Return one verdict, and why there is none."""
        late_s = min(_LATE_S, self._timeout_s)
        try:
            worker.send(item, self._wall_s)
            try:
                answer = worker.receive(late_s, late_s * self._options.wall_factor)
            except TimeoutError:
                slot.leave()
                answer = worker.receive(self._timeout_s, self._wall_s)
        except TimeoutError:
            return Verdict(0.0, "timeout"), (
                f"no verdict after {worker.cpu_s():.1f} s of processor time (limit "
                f"{self._timeout_s:g} s, {self._wall_s:g} s on the wall)"
            )
        except PeerDied as died:
            return Verdict(0.0, "error"), f"its process (pid {worker.pid}) {str(died) or 'died'}"
        match answer:
            case {"verdict": [*fields]}:
                return Verdict(*fields), "the grade says so"
            case {"raised": reason}:
                return Verdict(0.0, "error"), str(reason)
        return Verdict(0.0, "error"), f"its process (pid {worker.pid}) sent no verdict"


class _Slot:
    """A place among the grades that run at a time; left once."""

    def __init__(self, slots: threading.Semaphore) -> None:
        slots.acquire()
        self._slots: threading.Semaphore | None = slots

    def leave(self) -> None:
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.release()


def _logged(verdict: Verdict, name: str, why: str) -> Verdict:
    if verdict.is_ungraded:
        logger.warning("%s on prompt %s: %s", verdict.reason, name or "(no id)", why)
    return verdict

"""Check that the actors which the driver depends on are alive: many waits have no limit."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import ray
from ray.exceptions import ActorDiedError, OutOfMemoryError, RayError, RayTaskError

from recipe.run.watchdog import text_of

_EVERY_S = 2.0


class Liveness:
    """A thread with one question under way to each actor.

    verl and TransferQueue wait for each other without a limit, over sockets that do not tell of a
    process that was stopped. An actor that answers Ray has a process that runs.
    """

    def __init__(
        self,
        *,
        limit_s: float,
        on_fault: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without any actor.

        Args:
            limit_s: Longest time to an answer in seconds, ``hint.watchdog.answer_s``.
            on_fault: Takes the sentence that says who died or does not answer.
            now: A clock in seconds.
        """
        self._limit_s, self._on_fault, self._now = limit_s, on_fault, now
        self._questions: dict[str, tuple[Callable[[], Any], bool]] = {}
        self._asked: dict[str, tuple[Any, float]] = {}
        self._answers: dict[str, Any] = {}

    def add(self, name: str, ask: Callable[[], Any], *, may_be_busy: bool = False) -> None:
        """Watch an actor.

        Args:
            name: As an error will call it.
            ask: Sends the question; returns Ray's reference to the answer.
            may_be_busy: One that does one thing at a time answers when that is done, however long
                it takes: only its death is told.
        """
        self._questions[name] = (ask, may_be_busy)

    def answers(self) -> Mapping[str, Any]:
        """Return who answered what last; ``None`` where the last question has no answer yet."""
        return dict(self._answers)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Ask again and again while the block runs."""
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(_EVERY_S):
                try:
                    fault = self.look()
                except Exception as error:  # noqa: BLE001 - nobody would watch from here on
                    fault = f"the watch over the run's actors failed: {text_of(error)}"
                if fault and not stop.is_set():
                    self._on_fault(fault)
                    return

        threading.Thread(target=watch, name="liveness", daemon=True).start()
        try:
            yield
        finally:
            stop.set()

    def look(self) -> str | None:
        """Read the answers that came and ask again; return what is wrong, if anything is."""
        late = []
        for name, (ask, may_be_busy) in self._questions.items():
            answer, since = self._asked.get(name, (None, self._now()))
            try:
                if answer is None or ray.wait([answer], timeout=0)[0]:
                    self._answers[name] = None if answer is None else ray.get(answer)
                    self._asked[name] = (ask(), self._now())
                    continue
            # Ray's memory monitor kills actors where the machine runs out of memory.
            except (ActorDiedError, OutOfMemoryError) as error:
                return f"{name} died: {text_of(error)}"
            except RayTaskError as error:  # its own answer
                return f"{name} cannot go on: {text_of(error.cause)}"
            except RayError:  # unreachable this time
                self._asked[name] = (ask(), since)
            self._answers[name] = None
            if not may_be_busy and self._now() - since > self._limit_s:
                late.append(name)
        if late:
            names = ", ".join(late)
            return f"{names} did not answer within hint.watchdog.answer_s={self._limit_s:g} s"
        return None


def watch_servers(liveness: Liveness, managers: Iterable[Any]) -> None:
    """Watch the vLLM servers of verl's managers and the load balancers in front of them."""
    servers: list[Any] = []
    for number, manager in enumerate(managers):
        servers += [each for replica in manager.get_replicas() for each in replica.servers]
        name = f"load balancer {number} of the vLLM servers"
        liveness.add(name, ready(manager.global_load_balancer))
    for number, server in enumerate(servers):
        liveness.add(f"vLLM server {number}", ready(server))


def ready(actor: Any) -> Callable[[], Any]:
    """Return a question that every actor of Ray answers."""
    return lambda: actor.__ray_ready__.remote()

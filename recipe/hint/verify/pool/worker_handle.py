"""The pool's end of one grading process: talk to it under a limit, end it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import threading
import time
from typing import Any

_END_LIMIT_MS = 10_000
_LEAST_WAIT_S = 0.01


class WorkerDied(Exception):
    """The process closed its end or speaks no sense; what it was doing is lost."""


class Line:
    """Lines of JSON over a socket."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._received = b""

    def send(self, request: bytes, deadline: float, descriptor: int | None = None) -> None:
        """Send one line, and a descriptor with it.

        Raises:
            TimeoutError: ``deadline`` (``time.monotonic`` seconds) has passed.
            WorkerDied: The process ended.
        """
        try:
            self._limit(deadline)
            if descriptor is not None:
                socket.send_fds(self.socket, [request], [descriptor])
            else:
                self.socket.sendall(request)
        except TimeoutError:
            raise
        except OSError as problem:
            raise WorkerDied from problem

    def receive(self, deadline: float) -> Any:
        """Wait for one line; errors as in ``send``, and for a line that is not JSON."""
        while b"\n" not in self._received:
            try:
                self._limit(deadline)
                chunk = self.socket.recv(1 << 16)
            except TimeoutError:
                raise
            except OSError as problem:
                raise WorkerDied from problem
            if not chunk:
                raise WorkerDied
            self._received += chunk
        line, self._received = self._received.split(b"\n", 1)
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise WorkerDied("sent what is no line of JSON") from problem

    def _limit(self, deadline: float) -> None:
        # 0 would mean non-blocking, so an expired deadline still waits a moment.
        self.socket.settimeout(max(deadline - time.monotonic(), 0.001))


class Limits:
    """How much of its time a grade has used: of the processor's, and on the wall behind it.

    Args:
        cpu_s: Processor time that ends it.
        wall_s: Time on the wall that ends it: it waits, or others keep the processor.
    """

    def __init__(self, cpu_s: float, wall_s: float) -> None:
        self.wall_s = wall_s
        self._cpu_s = cpu_s
        self._start = time.monotonic()

    @property
    def deadline(self) -> float:
        """Of the wall, in ``time.monotonic`` seconds."""
        return self._start + self.wall_s

    def left_s(self, used_cpu_s: float) -> float:
        """How long neither limit can pass; 0 when one has.

        A process uses at most a second of its processor's time in a second (those with threads
        that compute at the same time are found late by so much).
        """
        left = min(self._cpu_s - used_cpu_s, self.deadline - time.monotonic())
        return max(left, _LEAST_WAIT_S) if left > 0 else 0.0


class WorkerHandle:
    """One grading process and the socket to it; used by one thread, killed by any."""

    def __init__(self, end: socket.socket, pid: int) -> None:
        # Holds on to the process itself: its number may be given to another after its end.
        self._process_fd = os.pidfd_open(pid)
        self._lock = threading.Lock()
        self._line = Line(end)
        self.pid = pid

    def send(self, request: bytes, deadline: float) -> None:
        """Send one line.

        Raises:
            TimeoutError: ``deadline`` (``time.monotonic`` seconds) has passed.
            WorkerDied: The process ended.
        """
        self._line.send(request, deadline)

    def receive(self, limits: Limits) -> Any:
        """Wait for one line within the limits, again after a ``TimeoutError`` if need be.

        Errors as in ``send``.
        """
        while wait_s := limits.left_s(self.cpu_s()):
            with contextlib.suppress(TimeoutError):
                return self._line.receive(time.monotonic() + wait_s)
        raise TimeoutError

    def cpu_s(self) -> float:
        """Processor time that the process has used, without that of processes it started."""
        try:
            # The kernel's number for the clock of a process (clock_getcpuclockid).
            return time.clock_gettime((~self.pid << 3) | 2)
        except OSError:  # it has ended, which the socket tells
            return 0.0

    def kill(self) -> None:
        """End the process and all of its group; who waits on the socket sees its end."""
        with self._lock:
            if self._process_fd >= 0:
                # The group first: its number is the process's, and taken as long as that lives.
                for end in (
                    lambda: os.killpg(self.pid, signal.SIGKILL),
                    lambda: signal.pidfd_send_signal(self._process_fd, signal.SIGKILL),
                ):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        end()

    def reap(self) -> None:
        """Kill, wait for the end, close; safe to call twice."""
        self.kill()
        with self._lock:
            if self._process_fd < 0:
                return
            waiter = select.poll()
            waiter.register(self._process_fd, select.POLLIN)
            waiter.poll(_END_LIMIT_MS)
            os.close(self._process_fd)
            self._process_fd = -1
        self._line.socket.close()

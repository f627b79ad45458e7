"""Lines of JSON over a socket to another process, each under a deadline."""

from __future__ import annotations

import json
import socket
import time
from typing import Any


class PeerDied(Exception):
    """The other process closed its end, or sent no JSON."""


class Line:
    """One end; deadlines are in ``time.monotonic`` seconds."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._received = b""

    def send(self, message: object, deadline: float, *descriptors: int) -> None:
        """Send one line, and descriptors with it; ``TimeoutError``, ``PeerDied``."""
        data = json.dumps(message).encode("ascii") + b"\n"
        if descriptors:
            self._call(deadline, socket.send_fds, self.socket, [data], descriptors)
        else:
            self._call(deadline, self.socket.sendall, data)

    def receive(self, deadline: float) -> Any:
        """Wait for one line; errors as in ``send``, and for a line that is not JSON."""
        while b"\n" not in self._received:
            chunk = self._call(deadline, self.socket.recv, 1 << 16)
            if not chunk:
                raise PeerDied
            self._received += chunk
        line, self._received = self._received.split(b"\n", 1)
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise PeerDied("sent a line that is not JSON") from problem

    def _call(self, deadline: float, call: Any, *arguments: Any) -> Any:
        try:
            # 0 would mean non-blocking, so an expired deadline still waits a moment.
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            return call(*arguments)
        except TimeoutError:
            raise
        except OSError as problem:
            raise PeerDied from problem

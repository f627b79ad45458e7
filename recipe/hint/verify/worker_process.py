"""What runs inside the verifier's processes: a nursery, and workers copied from it.

The nursery is started by ``recipe.hint.verify.workers`` as a plain program, so it inherits no
threads, locks, GPU context or signal handlers from a trainer. It imports the grade function,
says ``"ready"``, and then forks a worker for every socket it is sent; it has one thread, so
a fork is a whole copy. A worker reads a request, grades, answers, repeats: one JSON array per
line each way, the fields of an ``Item`` in, those of a ``Verdict`` out. It ends when
the other side of its socket closes, and with the nursery.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import queue
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import astuple

from recipe.hint.schema import Item, Verdict
from recipe.hint.verify.options import GradeOptions

Grade = Callable[[Item, GradeOptions], Verdict]
_PR_SET_PDEATHSIG = 1


def load_grade(grade_path: str) -> Grade:
    """Import ``package.module:function``."""
    module, _, function = grade_path.partition(":")
    return getattr(importlib.import_module(module), function)


def main(socket_fd: int, grade_path: str, parent_pid: int, options: str) -> None:
    """Make workers until the parent is gone."""
    _die_with_parent(parent_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the trainer's to handle
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended workers leave no zombies
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a grade function prints must not end up on the trainer's stdout

    grade, chosen = load_grade(grade_path), GradeOptions(**json.loads(options))
    # The first grade pays for lazy imports; better here than inside a timed one.
    grade(Item(r"\boxed{\sqrt{8}}", r"2\sqrt{2}"), chosen)
    assert threading.active_count() == 1, "a fork would lose the other threads"
    nursery = socket.socket(fileno=socket_fd)
    _send(nursery, "ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(nursery, len(b"copy\n"), 1)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            nursery.close()
            _work(socket.socket(fileno=descriptors[0]), grade, chosen)
        os.close(descriptors[0])
        _send(nursery, pid)


def _work(channel: socket.socket, grade: Grade, options: GradeOptions) -> None:
    """Serve until the other side is gone.

    An exception out of the grade function ends the process with a traceback: the pool
    counts the grade as ``error`` and takes a clean process.
    """
    _die_with_parent(os.getppid())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # programs are waited for
    if options.worker_memory_mib:
        num_bytes = options.worker_memory_mib << 20
        resource.setrlimit(resource.RLIMIT_AS, (num_bytes, num_bytes))
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read_requests, args=(channel, requests), daemon=True).start()
    while True:
        verdict = grade(Item(*json.loads(requests.get())), options)
        _send(channel, astuple(verdict))


def _die_with_parent(parent_pid: int) -> None:
    # End of file is noticed by a Python thread; a grade stuck inside C code holds the
    # interpreter lock and would outlive the trainer. The kernel's signal does not wait.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:  # the parent died before the call
            os._exit(0)


def _read_requests(channel: socket.socket, requests: queue.SimpleQueue[str]) -> None:
    with channel.makefile("r", encoding="ascii") as lines:
        for line in lines:
            requests.put(line)
    os._exit(0)  # the grading thread may be busy for ever


def _send(channel: socket.socket, message: object) -> None:
    channel.sendall(json.dumps(message).encode("ascii") + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])

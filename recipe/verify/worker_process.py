"""What runs inside the verifier's processes: a worker factory, and the workers that it forks.

The factory is started as a plain program, so it inherits no threads, locks, GPU context or signal
handlers from a trainer. It imports the grade function, sends nothing or why that failed, and
forks a worker for every socket it is sent, whose number it answers; it has one thread, so a fork is
a whole copy. A worker makes one grade and ends, and the factory never sees a response: what a grade
leaves behind in its process is gone with it. A worker reads an ``Item`` as a line of JSON, and
writes the fields of a ``Verdict``, or what was raised.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from dataclasses import astuple
from pathlib import Path
from typing import Any

from recipe.run.errors import ConfigError, one_line
from recipe.verify.gym import data_sets
from recipe.verify.options import GradeOptions
from recipe.verify.programs.sandbox import bind_to
from recipe.verify.schema import Item

# A process for one grade has little to collect, and the default looks for it every 700 objects.
_GC_THRESHOLDS = (50_000, 20, 50)


def main(socket_fd: int, grade_path: str, parent_pid: int, options: str) -> None:
    """Fork workers until the parent is gone."""
    bind_to(parent_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the trainer's to handle
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended workers leave no zombies
    os.dup2(2, 1)  # what a grade function prints must not end up on the trainer's stdout
    factory = socket.socket(fileno=socket_fd)
    try:
        chosen = GradeOptions(**json.loads(options))
        name, _, function = grade_path.partition(":")
        module = importlib.import_module(name)
        if hasattr(module, "prepare"):  # all that a grade needs, so that no grade pays for it
            module.prepare(chosen)
        if threading.active_count() > 1:
            raise ConfigError("importing it starts a thread; start threads in the function instead")
        gc.collect()
        gc.freeze()  # the collections of a worker leave the shared pages alone
        grade = getattr(module, function)
    except BaseException as problem:  # a user's module may raise anything
        _send(factory, _told(problem))
        raise
    _send(factory, "")
    while True:
        message, descriptors, _, _ = socket.recv_fds(factory, 1 << 10, 1)
        if not message:
            return
        if message.endswith(b" reasoning_gym"):
            with contextlib.suppress(ConfigError):  # a worker meets it again, and says so
                data_sets()  # once, for all workers
        pid = os.fork()
        if pid == 0:
            factory.close()
            _work(socket.socket(fileno=descriptors[0]), grade, chosen)
        os.close(descriptors[0])
        _send(factory, pid)


def _work(channel: socket.socket, grade: Any, options: GradeOptions) -> None:
    """Make one grade, send it, and stay until the pool ends the process."""
    bind_to(os.getppid())  # no program of the same user can read the tests out of this process
    os.setsid()  # the pool ends the whole group, with what a grade has started
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # programs are waited for
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.set_threshold(*_GC_THRESHOLDS)
    if options.worker_memory_mib:
        # Soft: a sandbox sets limits of its own, which may be higher.
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        num_bytes = pages * resource.getpagesize() + (options.worker_memory_mib << 20)
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (num_bytes, hard))
    with channel.makefile("rb") as lines:
        request = lines.readline()
        if request:
            try:
                message = astuple(grade(Item(*json.loads(request)), options))
            except BaseException as problem:  # noqa: BLE001 - the last frame of a grade: report it
                traceback.print_exc()
                message = _told(problem)
            _send(channel, message)
            lines.readline()
    os._exit(0)


def _told(problem: BaseException) -> str:
    kind = "" if isinstance(problem, ConfigError) else f"{type(problem).__name__}: "
    return f"{kind}{one_line(problem)}"[:300]


def _send(channel: socket.socket, message: object) -> None:
    channel.sendall(json.dumps(message).encode("ascii") + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])

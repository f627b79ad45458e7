"""The warm process: imports, then forks on request (see ``fork_server``).

It has one thread and opens nothing while it imports, so that a fork is safe.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recipe.hint.runtime.cpu.fork_client_process import EXECUTABLE, PYTHON, SOCKET

# What these import knows nothing of Ray.
EARLY = (
    *("torch", "torch.distributed.fsdp", "torch.nn.functional", "tensordict", "transformers"),
    *("transformers.modeling_utils", "peft", "accelerate", "datasets", "pandas", "pyarrow"),
    *("sympy", "openai", "fastapi", "aiohttp", "antlr4", "numpy", "omegaconf", "hydra"),
)
# Ray reads its environment when it is imported, the job and the raylet included, and keeps it. So
# these wait for the first process that Ray starts, and are imported in its environment.
LATE = (
    "recipe.hint.runtime.trainer",
    "recipe.hint.runtime.worker",
    "recipe.hint.runtime.rollout_server",
    "recipe.hint.runtime.task_runner",
    "recipe.hint.runtime.evaluation_runner",
    "verl.workers.engine_workers",
    "vllm.v1.engine.core",
    "vllm.v1.worker.cpu_worker",
)
_PR_SET_PDEATHSIG = 1


class _Server:
    """Forks on request and reports how the forks ended."""

    def __init__(self, path: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self._clients: dict[int, socket.socket] = {}  # by pid of the fork
        self._has_late = False
        self._wake, self._awake = socket.socketpair()
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Until killed. In a fork this returns never: it runs what was asked for and exits."""
        self._wake.setblocking(False)
        self._awake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._awake, selectors.EVENT_READ, self._reap)
        while True:
            for key, _ in self._selector.select():
                key.data()

    def _accept(self) -> None:
        client = self._listener.accept()[0]
        pid = self._fork(client)
        # It says nothing more. If it can be read, it was killed, and takes its fork along.
        self._selector.register(client, selectors.EVENT_READ, lambda: self._drop(client, pid))

    def _drop(self, client: socket.socket, pid: int) -> None:
        self._selector.unregister(client)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _fork(self, client: socket.socket) -> int:
        request, fds = _receive(client)
        self._import_late(request["env"])
        # The forks do not look through what was imported: each of their full collections would
        # take half a second, and the first would copy every page.
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            own = (self._selector, self._listener, self._wake, self._awake)
            for each in (*own, *self._clients.values(), client):
                each.close()
            _become(request, fds)
        for fd in fds:
            os.close(fd)
        self._clients[pid] = client
        client.sendall(struct.pack("!i", pid))
        return pid

    def _import_late(self, environment: dict[str, str]) -> None:
        if not self._has_late:
            os.environ.update({k: v for k, v in environment.items() if k.startswith("RAY_")})
            with _unused_ray_generator():
                _import(LATE)
            self._has_late = True

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._awake.recv(4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            client = self._clients.pop(pid)
            with contextlib.suppress(OSError, KeyError):
                self._selector.unregister(client)
            with contextlib.suppress(OSError):
                client.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
            client.close()


@contextlib.contextmanager
def _unused_ray_generator() -> Iterator[None]:
    """Keep Ray's generator of ids unseeded while modules define actor classes.

    It seeds itself at its first use. Used before a fork, all forks would draw the same ids: two
    workers that start at the same time then die over one object, "already existed in plasma".
    """
    import ray.actor

    real = ray.actor.ActorClassID

    class Fresh:
        @staticmethod
        def from_random() -> Any:
            return real(os.urandom(real.size()))

    ray.actor.ActorClassID = Fresh
    try:
        yield
    finally:
        ray.actor.ActorClassID = real


def _receive(client: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, fds, _, _ = socket.recv_fds(client, 4, 253)
    size = struct.unpack("!I", head)[0]
    text = bytearray()
    while len(text) < size:
        text += client.recv(size - len(text))
    return json.loads(bytes(text)), list(fds)


def _become(request: dict[str, Any], fds: list[int]) -> None:
    """Be ``python *argv``, with the descriptors, environment and folder of the one who asked."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _die_with_parent()
        _join_group(request["group"])
        _place(fds, request["fds"])
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        _fresh_state()
        _execute(request["argv"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the last frame of a process: report and end
        traceback.print_exc()
    finally:
        _exit(code)


def _join_group(group: int) -> None:
    """Be in the process group of the one who asked; 0: in one of our own, as its leader was.

    Ray kills the whole group of a worker that ends: it must hold no other worker.
    """
    try:
        os.setpgid(0, group)
    except PermissionError:  # a group of another session
        os.setpgid(0, 0)


def _place(fds: list[int], numbers: list[int]) -> None:
    """Give the received descriptors the numbers they had where they came from."""
    high = max([*fds, *numbers]) + 1
    moved = []
    for offset, fd in enumerate(fds):  # out of the way first: the ranges may overlap
        os.dup2(fd, high + offset, inheritable=False)
        os.close(fd)
        moved.append(high + offset)
    for fd, number in zip(moved, numbers, strict=True):
        os.dup2(fd, number, inheritable=number <= 2)
        os.close(fd)


def _fresh_state() -> None:
    """What a new interpreter would have set up from its environment."""
    import multiprocessing

    import numpy as np
    import torch

    gc.enable()
    multiprocessing.set_executable(os.environ[EXECUTABLE])
    sys.executable = os.environ[PYTHON]
    np.random.seed()
    if threads := os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(int(threads))


def _execute(argv: list[str]) -> None:
    argv = list(argv)
    while argv[0] in ("-u", "-B", "-s", "-S", "-E", "-I") or argv[0].startswith(("-X", "-W")):
        argv.pop(0)
    if argv[0] == "-c":
        sys.argv = ["-c", *argv[2:]]
        exec(argv[1], sys.modules["__main__"].__dict__)
    elif argv[0] == "-m":
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path.insert(0, str(Path(argv[0]).parent))
        runpy.run_path(argv[0], run_name="__main__")


def _exit(code: int) -> None:
    """As the interpreter ends: other threads first, then what was registered, then the files."""
    with contextlib.suppress(BaseException):
        threading._shutdown()
        atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(parent_pid: int) -> None:
    """Import, then serve; ends with the process that started it."""
    _die_with_parent()
    if os.getppid() != parent_pid:
        return
    gc.disable()  # imports leave next to no garbage
    _import(EARLY)
    _Server(os.environ[SOCKET]).serve()


def _import(names: tuple[str, ...]) -> None:
    for name in names:
        importlib.import_module(name)


if __name__ == "__main__":
    main(int(sys.argv[1]))

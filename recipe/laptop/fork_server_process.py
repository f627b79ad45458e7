"""One Python that has done the heavy imports, from which a CPU run's processes are forked.

A run starts about ten Python processes, and each would import torch and transformers again. The
seams are Ray's documented ``runtime_env.py_executable`` and ``multiprocessing.set_executable``.
Nothing of Ray is imported before the fork: it keeps the environment and the random state that it
finds then.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import multiprocessing
import os
import resource
import runpy
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path

import setproctitle

from recipe.laptop.fork_client_process import MAX_FDS, PYTHON, SOCKET
from recipe.run.environment import PYTHON_OF_RUN

_IMPORTS = (
    *("torch", "torch.distributed.fsdp", "tensordict", "transformers.modeling_utils", "peft"),
    *("accelerate", "datasets", "pandas", "sympy", "openai", "fastapi", "aiohttp", "hydra"),
    *("torch._inductor.lowering", "vllm.engine.arg_utils", "vllm.model_executor.layers.linear"),
    "vllm.entrypoints.pooling.base.io_processor",
)
_FLAGS = ("-u", "-B", "-s", "-S", "-E", "-I")


@contextlib.contextmanager
def fork_server() -> Iterator[None]:
    """Keep a server during the block, and name the program to start in place of Python.

    The environment must be complete: libraries read it when they are imported.
    """
    # A socket's name has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="hint-", dir="/tmp") as folder:
        client, source = Path(folder, "python"), Path(__file__).with_name("fork_client_process.py")
        client.write_text(f"#!{sys.executable} -SE\n{source.read_text(encoding='utf-8')}")
        client.chmod(0o755)
        names = {SOCKET: f"{folder}/socket", PYTHON: sys.executable, PYTHON_OF_RUN: str(client)}
        os.environ.update(names)
        command = [sys.executable, "-m", __name__, str(os.getpid())]
        # A session of its own: Ctrl-C is for the run's first process, which ends the others.
        nothing = subprocess.DEVNULL  # vLLM tells at its import what it found
        server = subprocess.Popen(command, stdin=nothing, stdout=nothing, start_new_session=True)
        try:
            yield
        finally:
            server.kill()
            for name in names:
                os.environ.pop(name)
            server.wait()


def main(parent_pid: int) -> None:
    """Import, then fork on request; end with the process that started it."""
    _die_with_parent()
    if os.getppid() != parent_pid:
        return
    # The limit of Ray's workers; a client's own is not inherited.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    gc.disable()  # imports leave next to no garbage
    for name in _IMPORTS:
        importlib.import_module(name)
    gc.freeze()  # a full collection in a fork would copy every page
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{os.environ[SOCKET]}.new")
    listener.listen(64)
    os.rename(f"{os.environ[SOCKET]}.new", os.environ[SOCKET])  # there, it answers
    while True:
        channel = listener.accept()[0]
        with channel, contextlib.suppress(BlockingIOError):  # its client becomes Python
            if os.fork() == 0:
                listener.close()
                _become(channel)


def _become(channel: socket.socket) -> None:
    """Run as ``python *argv``, with descriptors, environment and folder of the client."""
    code = 1
    try:
        _die_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Ray kills the group of a worker that ends: it must hold no other worker.
        os.setpgid(0, 0)
        head, received, _, _ = socket.recv_fds(channel, 4, MAX_FDS)
        with channel.makefile("rb") as reader:
            request = json.loads(reader.read(struct.unpack("!I", head)[0]))
        argv, environment, folder, numbers = request
        above = max(numbers) + 1  # first out of the way: they may overlap
        apart = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) for fd in received]
        channel = socket.socket(fileno=fcntl.fcntl(channel.detach(), fcntl.F_DUPFD_CLOEXEC, above))
        for fd in received:
            os.close(fd)
        for fd, number in zip(apart, numbers, strict=True):
            os.dup2(fd, number, inheritable=number <= 2)
            os.close(fd)
        channel.sendall(b"1")
        threading.Thread(target=_end_with, args=(channel,), daemon=True).start()
        if "-c" in argv:  # its place is found by the first environment, by Ray's own library too
            setproctitle.getproctitle()
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        _fresh_state()
        _execute(argv)
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the last frame of a process: report and end
        traceback.print_exc()
    with contextlib.suppress(BaseException):
        # What the interpreter calls at its end; it has no public name.
        threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    with contextlib.suppress(OSError):
        channel.sendall(struct.pack("!i", code))
    os._exit(code)


def _end_with(channel: socket.socket) -> None:
    """End this process when its client, which says nothing more, is gone."""
    channel.recv(1)
    os._exit(1)


def _fresh_state() -> None:
    """Set up what a new interpreter would have read from its environment."""
    import numpy as np
    import torch

    gc.enable()
    multiprocessing.set_executable(os.environ[PYTHON_OF_RUN])
    sys.executable = os.environ[PYTHON]
    np.random.seed()
    # Ray sets the variable to 1, too late for a torch that is already there.
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    for entry in reversed(os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if entry and entry not in sys.path:
            sys.path.insert(0, entry)


def _execute(argv: list[str]) -> None:
    while argv[0] in _FLAGS or argv[0].startswith(("-X", "-W")):
        argv.pop(0)
    sys.argv = argv if argv[0][:1] != "-" else argv[1:]
    if argv[0] == "-c":
        code, sys.argv[0] = argv[1], "-c"
        exec(code, sys.modules["__main__"].__dict__)
    elif argv[0] == "-m":
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(argv[0]).parent))
        runpy.run_path(argv[0], run_name="__main__")


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    main(int(sys.argv[1]))

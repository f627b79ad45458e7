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
import errno
import gc
import importlib
import json
import os
import resource
import runpy
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import setproctitle

from recipe.laptop.fork_client_process import CHECK, EXECUTABLE, MAX_FDS, PYTHON, SOCKET

_IMPORTS = (
    *("torch", "torch.distributed.fsdp", "tensordict", "transformers.modeling_utils", "peft"),
    *("accelerate", "datasets", "pandas", "sympy", "openai", "fastapi", "aiohttp", "hydra"),
    *("torch._inductor.lowering", "vllm.engine.arg_utils", "vllm.model_executor.layers.linear"),
    "vllm.entrypoints.pooling.base.io_processor",
)
_PR_SET_PDEATHSIG = 1
_MAX_SOCKET_BYTES, _MAX_FILES = 107, 65536
_CHECK_S = 30.0
_END_S = 10.0  # after SIGKILL
_SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ECONNABORTED}


@contextlib.contextmanager
def fork_server() -> Iterator[str]:
    """Keep a server for the time of a run; yield the program to start in place of Python.

    The environment must be complete: libraries read it when they are imported.
    """
    with _temporary_folder() as folder:
        client, source = folder / "python", Path(__file__).with_name("fork_client_process.py")
        client.write_text(f"#!{sys.executable} -SE\n{source.read_text(encoding='utf-8')}")
        client.chmod(0o755)
        if not _runs(client):
            sys.stderr.write(
                f"{client} does not run: each process imports by itself (is TMPDIR mounted "
                f"noexec? does {sys.executable} have a space in it?)\n"
            )
            yield ""
            return
        names = {SOCKET: str(folder / "socket"), PYTHON: sys.executable, EXECUTABLE: str(client)}
        os.environ.update(names)
        try:
            with _server(folder):
                yield str(client)
        finally:
            for name in names:
                os.environ.pop(name)


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Make a folder whose name leaves room for that of a socket; it is gone after the block."""
    place = tempfile.gettempdir()
    if len(os.fsencode(f"{place}/hint-12345678/socket.new")) > _MAX_SOCKET_BYTES:
        place = "/tmp"
    folder = Path(tempfile.mkdtemp(prefix="hint-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[None]:
    """Run the server, which finds its socket's name in the environment, during the block."""
    command = [sys.executable, "-m", __name__, str(os.getpid())]
    # A session of its own: Ctrl-C is for the run's first process, which ends the others.
    nothing = subprocess.DEVNULL  # vLLM tells at its import what it found
    server = subprocess.Popen(command, stdin=nothing, stdout=nothing, start_new_session=True)
    is_wanted = True

    def watch() -> None:
        code = server.wait()
        if is_wanted:
            with contextlib.suppress(OSError):
                (folder / "socket").touch()  # a connection to it is refused: no client waits
            sys.stderr.write(f"the fork server died (pid {server.pid}, code {code})\n")

    watcher = threading.Thread(target=watch, name="fork-server", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_wanted = False
        server.kill()
        watcher.join(_END_S)
        if watcher.is_alive():
            sys.stderr.write(
                f"the fork server (pid {server.pid}) has not ended {_END_S:g} s after SIGKILL: it "
                f"may wait for a disk; it is left behind\n"
            )


def _runs(client: Path) -> bool:
    try:
        return subprocess.run([client, CHECK], timeout=_CHECK_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def main(parent_pid: int) -> None:
    """Import, then fork on request; end with the process that started it."""
    _die_with_parent()
    if os.getppid() != parent_pid:
        return
    # The limit of Ray's workers; a client's own is not inherited.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, _MAX_FILES)), hard))
    gc.disable()  # imports leave next to no garbage
    for name in _IMPORTS:
        importlib.import_module(name)
    gc.freeze()  # a full collection in a fork would copy every page
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{os.environ[SOCKET]}.new")
    listener.listen(64)
    os.rename(f"{os.environ[SOCKET]}.new", os.environ[SOCKET])  # there, it answers
    told: set[int | None] = set()
    while True:
        try:
            channel = listener.accept()[0]
        except OSError as error:
            _wait_after(error, told)
            continue
        with channel:
            try:
                is_child = os.fork() == 0
            except OSError as error:  # its client becomes a Python of its own
                _wait_after(error, told)
                continue
            if is_child:
                listener.close()
                _supervise(channel)


def _wait_after(error: OSError, told: set[int | None]) -> None:
    """Say once that files, processes or memory run short, and give others time to end.

    Raises:
        OSError: If it says something else.
    """
    if error.errno not in _SHORTAGES:
        raise error
    if error.errno not in told:
        sys.stderr.write(f"fork server: {error}\n")
    told.add(error.errno)
    time.sleep(0.1)


def _supervise(channel: socket.socket) -> None:
    """Fork what was asked for, end it when its client dies, and report how it ended."""
    _die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, fds, _, _ = socket.recv_fds(channel, 4, MAX_FDS)
    with channel.makefile("rb") as reader:
        request = json.loads(reader.read(struct.unpack("!I", head)[0]))
    if len(fds) < len(request[3][:MAX_FDS]):  # no room for them: its client becomes Python
        os._exit(1)
    pid = os.fork()
    if pid == 0:
        channel.close()
        _become(*request, received=list(fds))
    for fd in fds:
        os.close(fd)
    with contextlib.suppress(OSError):  # a client that is gone is seen below
        channel.sendall(struct.pack("!i", pid))
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if select.select([channel], [], [], 0.1)[0]:  # it says nothing more: it is gone
            os.kill(pid, signal.SIGKILL)
            os._exit(1)
    with contextlib.suppress(OSError):
        channel.sendall(struct.pack("!i", os.waitstatus_to_exitcode(ended[1])))
    os._exit(0)


def _become(
    argv: list[str],
    environment: dict[str, str],
    folder: str,
    numbers: list[int],
    group: int,
    *,
    received: list[int],
) -> None:
    """Run as ``python *argv``, with descriptors, environment and folder of the client."""
    code = 1
    try:
        _die_with_parent()
        # Ray kills the group of a worker that ends: it must hold no other worker. A group of
        # another session cannot be joined.
        with contextlib.suppress(PermissionError):
            os.setpgid(0, group)
        high = max([*received, *numbers]) + 1
        for offset, fd in enumerate(received):  # out of the way first: the ranges may overlap
            os.dup2(fd, high + offset, inheritable=False)
            os.close(fd)
        for offset, number in enumerate(numbers[: len(received)]):
            os.dup2(high + offset, number, inheritable=number <= 2)
            os.close(high + offset)
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
    os._exit(code)


def _fresh_state() -> None:
    """Set up what a new interpreter would have read from its environment."""
    import multiprocessing

    import numpy as np
    import torch

    gc.enable()
    multiprocessing.set_executable(os.environ[EXECUTABLE])
    sys.executable = os.environ[PYTHON]
    np.random.seed()
    # Ray sets the variable to 1, too late for a torch that is already there.
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    for entry in reversed(os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if entry and entry not in sys.path:
            sys.path.insert(0, entry)


def _execute(argv: list[Any]) -> None:
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


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]))

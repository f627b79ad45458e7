"""One warm Python that all processes of a laptop run are forked from.

A run starts about ten Python processes, and each would import torch, verl and vLLM anew: 60 to 90
seconds on two cores, against a few for all the rest of the start-up. Here one process makes these
imports once, while the settings are still being checked, and every other one is a fork of it.

Seams: Ray's documented ``runtime_env.py_executable`` and ``multiprocessing.set_executable``. Only
for runs on the CPU: with a GPU the start-up is spent elsewhere, and a driver must not be forked.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from recipe.hint.runtime.cpu.fork_client_process import EXECUTABLE, PYTHON, SERVER_PID, SOCKET


@contextlib.contextmanager
def fork_server() -> Iterator[str]:
    """A server for the time of a run; gives the path of the program to use as Python.

    The environment must be complete: libraries read it when they are imported.
    """
    folder = Path(tempfile.mkdtemp(prefix="hint-"))
    client = folder / "python"
    source = Path(__file__).with_name("fork_client_process.py")
    client.write_text(f"#!{sys.executable} -SE\n{source.read_text(encoding='utf-8')}")
    client.chmod(0o755)
    os.environ.update(
        {SOCKET: str(folder / "socket"), PYTHON: sys.executable, EXECUTABLE: str(client)}
    )
    module = "recipe.hint.runtime.cpu.fork_server_process"
    command = [sys.executable, "-m", module, str(os.getpid())]
    log = open(folder / "log", "wb")
    # A session of its own: Ctrl-C is for the run's first process, which ends the others.
    server = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )
    os.environ[SERVER_PID] = str(server.pid)
    try:
        yield str(client)
    finally:
        server.kill()
        server.wait()
        log.close()
        for name in (SOCKET, PYTHON, EXECUTABLE, SERVER_PID):
            os.environ.pop(name)
        shutil.rmtree(folder, ignore_errors=True)

"""Let only one run at a time write to a folder."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from recipe.run.children import pause
from recipe.run.errors import ConfigError

logger = logging.getLogger(__name__)
_POLL_S = 0.2


@contextlib.contextmanager
def claimed(path: Path, *, wait_s: float = 0.0) -> Iterator[int]:
    """Hold the lock of a file during the block; it is released however the process ends.

    On a disk without locks nothing is held, which a warning says.

    Args:
        path: The file; it stays when the block ends.
        wait_s: How long another holder may take to end.

    Yields:
        Number of the open file: a process that inherits it holds the lock until its own end.

    Raises:
        ConfigError: If another process holds it.
    """
    with path.open("ab+", buffering=0) as file:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() < deadline:
                    pause(_POLL_S)
                    continue
                file.seek(0)
                holder = file.read().decode(errors="replace")
                raise ConfigError(
                    f"{path.parent} is in use by another run {_what_to_do(holder)}, or give "
                    f"another folder (trainer.experiment_name, or -o)"
                ) from None
            except OSError as error:
                logger.warning(
                    "%s: its disk has no file locks (%s), so a second run in this folder at the "
                    "same time would not be refused, and both would overwrite each other's files",
                    path.parent,
                    error.strerror,
                )
                break
        with contextlib.suppress(OSError):  # a full disk
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield file.fileno()


def is_running(pid: int) -> bool:
    """Return whether a process of this machine has not ended."""
    try:
        return psutil.Process(pid).status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:  # of another user
        return True


def _what_to_do(holder: str) -> str:
    """Say who holds a lock, and what ends that: processes of one that was killed hold it too."""
    named = re.fullmatch(r"process (\d+) on (.+)", holder)
    if named and named[2] == socket.gethostname() and not is_running(int(named[1])):
        return (
            f"({holder}, which was killed; processes that it started, a vLLM server or a "
            f"training, have not ended): end them"
        )
    return f"({holder}): wait for its end"

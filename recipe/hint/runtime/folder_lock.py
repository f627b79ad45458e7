"""Let only one run at a time write to a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from recipe.hint.errors import ConfigError
from recipe.hint.runtime.children import pause

_POLL_S = 0.2


@contextlib.contextmanager
def claimed(path: Path, *, wait_s: float = 0.0) -> Iterator[int]:
    """Hold the lock of a file during the block; it is released however the process ends.

    On a disk without locks nothing is held.

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
                raise ConfigError(
                    f"{path.parent} is in use by another run ({file.read().decode()}): wait for "
                    f"its end, or give another folder (trainer.experiment_name, or -o)"
                ) from None
            except OSError:
                break
        with contextlib.suppress(OSError):  # a full disk
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield file.fileno()

"""Write files that appear either complete or not at all, grow files of lines, and lock folders."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from recipe.run.errors import ConfigError

logger = logging.getLogger(__name__)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write, which takes its place when the block ends well.

    It is written beside its place, brought to the disk and moved. A block that fails, and a process
    that is killed in it, leave the place as it was. A link stays, and what it points to is
    replaced. A device or a pipe cannot be replaced: it is written to.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:  # refuses a folder
            yield file
        return
    place = Path(os.path.realpath(path))
    draft = place.with_name(f".{place.name}.{os.getpid()}-{threading.get_native_id()}.tmp")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
        _sync_folder(place.parent)
    finally:
        draft.unlink(missing_ok=True)


def move_whole(draft: Path, target: Path) -> None:
    """Move a folder to its place once all of its files are on the disk."""
    for path in draft.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    _sync_folder(draft)
    os.replace(draft, target)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not on every file system
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def write_whole(path: Path, text: str) -> None:
    """Write a text as a whole file, in UTF-8."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def append_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Add lines, given without their ends, at the end of a file and in place of a cut last one."""
    with open(path, "a+b") as file:
        drop_fragment(file)
        for line in lines:
            file.write(line + b"\n")


def drop_fragment(file: BinaryIO) -> None:
    """Cut off what a kill or a full disk left of a last line.

    Args:
        file: Lines, opened to read and write; its place in the file moves.
    """
    if file.seek(0, os.SEEK_END):
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            file.seek(0)
            file.truncate(sum(len(line) for line in file if line.endswith(b"\n")))


def file_sha256(path: str | Path) -> str:
    """Return a file's digest."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def claimed(path: Path, *, wait_s: float = 0.0) -> Iterator[int]:
    """Hold the lock of a file during the block; it is released however the process ends.

    Args:
        path: The file; it stays when the block ends.
        wait_s: How long another holder may take to end.

    Yields:
        Number of the open file: a process that inherits it holds the lock until its own end.
    """
    with path.open("ab+", buffering=0) as file:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(0.2)
                    continue
                file.seek(0)
                raise ConfigError(
                    f"{path.parent} is in use by another run ({file.read().decode()}): wait for "
                    f"its end; if it was killed, end the processes that it started; or give "
                    f"another folder (trainer.experiment_name, or -o)"
                ) from None
            except OSError as error:
                logger.warning("%s: no file locks (%s); run one command here", path.parent, error)
            break
        with contextlib.suppress(OSError):  # a full disk
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield file.fileno()

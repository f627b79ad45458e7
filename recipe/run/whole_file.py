"""Write files that appear either complete or not at all, grow files of lines, and lock folders."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from recipe.run.errors import ConfigError


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write, which takes its place, on the disk, when the block ends well.

    A block that fails, and a process that is killed in it, leave the place as it was.
    """
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():  # a device or a pipe, which must stay
        with place.open("wb") as file:
            yield file
        return
    draft = place.with_name(f".{place.name}.{os.getpid()}-{threading.get_native_id()}.tmp")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
        sync(place.parent)
    finally:
        draft.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text as a whole file, in UTF-8."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder that takes its place, on the disk, when the block ends well."""
    draft = target.with_name(f".{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)  # of a killed command, as large as a model
    draft.mkdir(parents=True)
    try:
        yield draft
        for path in (*filter(Path.is_file, draft.rglob("*")), draft):
            sync(path)
        os.replace(draft, target)
        sync(target.parent)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def sync(path: Path) -> None:
    """Bring a file to the disk, or the names in a folder."""
    number = os.open(path, os.O_RDONLY)
    # Not every file system can for a folder.
    with contextlib.suppress(*[OSError] if path.is_dir() else []):
        os.fsync(number)
    os.close(number)


def append_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Add lines, given without their ends, at the end of a file and in place of a cut last one."""
    with open(path, "a+b") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":  # a kill or a full disk left it
                file.seek(0)
                file.truncate(sum(len(line) for line in file if line.endswith(b"\n")))
        file.writelines(line + b"\n" for line in lines)


def file_sha256(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def claimed(path: Path, *, wait_s: float = 0.0) -> Iterator[int]:
    """Hold the lock of a file during the block; it is released however the process ends.

    Another holder may take ``wait_s`` to end. Yields the number of the open file: a process that
    inherits it holds the lock until its own end.
    """
    with path.open("ab") as file:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ConfigError(
                        f"{path.parent} is in use by another run: wait for its end, end its "
                        f"processes if it was killed, or give another folder "
                        f"(trainer.experiment_name, or -o)"
                    ) from None
                time.sleep(0.2)
        yield file.fileno()

"""Write files that appear either complete or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write, which takes its place when the block ends well.

    It is written beside its place, brought to the disk and moved. A block that fails, and a process
    that is killed in it, leave the place as it was. A link stays, and what it points to is
    replaced. A device or a pipe cannot be replaced: it is written to.

    Raises:
        OSError: If the disk refuses.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:  # refuses a folder
            yield file
        return
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    draft = place.with_name(f".{place.name}.{os.getpid()}-{threading.get_native_id()}.tmp")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
        _sync_folder(place.parent)
    except OSError as error:
        if error.filename in (draft, str(draft)):
            error.filename, error.filename2 = str(path), None  # the draft is internal
        raise
    finally:
        draft.unlink(missing_ok=True)


def move_whole(draft: Path, target: Path) -> None:
    """Move a folder to its place once all of its files are on the disk.

    Raises:
        OSError: If the disk refuses.
    """
    for path in draft.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    _sync_folder(draft)
    os.replace(draft, target)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Sync a folder's entries to the disk, where the file system can."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def write_whole(path: Path, text: str) -> None:
    """Write a text as a whole file, in UTF-8.

    Raises:
        OSError: If the disk refuses.
    """
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def append_lines(path: Path, lines: Iterable[bytes]) -> None:
    """Add lines at the end of a file, in place of a cut last one; each is given without its end.

    Raises:
        OSError: If the disk refuses.
    """
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

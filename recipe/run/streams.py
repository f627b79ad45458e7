"""Keep the standard streams of a program usable: closed ones, and those that fail while it works.

A reader that has seen enough (``| head``) ends no work and is not an error. Any other failure, such
as a full disk, is told once; the exit code stays that of the work.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any


class _Output(io.FileIO):
    """Drops what cannot be written."""

    is_lost = False  # of any of them, other than to a reader that left

    def write(self, data: Any) -> int:
        """Write, or point the stream at the null device once it has failed."""
        try:
            return super().write(data)
        except OSError as error:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            if not isinstance(error, BrokenPipeError):
                _Output.is_lost = True
                with contextlib.suppress(OSError):
                    told = f"warning: output is incomplete: {error.strerror}\n"
                    os.write(2, told.encode())
            return memoryview(data).nbytes


def guard_streams() -> None:
    """Replace the standard streams of this process; those that a test or notebook set stay."""
    null = os.open(os.devnull, os.O_RDWR)
    while null <= 2:  # else the next file of the program would be what a child takes for its stdout
        os.set_inheritable(null, True)
        null = os.open(os.devnull, os.O_RDWR)
    os.close(null)
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 - for the whole process
    for number, name in ((1, "stdout"), (2, "stderr")):
        old = getattr(sys, name)
        if old is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif old is getattr(sys, f"__{name}__"):
            old.flush()
            raw = _Output(number, "w", closefd=False)
            # Unbuffered where it was: a killed program's last words are not lost.
            buffer: Any = raw if old.write_through else io.BufferedWriter(raw)
            new = io.TextIOWrapper(buffer, old.encoding, old.errors)
            new.reconfigure(line_buffering=old.line_buffering, write_through=old.write_through)
            setattr(sys, name, new)


def is_output_lost() -> bool:
    """Return whether something that was printed was neither written nor left by its reader."""
    sys.stdout.flush()
    return _Output.is_lost

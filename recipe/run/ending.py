"""Report a command's failure in one line and set its exit code.

Whatever imports this is a program, whose standard streams are made safe first: a reader that has
seen enough (``| head``) ends no work, and any other failure, such as a full disk, is told once.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

from recipe.run.errors import HintError, Terminated, one_line


@contextlib.contextmanager
def errors_in_one_line(
    *, advice: str = "", after_interrupt: str = "", hears_sigterm: bool = False
) -> Iterator[None]:
    """Print what went wrong in one line, and exit: 2 for an error, 130 for Ctrl-C, 143 for SIGTERM.

    Args:
        advice: Follows the line of an error of ours or of the system.
        after_interrupt: Follows the line of a Ctrl-C or SIGTERM.
        hears_sigterm: Whether SIGTERM ends the block like Ctrl-C, so that its files are removed,
            and not the process at once. Not where a ``Popen`` is waited for: its lock may be lost.
    """
    is_main = threading.current_thread() is threading.main_thread()
    hears_sigterm &= is_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if hears_sigterm:
        signal.signal(signal.SIGTERM, _raise)
    try:
        yield
        return
    except (HintError, OSError) as error:
        message, code = f"{one_line(error)}{advice}", 2
    except Terminated:
        message, code = f"terminated{after_interrupt}", 143
    except KeyboardInterrupt:
        message, code = f"interrupted{after_interrupt}", 130
    finally:
        if hears_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.stderr.write(f"error: {message}\n")
    sys.stderr.flush()
    sys.exit(code)


def _raise(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


class _Output(io.FileIO):
    """Drops what cannot be written."""

    def write(self, data: Any) -> int:
        """Write, or point the stream at the null device once it has failed."""
        try:
            return super().write(data)
        except OSError as error:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            if not isinstance(error, BrokenPipeError):
                with contextlib.suppress(OSError):
                    os.write(2, f"warning: output is incomplete: {error.strerror}\n".encode())
            return memoryview(data).nbytes


def _guard_streams() -> None:
    """Replace the standard streams of this process; those that a test or notebook set stay."""
    # Closed ones first: the next file of the program would be what a child takes for its stdout.
    while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(null, True)
    os.close(null)
    for number, name in ((1, "stdout"), (2, "stderr")):
        old = getattr(sys, name)
        if old is None or old is getattr(sys, f"__{name}__"):
            is_direct = old is not None and old.write_through
            raw: Any = _Output(number, "w", closefd=False)
            buffer = raw if is_direct else io.BufferedWriter(raw)
            lines = old is None or old.line_buffering
            options = {"line_buffering": lines, "write_through": is_direct}
            new = io.TextIOWrapper(
                buffer, old and old.encoding, old and old.errors, None, **options
            )
            setattr(sys, name, new)


_guard_streams()

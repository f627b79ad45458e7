"""Report a command's failure in one line and set its exit code.

Whatever imports this is a program, whose streams are made safe first; Ctrl-C while it imports the
rest shows no traceback.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn

from recipe import PROGRAMS
from recipe.run.errors import HintError, Terminated, one_line
from recipe.run.streams import guard_streams


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
    try:
        with _sigterm_raised() if hears_sigterm else contextlib.nullcontext():
            yield
    except (HintError, OSError) as error:
        message, code = f"{one_line(error)}{advice}", 2
    except Terminated:
        message, code = f"terminated{after_interrupt}", 143
    except KeyboardInterrupt:
        message, code = f"interrupted{after_interrupt}", 130
    else:
        return
    _tell(message)
    sys.exit(code)


def tell_interrupt_of_imports() -> None:
    """Print no traceback where Ctrl-C comes before or after :func:`errors_in_one_line`.

    Only in programs of this package: another one that imports it keeps its own tracebacks.
    """
    if Path(sys.argv[0]).resolve().parent != PROGRAMS:
        return
    before = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            _tell("interrupted")
        else:
            before(kind, error, trace)

    sys.excepthook = tell


def _tell(message: str) -> None:
    sys.stderr.write(f"error: {message}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def _sigterm_raised() -> Iterator[None]:
    """Let SIGTERM be :class:`Terminated` in the block, where it would end the process."""
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


guard_streams()
tell_interrupt_of_imports()

"""All errors that the package raises on purpose, under one base class.

A message says what was given, what was expected, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class HintError(Exception):
    """Parent of all errors of this package."""


class ConfigError(HintError, ValueError):
    """A setting is wrong; raised before any process is started."""


class DataError(HintError, ValueError):
    """A data file breaks the contract; names the file, the row and the column."""


class VerifierError(HintError, RuntimeError):
    """The verifier itself is broken (not: a response is wrong)."""


class TeacherSilentError(HintError, RuntimeError):
    """The teacher did not answer turns of a conversation; the message names whose."""

    def __init__(self, role: str) -> None:
        super().__init__(
            f"the teacher gave no answer to requests for a turn of the {role}; its log says why "
            f"(hint.teacher.base_url and its limits)"
        )


class StallError(HintError, RuntimeError):
    """Somebody did not answer within a stated limit; the message names who."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came: the run is to end as after Ctrl-C."""


def one_line(error: BaseException, limit: int | None = None) -> str:
    """Return an error's text in one line, at most so many characters; a system's with its file."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return " ".join(text.split())[:limit]


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Name the file that a program wrote, where what is read of it is not what was written."""
    try:
        yield
    except HintError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        what = f"{type(error).__name__}: {one_line(error, 120)}"
        raise DataError(
            f"{path} is damaged ({what}); restore it from a backup, or make its run again"
        ) from error

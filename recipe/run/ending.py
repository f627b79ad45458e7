"""Report a wrong argument and a command's failure in one line, and set the exit code."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

from recipe.run.errors import HintError, Terminated, one_line


class Parser(argparse.ArgumentParser):
    """Shows its description as it is; exits with code 2 and one line at a wrong argument."""

    def __init__(self, *args: Any, **options: Any) -> None:
        how = argparse.RawDescriptionHelpFormatter
        super().__init__(*args, formatter_class=how, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {' '.join(message.split())}\n")


@contextlib.contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Print what went wrong in one line, and exit.

    The code is 2 for an error of ours or of the system, 130 for Ctrl-C, 143 for SIGTERM.
    """
    try:
        yield
        sys.stdout.flush()
        return
    except BrokenPipeError:  # the reader has seen enough, such as `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return
    except (HintError, OSError) as error:
        message, code = one_line(error), 2
    except Terminated:
        message, code = "terminated", 143
    except KeyboardInterrupt:
        message, code = "interrupted", 130
    sys.stderr.write(f"error: {message}\n")
    sys.exit(code)

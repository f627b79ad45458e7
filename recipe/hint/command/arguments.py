"""Parse arguments that are not settings, and handle a closed output."""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Reports a wrong argument in one line, and exits with code 2."""

    def error(self, message: str) -> NoReturn:
        """Print one line; argparse would print the usage before it."""
        self.exit(2, f"{self.prog}: {' '.join(message.split())}\n")


def text(value: str) -> str:
    """Return a text of the command line.

    Raises:
        ValueError: If its bytes were no UTF-8.
    """
    value.encode()
    return value


def silence_output() -> None:
    """Drop what is still to be printed: nobody reads it, and the flush at exit would fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

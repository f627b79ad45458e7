"""The parser of the programs whose arguments are not settings."""

from __future__ import annotations

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Tells a wrong argument in one line, and exits with code 2."""

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

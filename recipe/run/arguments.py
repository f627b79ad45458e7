"""Parse arguments that are not settings."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from recipe.run.typed import finite


class Parser(argparse.ArgumentParser):
    """Reports a wrong argument in one line, and exits with code 2."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        # argparse would name the function: "invalid finite value".
        self.register("type", finite, _number)

    def error(self, message: str) -> NoReturn:
        """Print one line; argparse would print the usage before it."""
        self.exit(2, f"{self.prog}: {' '.join(message.split())}\n")


def text(value: str) -> str:
    """Return a text of the command line."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"{value!r} is not UTF-8; give it in UTF-8") from error
    return value


def _number(value: str) -> float:
    try:
        return finite(value)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{value!r} is not a finite number") from error

"""Parse arguments that are not settings."""

from __future__ import annotations

import argparse
import difflib
from typing import Any, NoReturn

from recipe.run.typed import finite


class Parser(argparse.ArgumentParser):
    """Reports a wrong argument in one line, and exits with code 2."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        # argparse would name the function: "invalid finite value".
        self.register("type", finite, _number)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore
        """Parse; an option that is none gets the nearest of those there are."""
        given, rest = self.parse_known_args(args, namespace)
        if unknown := [each.split("=")[0] for each in rest if each.startswith("--")]:
            own = [name for name in self._option_string_actions if name.startswith("--")]
            near = difflib.get_close_matches(unknown[0].replace("_", "-"), own, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(rest)}{meant}")
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return given

    def error(self, message: str) -> NoReturn:
        """Print one line; argparse would print the usage before it."""
        self.exit(2, f"{self.prog}: {' '.join(message.split())}\n")


def text(value: str) -> str:
    """Return a text of the command line.

    Raises:
        ArgumentTypeError: If its bytes were no UTF-8.
    """
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

"""Parse arguments that are not settings."""

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """Reports a wrong argument in one line, without the usage, and exits with code 2."""

    def error(self, message: str) -> NoReturn:
        """Print the line."""
        self.exit(2, f"{self.prog}: {' '.join(message.split())}\n")

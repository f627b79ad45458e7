"""What stands before a program: imports and helpers that its task takes for granted.

It is stored in front of the tests, in one text; the tests see it too.
"""

from __future__ import annotations

_END = "# end of what stands before the program"


def with_setup(setup: str, tests: str) -> str:
    """Return tests that know what stands before the program; unchanged where nothing does."""
    if not setup.strip() or _END in tests:
        return tests
    return f"{setup.strip()}\n{_END}\n{tests}"


def setup_of(tests: str) -> str:
    """Return what stands before the program; empty where nothing does."""
    setup, end, _ = tests.partition(f"{_END}\n")
    return setup if end else ""

"""Write shares in percent, and tables in Markdown that can be read on a console."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal


def percent(share: float, *, sign: bool = False) -> str:
    """Write a share in percent; a half goes away from 0, whatever the last bit of its sum."""
    rounded = Decimal(f"{100 * share:.9f}").quantize(Decimal("0.1"), ROUND_HALF_UP)
    return f"{rounded + 0:{'+' if sign else ''}.1f}"  # + 0: no "-0.0"


def printable(line: str) -> str:
    """Return a line with escapes in place of what could act on a terminal."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in line
    )


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Pad the columns, so that the table can be read on a console; text left, numbers right.

    What could act on a terminal or end a cell is escaped.
    """
    rows = [[printable(cell).replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    cells = [
        [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        for row in (head, *rows)
    ]
    return [f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:])]

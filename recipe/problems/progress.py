"""Show on the console how far long work is, and nothing of short work."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

SHOWN_AFTER_S = 2.0


def progress(
    what: str, items: Iterable[Any] | None = None, *, total: int | None = None, unit: str = " rows"
) -> tqdm:
    """Return a bar, which passes the items on; in a log it is written rarely."""
    is_seen = sys.stderr is not None and sys.stderr.isatty()
    return tqdm(
        items,
        desc=what,
        total=total,
        unit=unit,
        delay=SHOWN_AFTER_S,
        mininterval=0.5 if is_seen else 30.0,
        disable=sys.stderr is None,
    )

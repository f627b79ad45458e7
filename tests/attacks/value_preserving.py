"""Right answers written otherwise, without end: ``generate(golds, seed)``.

Each edit keeps what a reader of the answer reads: colour, size, fonts, spacing, Unicode for
LaTeX, ASCII relations, named left sides, the order of what has none, equal numbers.
"""

from __future__ import annotations

from functools import partial

from attacks import keeps_meaning, keeps_style, keeps_values, value_changing  # noqa: F401
from attacks.kinds import PRESERVING

generate = partial(value_changing.generate, edits=PRESERVING)

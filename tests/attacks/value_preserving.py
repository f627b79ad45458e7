"""Right answers written otherwise, without end: ``generate(golds, seed)``.

Each edit keeps what a reader of the answer reads: colour, size, fonts, spacing, Unicode for
LaTeX, ASCII relations, named left sides, the order of what has none, equal numbers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from attacks import keeps_meaning, keeps_style, keeps_values  # noqa: F401
from attacks.kinds import PRESERVING
from attacks.shapes import Gold
from attacks.value_changing import Case

_TRIES = 40


def generate(golds: Sequence[Gold], seed: int, kinds: Sequence[str] = ()) -> Iterator[Case]:
    """Cases of all kinds in turn, none twice; ends when no kind has a new one."""
    rng = random.Random(seed)
    names = list(kinds or PRESERVING)
    fitting = {n: [g for g in golds if any(PRESERVING[n](rng, g) for _ in range(2))] for n in names}
    seen: set[tuple[str, str]] = set()
    while True:
        cases = [_new_case(rng, name, fitting[name], seen) for name in names]
        yield from (case for case in cases if case is not None)
        if not any(cases):
            return


def _new_case(
    rng: random.Random, name: str, golds: Sequence[Gold], seen: set[tuple[str, str]]
) -> Case | None:
    for _ in range(_TRIES if golds else 0):
        gold = rng.choice(golds)
        answer = PRESERVING[name](rng, gold)
        if answer is None or answer == gold.answer:
            continue
        if (gold.answer, answer) not in seen:
            seen.add((gold.answer, answer))
            return Case(name, gold.answer, answer, gold.problem)
    return None

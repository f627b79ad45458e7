"""Answers without end, made from right ones: ``generate(golds, seed)``, wrong ones by default.

Each edit shows by arithmetic of its own, or by a witness, that its result is wrong; where it
cannot, it gives nothing. Nothing here knows the verifier.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from attacks import (  # noqa: F401
    changes_formulas,
    changes_nouns,
    changes_numbers,
    changes_relations,
    changes_structures,
    changes_symbols,
    changes_texts,
    changes_values,
    changes_work,
    payloads,
)
from attacks.kinds import CHANGING, Edit
from attacks.shapes import Gold

_TRIES = 40  # golds looked at for one case of a kind


class Case(NamedTuple):
    """An answer to a problem whose right one is ``gold``."""

    kind: str
    gold: str
    answer: str
    problem: str


def generate(
    golds: Sequence[Gold], seed: int, edits: Mapping[str, Edit] = CHANGING
) -> Iterator[Case]:
    """Cases of all kinds in turn, none twice; a kind ends when it is used up."""
    rng = random.Random(seed)
    names = list(edits)
    # A kind's golds: those that gave a case at least once in three tries.
    fitting = {n: [g for g in golds if any(edits[n](rng, g) for _ in range(3))] for n in names}
    seen: set[tuple[str, str]] = set()
    while names:
        for name in tuple(names):
            case = _new_case(rng, name, edits, fitting[name], seen)
            if case is not None:
                yield case
            else:  # nothing new in many tries: used up
                names.remove(name)


def _new_case(
    rng: random.Random,
    name: str,
    edits: Mapping[str, Edit],
    golds: Sequence[Gold],
    seen: set[tuple[str, str]],
) -> Case | None:
    for _ in range(_TRIES if golds else 0):
        gold = rng.choice(golds)
        answer = edits[name](rng, gold)
        # Less than the gold's own spelling is no change, but may be another way to write it.
        unchanged = {gold.answer.strip(), *([gold.text] if edits is CHANGING else [])}
        if answer is None or answer.strip() in unchanged:
            continue
        if (gold.answer, answer) not in seen:
            seen.add((gold.answer, answer))
            return Case(name, gold.answer, answer, gold.problem)
    return None

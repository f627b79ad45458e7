"""Judge many cases in a pool and say how each kind fared."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from attacks.value_changing import Case
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.schema import Item, Reason

_CHUNK = 500
TIMEOUT_S = 5.0


def reasons_of(cases: Sequence[Case], timeout_s: float = TIMEOUT_S) -> list[Reason]:
    """The verdict on each case's answer, boxed as a model does."""
    found: list[Reason] = []
    with VerifierPool(num_workers=2, timeout_s=timeout_s) as pool:
        for start in range(0, len(cases), _CHUNK):
            items = [item_of(case) for case in cases[start : start + _CHUNK]]
            found += [verdict.reason for verdict in pool.grade_many_blocking(items)]
    return found


def item_of(case: Case) -> Item:
    return Item(rf"The answer is \boxed{{{case.answer}}}.", case.gold, problem=case.problem)


def table(cases: Sequence[Case], reasons: Sequence[Reason]) -> str:
    """One line a kind: cases, those ``correct``, those without a verdict."""
    tried, right, open_ = Counter(), Counter(), Counter()
    for case, reason in zip(cases, reasons, strict=True):
        tried[case.kind] += 1
        right[case.kind] += reason == "correct"
        open_[case.kind] += reason in ("error", "timeout")
    lines = [f"{tried[k]:7} {right[k]:7} {open_[k]:7}  {k}" for k in tried]
    head = f"{'cases':>7} {'correct':>7} {'open':>7}  kind"
    total = f"{tried.total():7} {right.total():7} {open_.total():7}  together, {len(tried)} kinds"
    return "\n".join([head, *lines, total])


def show(text: str) -> None:
    sys.stdout.write(f"{text}\n")

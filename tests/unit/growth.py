"""How work grows with the size of its input: a ratio, the same on a slow or busy machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

FACTOR = 8
# Linear work has the exponent 1, quadratic work 2. Noise that doubles one of the two times moves
# it by log 2 / log 8 = 1/3, so 1.5 tells them apart; n log n stays below it.
LINEAR = 1.5


def exponent(work: Callable[[Any], object], make: Callable[[int], Any], size: int) -> float:
    """``e`` where the processor time of ``work(make(n))`` grows like ``n ** e``.

    The least of three times each, taken in turn, at ``size`` and at ``FACTOR * size``.
    """
    given = make(size), make(FACTOR * size)
    times = [[_time(work, each) for each in given] for _ in range(3)]
    small, large = (min(column) for column in zip(*times, strict=True))
    return math.log(large / small) / math.log(FACTOR)


def _time(work: Callable[[Any], object], given: object) -> float:
    start = time.thread_time()
    work(given)
    return time.thread_time() - start

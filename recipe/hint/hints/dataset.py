"""Hints from the data: columns written beforehand, by any model or by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace

from recipe.hint.hints.base import Generate, HintResult, HintSource
from recipe.hint.hints.fitting import cut_into
from recipe.hint.schema import seed_at
from recipe.problems.schema import HINT_COLUMN, Problem, complete_sets


class DatasetHints:
    """The hint levels of the row; if it has several sets, each prompt rollout takes the next.

    Prompt rollout v takes text (s + v) mod N of each level's N texts, where s is derived from the
    seed and the problem. Sets in which some level has no text are left out.

    Source: the offline hints of Liao et al. 2026, arXiv:2602.03143, Fig. 3 and 5.
    """

    def __init__(self, *, max_level: int, seed: int) -> None:
        self._max_level = max_level
        self._seed = seed

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return all levels, or ``missing_hint`` with the first column that has no text."""
        number = seed_at(self._seed, "dataset hint", problem.id) + num_before
        levels = complete_sets(problem.hints, self._max_level)
        for level, texts in enumerate(levels, 1):
            if not texts:
                return HintResult("missing_hint", detail=HINT_COLUMN.format(level=level))
        return HintResult("ok", tuple(texts[number % len(texts)] for texts in levels))


class Increments:
    """Each level of another source in ``pieces`` steps, each of which shows more of its text."""

    def __init__(self, source: HintSource, pieces: int) -> None:
        self._source = source
        self._pieces = pieces

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the other source's hint levels, ``pieces`` times as long."""
        result = await self._source.write(problem, generate, num_before=num_before)
        hints = (cut_into(hint, self._pieces) for hint in result.hints_L)
        return replace(result, hints_L=tuple(itertools.chain.from_iterable(hints)))

"""A source of hints behind the leak guard."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from recipe.hint.hints.base import Generate, HintResult, HintSource
from recipe.hint.hints.leak import LeakGuard
from recipe.hint.schema import HintLevels, Problem


class GuardedSource:
    """Checks every hint level of another source for the final answer.

    The levels that hold it are named in ``leaked``. With the policy ``drop`` their text is empty,
    which a prompt rollout takes as a hint that cannot be had; the other levels stay.
    """

    def __init__(self, source: HintSource, guard: LeakGuard) -> None:
        self._source = source
        self._guard = guard

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the other source's hint levels as the leak policy lets them be used."""
        result = await self._source.write(problem, generate, num_before=num_before)
        # Together: the verifier's way there and back is longer than its work on a hint.
        checks = (self._guard.check(problem, hint) for hint in result.hint_levels.hints_L)
        found_L = await asyncio.gather(*checks)
        return replace(
            result,
            hint_levels=HintLevels(tuple(found.text for found in found_L)),
            leaked=tuple(level for level, found in enumerate(found_L, 1) if found.leaks),
        )

"""The scheme of the SAGE release, to be compared with: the whole batch again at every level.

Levels are barriers: a level begins when the last prompt of the one before is scored, and a
resolved prompt is sampled again with all others and its responses are thrown away.
Source: Liao et al. 2026, arXiv:2602.03143, and its release (BaohaoLiao/SAGE, commit 8722c1a).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import chain

from recipe.hint.hints.base import Generate, HintResult, HintSource
from recipe.hint.methods.base import Method
from recipe.hint.record import Outcome, PromptRecord
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Place, Sample, at_level
from recipe.problems.schema import Problem

# The rollout of one prompt by one method with one source of hints.
RollOut = Callable[[Method, HintSource], Awaitable[Outcome]]


class AtLevel(Method):
    """One group at one level, or at level 0 where its hint fails."""

    uses_hints = True

    def __init__(self, level: int) -> None:
        super().__init__(max_level=level)
        self._level = level

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return the level."""
        return Sample(at_level(self._level))


class Written:
    """A set of hints that is already there."""

    def __init__(self, result: HintResult) -> None:
        self._result = result

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the same for every prompt rollout."""
        return self._result


class Batch:
    """Where the prompts of one batch wait for each other.

    Args:
        size: Number of prompts.
    """

    def __init__(self, size: int) -> None:
        self._barrier = asyncio.Barrier(size)
        self._num_unresolved: Counter[int] = Counter()

    async def arrive(self, turn: int, is_unresolved: bool) -> bool:
        """Wait for all others at the ``turn``-th barrier; true when some prompt is unresolved."""
        self._num_unresolved[turn] += is_unresolved
        await self._barrier.wait()
        return self._num_unresolved[turn] > 0

    async def abort(self) -> None:
        """Let the others fail too: they would wait for ever."""
        await self._barrier.abort()


class ReleaseRollout:
    """One problem in the release's scheme.

    Args:
        roll_out: Samples one level.
        write: Writes the hint levels of this problem.
        batch: The prompts that wait for each other.
        max_level: Highest hint level, L.
    """

    def __init__(
        self,
        roll_out: RollOut,
        write: Callable[[int], Awaitable[HintResult]],
        *,
        batch: Batch,
        max_level: int,
    ) -> None:
        self._roll_out = roll_out
        self._write = write
        self._batch = batch
        self._max_level = max_level

    async def run(self, step: int) -> Outcome:
        """Sample all levels, with everybody else."""
        try:
            return await self._run(step)
        except BaseException:
            await self._batch.abort()
            raise

    async def _run(self, step: int) -> Outcome:
        hint_levels = HintResult("none")
        kept = await self._at(0, hint_levels)
        outcomes = [kept]
        for level in range(1, self._max_level + 1):
            is_unresolved = not _is_solved(kept)
            if not await self._batch.arrive(level, is_unresolved):
                break
            if level == 1:
                if is_unresolved:
                    hint_levels = await self._write(step)
                await self._batch.arrive(0, is_unresolved)
            is_hinted = is_unresolved and hint_levels.status == "ok"
            again = level if is_hinted else kept.record.first_row_level
            outcomes.append(await self._at(again, hint_levels))
            if is_hinted:
                kept = outcomes[-1]
        place = next(place for place, outcome in enumerate(outcomes) if outcome is kept)
        return Outcome(kept.rows, _joined(outcomes, place, hint_levels))

    async def _at(self, level: int, hint_levels: HintResult) -> Outcome:
        return await self._roll_out(AtLevel(level), Written(hint_levels))


def _is_solved(outcome: Outcome) -> bool:
    return any(accuracy > 0 for accuracy in outcome.record.accuracies)


def _joined(outcomes: Sequence[Outcome], kept: int, hint_levels: HintResult) -> PromptRecord:
    """Return one record of all levels; the cost of the hints, written outside, is added here."""
    records = [outcome.record for outcome in outcomes]
    before = sum(len(record.rounds) for record in records[:kept])
    return replace(
        records[kept],
        rounds=tuple(chain.from_iterable(record.rounds for record in records)),
        rows=tuple(Place(before + place.round, place.turn) for place in records[kept].rows),
        hint_calls=hint_levels.calls,
        hint_tokens=hint_levels.tokens,
    )

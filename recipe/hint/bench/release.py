"""The scheme of the SAGE release, to be compared with: the whole batch again at every level.

Levels are barriers: a level begins when the last prompt of the one before is scored, and a
resolved prompt is sampled again with all others and its answers are thrown away.
Source: Liao et al. 2026, arXiv:2602.03143, and its release (BaohaoLiao/SAGE, commit 8722c1a).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from recipe.hint.hints.base import Generate, HintResult, HintSource
from recipe.hint.methods.base import Method
from recipe.hint.rollout import Outcome, PromptRollout
from recipe.hint.schema import Attempt, Keep, Plan, Problem, ProblemState, PromptRecord

# A visit of one method with one source of hints.
MakeVisit = Callable[[Method, HintSource], PromptRollout]


class AtLevel(Method):
    """One group at one level, or at level 0 where its hint fails."""

    uses_hints = True

    def __init__(self, level: int) -> None:
        super().__init__(max_level=level)
        self._level = level

    def open(self, problem: Problem, state: ProblemState) -> Plan:
        """The level."""
        return Plan(level=self._level)

    def react(self, problem: Problem, attempts: Sequence[Attempt]) -> Plan | Keep:
        """Keep it."""
        if not attempts[-1].is_sampled:
            return Plan(level=0)
        return Keep.group(attempts, -1)


class Written:
    """A set of hints that is already there."""

    def __init__(self, result: HintResult) -> None:
        self._result = result

    async def hint_levels(
        self, problem: Problem, generate: Generate, *, visits: int = 0
    ) -> HintResult:
        """The same for every visit."""
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


class ReleaseVisit:
    """One problem in the release's scheme.

    Args:
        visit: Makes the visit of one level.
        write: Writes the hint levels of this problem.
        batch: The prompts that wait for each other.
        max_level: Highest hint level, L.
    """

    def __init__(
        self,
        visit: MakeVisit,
        write: Callable[[int], Awaitable[HintResult]],
        *,
        batch: Batch,
        max_level: int,
    ) -> None:
        self._visit = visit
        self._write = write
        self._batch = batch
        self._max_level = max_level

    async def run(self, uid: str, step: int) -> Outcome:
        """All levels, with everybody else."""
        try:
            return await self._run(uid, step)
        except BaseException:
            await self._batch.abort()
            raise

    async def _run(self, uid: str, step: int) -> Outcome:
        hint_levels = HintResult("none")
        kept = await self._at(0, hint_levels, uid, step)
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
            again = level if is_hinted else kept.record.accepted_level
            outcomes.append(await self._at(again, hint_levels, uid, step))
            if is_hinted:
                kept = outcomes[-1]
        place = next(place for place, outcome in enumerate(outcomes) if outcome is kept)
        return Outcome(kept.group, _joined(outcomes, place, hint_levels))

    async def _at(self, level: int, hint_levels: HintResult, uid: str, step: int) -> Outcome:
        return await self._visit(AtLevel(level), Written(hint_levels)).run(uid, step)


def _is_solved(outcome: Outcome) -> bool:
    return any(reward > 0 for reward in outcome.record.accuracies)


def _joined(outcomes: Sequence[Outcome], kept: int, hint_levels: HintResult) -> PromptRecord:
    """Return one record of all levels; the cost of the hints, written outside, is added here."""
    records = [outcome.record for outcome in outcomes]

    def all_of(name: str) -> tuple:
        return tuple(value for record in records for value in getattr(record, name))

    before = sum(len(record.levels) for record in records[:kept])
    names = ("levels", "hint_statuses", "rewards", "num_ungraded", "rollout_tokens", "seconds")
    return replace(
        records[kept],
        **{name: all_of(name) for name in names},
        planned_level=0,
        accepted=before + records[kept].accepted,
        hint_calls=hint_levels.calls,
        hint_tokens=hint_levels.tokens,
    )

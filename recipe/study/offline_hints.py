"""Hints written beforehand: the columns ``hint_level_1``, ``hint_level_2``, ... for a file.

Paid responses are kept (``hints.teacher_cache``), so the same command continues where
it was stopped; the output appears only when it is complete.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from recipe.hint.hints.base import HintResult, HintSource, WrittenText
from recipe.hint.hints.leak import Equal, find_leaks
from recipe.hint.prompt import Message
from recipe.problems.columns import check_target, read_problems, read_table, write_table
from recipe.problems.progress import progress
from recipe.problems.schema import HINT_COLUMN, HINT_COLUMN_PREFIX, Problem
from recipe.run.errors import DataError

GIVE_UP = 20  # hint levels in a row that the endpoint failed to write
_NUM_ASKED = 256  # hint levels under way; the source has a limit of its own for its requests
# Nothing is wrong with the problem: asking again may help.
_UNFINISHED = "generation_failed"


@dataclass(frozen=True, slots=True)
class OfflineReport:
    """What became of the hints of a file.

    ``statuses`` counts sets of hints; ``calls`` requests, and ``tokens`` those of their responses.
    ``num_leaking`` of ``num_hints`` texts hold the final answer; -1 if that was not checked.
    """

    path: str
    num_problems: int
    num_without_hint: int
    statuses: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0
    num_hints: int = 0
    num_leaking: int = -1

    def summary(self) -> str:
        """Return lines for the end of the command."""
        counts = ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        lines = [
            f"{self.path}: {self.num_problems} problems, {self.num_without_hint} without a hint",
            f"sets of hints: {counts}; {self.calls} requests, {self.tokens} tokens of responses",
        ]
        if self.num_leaking >= 0:
            lines.append(f"{self.num_leaking} of {self.num_hints} hints hold the final answer")
        return "\n".join(lines)


async def write_offline_hints(
    in_path: str | Path,
    out_path: str | Path,
    source: HintSource,
    *,
    max_level: int = 3,
    per_prompt: int = 1,
    equal: Equal | None = None,
) -> OfflineReport:
    """Ask for ``per_prompt`` sets of hints per problem and write the file with their columns.

    A column holds a text, or with ``per_prompt`` above 1 a list in which text i of every level is
    of one set. It is null (or empty) where no hints could be read or the solution is missing.
    The rows, their order and their other columns stay as they are stored, with whatever fields they
    have; hint columns that were there are replaced. What can be known about writing is checked
    before anything is asked.

    Args:
        in_path: A file of the parquet contract (docs/data.md).
        out_path: Where the result goes; may be the same file.
        source: Asked with ``num_before`` from 0 to ``per_prompt - 1``.
        max_level: Hint levels of the source.
        per_prompt: Sets of hints per problem.
        equal: The verifier's equality, to count hints that hold the answer; none is removed.

    Raises:
        DataError: If the input breaks the contract, if the output cannot be written, or if hints
            failed for a reason that lies with the endpoint; no file is written then. After
            ``GIVE_UP`` of them in a row the rest is not asked for.
    """
    check_target(out_path)
    problems, table = read_problems(in_path), read_table(in_path)
    asked = _Asked(source, len(problems) * per_prompt)
    results_P = await asked.all_of(problems, per_prompt)
    if asked.failed:
        _refuse(in_path, asked)
    results = [result for results in results_P for result in results]
    num_leaking = await _count_leaks(problems, results_P, equal) if equal else -1
    table = _with_columns(table, results_P, max_level, is_list=per_prompt > 1)
    try:
        write_table(table, out_path)
    except OSError as error:  # such as a disk that is full by now
        raise DataError(
            f"{out_path}: cannot be written: {error.strerror or error}; once it can be, the same"
            " command asks for nothing again"
        ) from error
    return OfflineReport(
        str(out_path),
        len(problems),
        sum(not any(each.hint_levels.hints_L for each in hint_levels) for hint_levels in results_P),
        statuses=dict(Counter(result.status for result in results)),
        calls=sum(result.calls for result in results),
        tokens=sum(result.tokens for result in results),
        num_hints=sum(len(result.hint_levels.hints_L) for result in results),
        num_leaking=num_leaking,
    )


class _GivenUp(Exception):
    """Too many hint levels in a row failed."""


class _Asked:
    """The hint levels of a file, with a bar that shows how far they are."""

    def __init__(self, source: HintSource, num_sets: int) -> None:
        self._source = source
        self._num_in_a_row = 0
        self.num_sets = num_sets
        self.is_given_up = False
        self.failed: list[HintResult] = []
        self._bar = progress("hints", total=num_sets, unit=" sets")

    async def all_of(self, problems: Sequence[Problem], per_prompt: int) -> list[list[HintResult]]:
        """Ask for all, in the order of the problems; return nothing if it gave up."""
        found: dict[tuple[int, int], HintResult] = {}
        left = itertools.product(range(len(problems)), range(per_prompt))

        async def ask() -> None:
            for place, number in left:
                found[place, number] = await self._one(problems[place], number)

        try:
            with self._bar:
                async with asyncio.TaskGroup() as group:
                    for _ in range(_NUM_ASKED):
                        group.create_task(ask())
        except* _GivenUp:
            problems = []
        sets = range(per_prompt)
        return [[found[place, number] for number in sets] for place in range(len(problems))]

    async def _one(self, problem: Problem, number: int) -> HintResult:
        result = await self._source.write(problem, _no_policy, num_before=number)
        self._bar.update()
        if result.status == _UNFINISHED:
            self.failed.append(result)
            self._num_in_a_row += 1
            self._bar.set_postfix(failed=len(self.failed), refresh=False)
            if self._num_in_a_row == GIVE_UP:
                self.is_given_up = True
                raise _GivenUp
        elif result.calls:  # one from the cache says nothing about the endpoint
            self._num_in_a_row = 0
        return result


async def _no_policy(messages: list[Message], attempt: int) -> WrittenText:
    """Return an empty text: there is no policy here."""
    return WrittenText("", 0)


def _refuse(path: str | Path, asked: _Asked) -> NoReturn:
    failed = asked.failed
    reasons = Counter(result.detail.split(":")[0] or "no reason" for result in failed)
    counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
    what = f"{len(failed)} of {asked.num_sets} sets of hints are missing ({counts})"
    if asked.is_given_up:
        what = (
            f"{GIVE_UP} sets of hints in a row failed and the rest is not asked for "
            f"(so far {counts})"
        )
    raise DataError(
        f"{path}: {what}, so no file is written; the first: {failed[0].detail}. What is in "
        "the cache is kept: the same command continues from here"
    )


def _with_columns(
    table: pa.Table, results_P: Sequence[Sequence[HintResult]], max_level: int, is_list: bool
) -> pa.Table:
    """Return the table with its hint columns replaced; all others keep their types and bytes."""
    names = enumerate(table.column_names)
    table = table.select([n for n, name in names if not name.startswith(HINT_COLUMN_PREFIX)])
    sets_P = [[each.hint_levels for each in results] for results in results_P]
    kind = pa.list_(pa.string()) if is_list else pa.string()
    for level in range(1, max_level + 1):
        texts_P = [[_storable(each.at(level)) for each in sets if each.hints_L] for sets in sets_P]
        cells = texts_P if is_list else [next(iter(texts), None) for texts in texts_P]
        table = table.append_column(HINT_COLUMN.format(level=level), pa.array(cells, kind))
    return table


def _storable(text: str) -> str:
    """Return a text with half of a surrogate pair replaced, which no file of text can hold."""
    return text.encode("utf-8", "replace").decode()


async def _count_leaks(
    problems: Sequence[Problem], results_P: Sequence[Sequence[HintResult]], equal: Equal
) -> int:
    count = 0
    pairs = zip(problems, results_P, strict=True)
    for problem, results in progress("looking for answers in hints", pairs, total=len(problems)):
        hints = [hint for result in results for hint in result.hint_levels.hints_L]
        count += sum(map(bool, await find_leaks(hints, problem, equal)))
    return count

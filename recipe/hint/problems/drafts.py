"""From records to rows: every fault of a file is found, and told in one message."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recipe.hint.errors import DataError
from recipe.hint.problems.columns import Labels, Row, make_row
from recipe.hint.problems.faults import truth_fault
from recipe.hint.problems.records import FieldFault
from recipe.hint.problems.rows import content_id
from recipe.hint.schema import Kind

_MAX_PLACES = 5


@dataclass(frozen=True, slots=True)
class Draft:
    """One problem before it is a row.

    ``id`` is empty when the file gives none; ``data_source`` when the stamp's is right. ``others``
    are columns of the file that are kept as they are.
    """

    problem: str
    answer: str
    solution: str = ""
    id: str = ""
    kind: Kind = "maths"
    data_source: str = ""
    others: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the rows of one file have in common; ``system_prompt`` as in ``make_row``."""

    source: str
    split: str = "train"
    system_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """The rows made of a file, and where each came from; both in the order of the file.

    ``replaced`` are columns of the file whose names are the contract's: these were not kept.
    """

    path: str
    rows: tuple[Row, ...]
    places: tuple[str, ...]
    replaced: tuple[str, ...] = ()

    def only(self, kept: Sequence[int]) -> Prepared:
        """The rows with these numbers, counted from 0."""
        rows = tuple(self.rows[number] for number in kept)
        return replace(self, rows=rows, places=tuple(self.places[number] for number in kept))


def prepare(
    path: str,
    drafts: Iterable[tuple[str, Callable[[], Draft]]],
    *,
    defaults: Defaults,
    limit: int | None = None,
    names: tuple[str, str] = ("id", "problem"),
) -> Prepared:
    """Rows of the parquet contract.

    Args:
        path: What messages call the input.
        drafts: The place that messages give, and what makes the problem or raises
            ``FieldFault``; not read past ``limit``.
        stamp: What all rows have in common.
        limit: Number of problems at most; all if not given.
        names: What messages call the columns of the id and the problem.

    Raises:
        DataError: Naming the first fault of the file and the places of those like it.
    """
    faults: dict[tuple[str, str], list[str]] = {}
    rows: list[Row] = []
    places: list[str] = []
    first_place: dict[str, str] = {}
    for place, draft in drafts:
        try:
            made = _row(draft(), defaults)
            _check_id(made, place, first_place, names=names)
        except FieldFault as fault:
            faults.setdefault((fault.column, fault.what), []).append(place)
        else:
            rows.append(made)
            places.append(place)
        if len(rows) == limit:
            break
    if faults:
        (column, what), where = next(iter(faults.items()))
        raise DataError(f"{path}: {where[0]}, column `{column}`: {what}{_rest(where, faults)}")
    if not rows:
        raise DataError(f"{path}: no problems; at least one is needed")
    return Prepared(path, tuple(rows), tuple(places))


def options_text(question: str, options: Sequence[str]) -> str:
    """A question with its options below it, lettered from (A).

    Raises:
        FieldFault: If there are fewer than two options, or more than letters.
    """
    if not 2 <= len(options) <= len(string.ascii_uppercase):
        raise FieldFault("options", f"a choice needs 2 to 26 options, got {len(options)}")
    lettered = zip(string.ascii_uppercase, options, strict=False)
    lines = [f"({letter}) {option.strip()}" for letter, option in lettered]
    return "\n".join([question.strip(), "", *lines])


def check_letter(column: str, letter: str, num_options: int) -> None:
    """Make sure that the answer is one of the options.

    Raises:
        FieldFault: If the letter comes after the last option's.
    """
    last = string.ascii_uppercase[num_options - 1]
    if letter > last:
        raise FieldFault(column, f"the options end with {last}, the answer is {letter}")


def places_text(places: Sequence[str]) -> str:
    """Places as a message lists them: the first five, and how many more."""
    shown = ", ".join(places[:_MAX_PLACES])
    more = len(places) - _MAX_PLACES
    return f"{shown} and {more} more" if more > 0 else shown


def _row(draft: Draft, defaults: Defaults) -> Row:
    if fault := truth_fault(draft.kind, draft.answer):
        raise FieldFault("answer", fault)
    labels = Labels(draft.data_source or defaults.source, defaults.split, draft.kind)
    row = make_row(
        draft.problem,
        draft.answer,
        solution=draft.solution,
        row_id=draft.id,
        labels=labels,
        system_prompt=defaults.system_prompt,
    )
    return {**draft.others, **row}


def _check_id(row: Row, place: str, first_place: dict[str, str], *, names: tuple[str, str]) -> None:
    row_id = row["extra_info"]["index"]
    earlier = first_place.setdefault(row_id, place)
    if earlier == place:
        return
    if row_id == content_id(row["problem"]):
        what = f"the same text as {earlier}, and no id; drop one, or give each an id of its own"
        raise FieldFault(names[1], what)
    raise FieldFault(names[0], f"{row_id!r} is that of {earlier} too; give each an id of its own")


def _rest(places: Sequence[str], faults: Mapping[Any, Sequence[str]]) -> str:
    """How many more places have this fault, and how many have others."""
    rest = f" (and at {places_text(places[1:])})" if places[1:] else ""
    others = sum(map(len, faults.values())) - len(places)
    return rest + (f"; other faults in {others} more" if others else "")

"""From a file to rows: every fault of the file is found, and told in one message.

``records`` reads the file; ``Keys`` makes a row of each record of a file of one's own, and the
functions of ``layouts`` one of each record of a public set; ``prepare`` collects them.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from recipe.hint.errors import DataError
from recipe.hint.problems.columns import SCHEMA, Labels, Row, make_row
from recipe.hint.problems.records import Fields, read_records, stem, text, texts
from recipe.hint.problems.rows import FieldFault, check_truth
from recipe.hint.schema import Kind, content_id
from recipe.hint.verify.programs.checklist import with_entry_point

_MAX_PLACES = 5


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a record comes from; what all rows of one file have in common comes first.

    ``system_prompt`` is as in ``make_row``. ``name`` is empty but for a public set, whose ids begin
    with it; ``file`` is the file inside the set, and ``number`` counts its records from 0.
    """

    source: str
    split: str = "train"
    system_prompt: str | None = None
    name: str = ""
    file: str = ""
    number: int = 0

    def id(self, given: str) -> str:
        """Return the id of a row: a public set's own or its place there, else as it is given."""
        if not self.name:
            return given
        given = given.strip().strip("/") or f"{self.split}/{self.number}"
        return given if given.startswith(f"{self.name}/") else f"{self.name}/{given}"

    def row(
        self,
        problem: str,
        answer: str,
        solution: str = "",
        *,
        row_id: str = "",
        kind: Kind = "maths",
    ) -> Row:
        """Return the row of a problem from here.

        Raises:
            FieldFault: If ``answer`` is no ground truth of this kind.
        """
        check_truth(kind, answer, "answer")
        return make_row(
            problem,
            answer,
            solution=solution,
            row_id=self.id(row_id),
            labels=Labels(self.source, self.split, kind),
            system_prompt=self.system_prompt,
        )


@dataclass(frozen=True, slots=True)
class Keys:
    """The names the file uses, and what kind of answer it holds.

    ``options`` may be empty: the problem's text then holds the lettered options already.
    The answer of a ``program`` is Python source with asserts, or a list of its lines; a field
    ``entry_point`` names the function that tests with ``def check(candidate)`` are called with.
    """

    problem: str = "problem"
    answer: str = "answer"
    solution: str = "solution"
    id: str = "id"
    options: str = ""
    kind: Kind = "maths"

    @property
    def names(self) -> set[str]:
        """The columns that are read."""
        return {self.problem, self.answer, self.solution, self.id, self.options}

    def row(self, fields: Fields, origin: Origin) -> Row:
        """Return the row of one record, with its other columns.

        Raises:
            FieldFault: If a field cannot be used; a problem and an answer are required.
        """
        if self.kind == "program" and isinstance(fields.get(self.answer), list):
            fields = {**fields, self.answer: "\n".join(texts(fields, self.answer))}
        problem = text(fields, self.problem, is_required=True)
        answer = text(fields, self.answer, is_required=True)
        if self.kind == "program":
            answer = with_entry_point(answer, text(fields, "entry_point"))
        check_truth(self.kind, answer, self.answer)
        if self.options:
            problem = with_options(problem, texts(fields, self.options), answer, self.answer)
        solution, row_id = text(fields, self.solution), text(fields, self.id).strip()
        row = origin.row(problem, answer, solution, row_id=row_id, kind=self.kind)
        return {name: fields[name] for name in fields if name not in self.names} | row


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
        """Return the rows with these numbers, counted from 0."""
        rows = tuple(self.rows[number] for number in kept)
        return replace(self, rows=rows, places=tuple(self.places[number] for number in kept))


def read_local(
    path: str | Path,
    *,
    keys: Keys = Keys(),
    origin: Origin | None = None,
    limit: int | None = None,
) -> Prepared:
    """Return the rows of a file of one's own; its ending says how it is read.

    Without ``origin`` the source is the file's name without its ending. Lines past ``limit``
    problems are not read.

    Raises:
        DataError: Naming the file, the line or row, and the column.
    """
    path = Path(path)
    origin = origin or Origin(stem(path))
    names: set[str] = set()

    def rows() -> Iterator[tuple[str, Callable[[], Row]]]:
        for record in read_records(path):
            names.update(record.fields)
            yield record.place, partial(keys.row, record.fields, origin)

    prepared = prepare(str(path), rows(), limit=limit, keys=keys)
    return replace(prepared, replaced=tuple(sorted((names & set(SCHEMA.names)) - keys.names)))


def prepare(
    path: str,
    made: Iterable[tuple[str, Callable[[], Row]]],
    *,
    limit: int | None = None,
    keys: Keys = Keys(),
) -> Prepared:
    """Return the rows of a file, their ids unique.

    Args:
        path: What messages call the input.
        made: The place that messages give, and what makes the row or raises ``FieldFault``.
        limit: Number of problems after which ``made`` is not read any more.
        keys: What messages call the columns of the id and the problem.

    Raises:
        DataError: Naming the first fault of the file and the places of those like it.
    """
    faults: dict[tuple[str, str], list[str]] = {}
    rows: list[Row] = []
    places: list[str] = []
    place_of: dict[str, str] = {}
    for place, make in made:
        try:
            row = make()
            _check_id(row, place, place_of, keys)
        except FieldFault as fault:
            faults.setdefault((fault.column, fault.what), []).append(place)
        else:
            rows.append(row)
            places.append(place)
        if len(rows) == limit:
            break
    if faults:
        ((column, what), (first, *more)), *others = faults.items()
        what += f" (and at {places_text(more)})" if more else ""
        what += f"; other faults in {sum(len(p) for _, p in others)} more" if others else ""
        raise DataError(f"{path}: {first}, column `{column}`: {what}")
    if not rows:
        raise DataError(f"{path}: no problems; at least one is needed")
    return Prepared(path, tuple(rows), tuple(places))


def with_options(question: str, options: Sequence[str], letter: str, column: str) -> str:
    """Return a question with its options below it, lettered from (A).

    Raises:
        FieldFault: If there are fewer than two options, or more than letters, or if ``letter``, the
            answer in ``column``, comes after the last one's.
    """
    letters = string.ascii_uppercase[: len(options)]
    if not 2 <= len(options) <= len(letters):
        raise FieldFault("options", f"a choice needs 2 to 26 options, got {len(options)}")
    if letter > letters[-1]:
        raise FieldFault(column, f"the options end with {letters[-1]}, the answer is {letter}")
    lines = [f"({name}) {option.strip()}" for name, option in zip(letters, options, strict=True)]
    return "\n".join([question.strip(), "", *lines])


def places_text(places: Sequence[str]) -> str:
    """Return places as a message lists them: the first five, and how many more."""
    more = len(places) - _MAX_PLACES
    return ", ".join(places[:_MAX_PLACES]) + (f" and {more} more" if more > 0 else "")


def _check_id(row: Row, place: str, place_of: dict[str, str], keys: Keys) -> None:
    row_id = row["extra_info"]["index"]
    earlier = place_of.setdefault(row_id, place)
    if earlier == place:
        return
    if row_id == content_id(row["problem"]):
        what = f"the same text as {earlier}, and no id; drop one, or give each an id of its own"
        raise FieldFault(keys.problem, what)
    raise FieldFault(keys.id, f"{row_id!r} is that of {earlier} too; give each an id of its own")

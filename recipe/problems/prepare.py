"""Turn a file into rows; all faults of the file are reported in one message.

``records`` reads the file; ``Keys`` makes a row of each record of a file of one's own, and the
functions of ``layouts`` one of each record of a public set; ``prepare`` collects them.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from recipe.problems.columns import SCHEMA, Labels, Row, make_row
from recipe.problems.progress import progress
from recipe.problems.records import Fields, read_records, stem, text, texts
from recipe.problems.rows import FieldFault, check_row, check_truth, prompt_fault, read_kind
from recipe.problems.schema import content_id
from recipe.run.errors import DataError
from recipe.verify.programs.checklist import with_entry_point
from recipe.verify.schema import Kind

_MAX_PLACES = 5


class _RowFaults(DataError):
    """Rows of a file that was read to its end cannot be used."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a record comes from; what all rows of one file have in common comes first.

    ``system_prompt`` is as in ``make_row``. ``name`` is empty but for a public set, whose ids begin
    with it; ``file`` is the file inside the set, and ``number`` counts its records from 0. For a
    file of one's own ``source`` and ``split`` may be empty: ``read_local`` fills them.
    """

    source: str = ""
    split: str = ""
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
        """Return the row of a problem from here; ``prepare`` checks it."""
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
    Without ``id`` and ``kind`` they are what an earlier preparation of the file said, else the
    column ``id`` and ``maths``.
    """

    problem: str = "problem"
    answer: str = "answer"
    solution: str = "solution"
    id: str | None = None
    options: str = ""
    kind: Kind | None = None

    @property
    def id_column(self) -> str:
        """The column of ids of a file that was not prepared before."""
        return self.id or "id"

    @property
    def names(self) -> set[str]:
        """The columns that are read."""
        own = {self.problem, self.answer, self.solution, self.id_column}
        return own | ({self.options} if self.options else set())

    def row(self, fields: Fields, origin: Origin, row_id: str = "") -> Row:
        """Return the row of one record, with its other columns.

        With ``row_id`` the column of ids is one of these.

        Raises:
            FieldFault: If a field cannot be used; a problem and an answer are required.
        """
        kind = self.kind or "maths"
        if kind == "program" and isinstance(fields.get(self.answer), list):
            fields = {**fields, self.answer: "\n".join(texts(fields, self.answer))}
        problem = text(fields, self.problem, is_required=True)
        answer = text(fields, self.answer, is_required=True)
        if kind == "program":
            answer = with_entry_point(answer, text(fields, "entry_point"))
        check_truth(kind, answer, self.answer)
        if self.options:
            options = texts(fields, self.options, is_required=True)
            problem = with_options(problem, options, answer, (self.options, self.answer))
        solution = text(fields, self.solution)
        read = self.names - ({self.id_column} if row_id else set())
        row_id = row_id or text(fields, self.id_column).strip()
        row = origin.row(problem, answer, solution, row_id=row_id, kind=kind)
        return {name: fields[name] for name in fields if name not in read} | row


@dataclass(frozen=True, slots=True)
class Prepared:
    """The rows made of a file, and where each came from; both in the order of the file.

    ``replaced`` are columns of the file whose names are the contract's, and whose values were not
    kept; the ground truth is named by itself. ``solution_key`` is the column of a file of one's own
    that solutions are taken from.
    """

    path: str
    rows: tuple[Row, ...]
    places: tuple[str, ...]
    replaced: tuple[str, ...] = ()
    solution_key: str = ""

    def only(self, kept: Sequence[int]) -> Prepared:
        """Return the rows with these numbers, counted from 0."""
        rows = tuple(self.rows[number] for number in kept)
        return replace(self, rows=rows, places=tuple(self.places[number] for number in kept))


def read_local(
    path: str | Path,
    *,
    keys: Keys = Keys(),
    origin: Origin | None = None,
    needs: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> Prepared:
    """Return the rows of a file of one's own; its ending says how it is read.

    Args:
        path: The file.
        keys: The names that it uses.
        origin: What is said of all rows. A source or split that is empty, and a system prompt that
            is not given, are those of an earlier preparation of the file; else the source is the
            file's name without its ending, and the split ``train``.
        needs: Columns that a record must have, each by the argument that names it.
        limit: Number of problems after which the file is not read any more.

    Raises:
        DataError: Naming the file, the line or row, and the column.
    """
    path = Path(path)
    origin = origin or Origin()
    names: set[str] = set()
    replaced: set[str] = set()

    def make(fields: Fields) -> Row:
        row = _own_row(fields, keys, origin, stem(path))
        both = (set(SCHEMA.names) & fields.keys()) - keys.names
        replaced.update(name for name in both if fields[name] != row[name])
        if _mapping(fields.get("reward_model")).get("ground_truth", row["answer"]) != row["answer"]:
            replaced.add("reward_model.ground_truth")
        return row

    def rows() -> Iterator[tuple[str, Callable[[], Row]]]:
        for record in read_records(path):
            names.update(record.fields)
            yield record.place, partial(make, record.fields)

    needs = dict(needs or {})
    try:
        prepared = prepare(str(path), rows(), limit=limit, keys=keys)
    except _RowFaults as faults:
        # A column that no row has is one mistake of the command, not one of every row.
        required = {"--problem-key": keys.problem, "--answer-key": keys.answer}
        _check_columns(path, required | needs, names, faults)
        raise
    _check_columns(path, needs, names)
    return replace(prepared, replaced=tuple(sorted(replaced)), solution_key=keys.solution)


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
        keys: What messages call the columns of the id, the problem and the answer.

    Raises:
        DataError: Naming the first fault of the file and the places of those like it.
    """
    own = {"extra_info.index": keys.id_column, "reward_model.ground_truth": keys.answer}
    faults: dict[tuple[str, str], list[str]] = {}
    rows: list[Row] = []
    places: list[str] = []
    place_of: dict[str, str] = {}
    for place, make in progress(f"reading {path}", made):
        try:
            row = make()
            check_row(row)
            _check_id(row, place, place_of, keys)
        except FieldFault as fault:
            column = own.get(fault.column, fault.column)
            faults.setdefault((column, fault.what), []).append(place)
        else:
            rows.append(row)
            places.append(place)
        if len(rows) == limit:
            break
    if faults:
        ((column, what), (first, *more)), *others = faults.items()
        what += f" (and at {places_text(more)})" if more else ""
        if others:
            found = [f"{at[0]} (`{name}`)" for (name, _), at in others]
            what += f"; other faults at {places_text(found)}"
        raise _RowFaults(f"{path}: {first}, column `{column}`: {what}")
    if not rows:
        raise DataError(f"{path}: no problems; at least one is needed")
    return Prepared(path, tuple(rows), tuple(places))


def _check_columns(
    path: Path, needs: Mapping[str, str], names: Collection[str], cause: Exception | None = None
) -> None:
    """Refuse columns that no record has, with the arguments that name others."""
    missing = {option: column for option, column in needs.items() if column not in names}
    if missing:
        known = ", ".join(map(repr, sorted(names))) or "none"
        raise DataError(
            f"{path}: no column {' and no column '.join(map(repr, missing.values()))}; there are "
            f"{known}: name yours with {' and '.join(f'{option} COLUMN' for option in missing)}"
        ) from cause


def with_options(
    question: str, options: Sequence[str], letter: str, columns: tuple[str, str]
) -> str:
    """Return a question with its options below it, lettered from (A).

    Args:
        question: Its text.
        options: Their texts.
        letter: The answer.
        columns: What messages call the columns of the options and of the answer.

    Raises:
        FieldFault: If there are fewer than two options, or more than letters, or if ``letter``
            comes after the last one's.
    """
    letters = string.ascii_uppercase[: len(options)]
    if not 2 <= len(options) <= len(letters):
        raise FieldFault(columns[0], f"a choice needs 2 to 26 options, got {len(options)}")
    if letter > letters[-1]:
        raise FieldFault(columns[1], f"the options end with {letters[-1]}, the answer is {letter}")
    lines = [f"({name}) {option.strip()}" for name, option in zip(letters, options, strict=True)]
    return "\n".join([question.strip(), "", *lines])


def _own_row(fields: Fields, keys: Keys, origin: Origin, name: str) -> Row:
    """Return the row of a record; if it holds a conversation, it was prepared before."""
    turns: Any = fields.get("prompt")
    if prompt_fault(turns):
        origin = replace(origin, source=origin.source or name, split=origin.split or "train")
        return keys.row(fields, origin)
    reward, extra = (_mapping(fields.get(each)) for each in ("reward_model", "extra_info"))
    kind = read_kind(reward)
    system = turns[0]["content"] if turns[0]["role"] == "system" else ""
    if origin.system_prompt is None and keys.kind in (None, kind):
        origin = replace(origin, system_prompt=system)
    source, split = text(fields, "data_source"), text(extra, "split")
    origin = replace(
        origin,
        source=origin.source or source or name,
        split=origin.split or split or "train",
    )
    is_named = keys.id is not None and text(fields, keys.id)
    keys = replace(keys, kind=keys.kind or kind)
    return keys.row(fields, origin, "" if is_named else text(extra, "index"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


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
    what = f"{row_id!r} is that of {earlier} too; give each an id of its own"
    raise FieldFault(keys.id_column, what)

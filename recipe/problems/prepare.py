"""Turn a file into rows; all faults of the file are reported in one message.

``records`` reads the file; ``Keys`` makes a row of each record of a file of one's own, by the
contract's names or the command's, and ``layouts`` one of each record of a public set.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from recipe.problems.columns import SCHEMA, Labels, Row, make_row
from recipe.problems.progress import progress
from recipe.problems.records import Fields, read_records, stem, text, texts
from recipe.problems.rows import check_truth, checked_problem
from recipe.problems.schema import (
    LAST_TURN,
    TRUTH,
    FieldFault,
    content_id,
    conversation,
    find,
    is_missing,
    read_kind,
    row_id,
    truth_text,
)
from recipe.problems.schema import field as column_of
from recipe.run.errors import DataError
from recipe.verify.programs.tests import with_entry_point
from recipe.verify.schema import Kind

_MAX_PLACES = 5
_SETUP = ("setup", "test_imports", "entry_point")  # of a program: they go into its tests


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
    """The names the file uses, and what kind of answer it holds; dotted names are nested fields.

    What is not named is looked for where the contract looks. ``options`` may be empty: the
    problem's text then holds the lettered options already.
    """

    problem: str = ""
    answer: str = ""
    solution: str = ""
    id: str = ""
    options: str = ""
    kind: Kind | None = None

    def row(self, fields: Fields, origin: Origin) -> Row:
        """Return the row of one record, with its other columns.

        A conversation that the record has is kept where it asks the problem as it stands.

        Raises:
            FieldFault: If a field cannot be used; a problem and an answer are required.
        """
        turns = _turns(fields)
        reward, extra = (_mapping(fields.get(name)) for name in ("reward_model", "extra_info"))
        kind = self.kind or read_kind(fields)
        where = find(fields, self.solution)
        truth = self.answer or where.truth
        if is_missing(column_of(fields, truth)):
            text(fields, truth, is_required=True)
        answer = truth_text(column_of(fields, truth), kind, truth, fields)
        if kind == "program":
            answer = with_entry_point(answer, text(fields, "entry_point"))
        name = self.problem or where.text
        if name or not turns:
            problem = text(fields, name or "problem", is_required=True)
        else:
            problem = turns[-1]["content"]
        check_truth(kind, answer, truth)
        if self.options:
            options = texts(fields, self.options, is_required=True)
            problem = with_options(problem, options, answer, (self.options, truth))
        origin = replace(origin, split=origin.split or text(extra, "split") or "train")
        row = origin.row(
            problem,
            answer,
            text(fields, where.solution) if where.solution else "",
            row_id=self._id(fields, problem),
            kind=kind,
        )
        is_asked = bool(turns) and problem in turns[-1]["content"]
        if is_asked and name != "prompt" and kind == read_kind(fields):
            row["prompt"] = _with_system(turns, origin.system_prompt)
        row["reward_model"] = {**reward, **row["reward_model"]}
        row["extra_info"] = {**extra, **row["extra_info"]}
        if ability := text(fields, "ability"):
            row["ability"] = ability
        read = {name, truth, where.solution, self.options, *(_SETUP if kind == "program" else ())}
        read |= set() if is_missing(extra.get("index")) else {self.id}
        read |= {self.id or "id"} if is_missing(extra.get("index")) else set()
        return {name: fields[name] for name in fields if name not in read} | row

    def _id(self, fields: Fields, problem: str) -> str:
        if self.id and (given := text(fields, self.id).strip()):
            return given
        if not is_missing(column_of(fields, "extra_info.index")):
            return row_id(fields, problem)
        return "" if self.id else text(fields, "id").strip()


@dataclass(frozen=True, slots=True)
class Prepared:
    """The rows made of a file, and where each came from; both in the order of the file.

    ``replaced`` are columns of the file whose names are the contract's, and whose values were not
    kept; ``repeated`` the places of rows left out because an earlier one is the same problem with
    the same answer; ``found`` counts where the problem, the solution and the truth stood.
    """

    path: str
    rows: tuple[Row, ...]
    places: tuple[str, ...]
    replaced: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    found: Mapping[str, Counter[str]] = field(default_factory=dict)

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
    """Return the rows of a file or folder of one's own; its ending says how it is read.

    Args:
        path: The file.
        keys: The names that it uses.
        origin: What is said of all rows. A source or split that is empty, and a system prompt that
            is not given, are those that the file names; else the source is the file's name without
            its ending, and the split ``train``.
        needs: Columns that a record must have, each by the argument that names it.
        limit: Number of problems after which the file is not read any more.

    Raises:
        DataError: Naming the file, the line or row, and the column.
    """
    path = Path(path)
    origin = origin or Origin()
    names: set[str] = set()
    replaced: set[str] = set()
    found = {what: Counter[str]() for what in ("problem", "solution", "answer")}

    def make(fields: Fields) -> Row:
        source = origin.source or text(fields, "data_source") or stem(path)
        row = keys.row(fields, replace(origin, source=source))
        replaced.update(
            name
            for name in set(SCHEMA.names) & fields.keys()
            if name not in ("reward_model", "extra_info") and str(fields[name]) != str(row[name])
        )
        at = find(fields, keys.solution)
        text_at = keys.problem or at.text or LAST_TURN
        given = (text_at, at.solution, keys.answer or at.truth)
        for count, name in zip(found.values(), given, strict=True):
            count[name] += 1
        return row

    def rows() -> Iterator[tuple[str, Callable[[], Row]]]:
        for record in read_records(path, origin.split):
            names.update(record.fields)
            yield record.place, partial(make, record.fields)

    needs = dict(needs or {})
    try:
        prepared = prepare(str(path), rows(), limit=limit)
    except _RowFaults as faults:
        # A column that no row has is one mistake of the command, not one of every row.
        _check_columns(path, needs, names, faults)
        raise
    _check_columns(path, needs, names)
    return replace(prepared, replaced=tuple(sorted(replaced)), found=found)


def prepare(
    path: str, made: Iterable[tuple[str, Callable[[], Row]]], *, limit: int | None = None
) -> Prepared:
    """Return the rows of a file, their ids unique; repeated problems are left out.

    Args:
        path: What messages call the input.
        made: The place that messages give, and what makes the row or raises ``FieldFault``.
        limit: Number of problems after which ``made`` is not read any more.

    Raises:
        DataError: Naming the first fault of the file and the places of those like it.
    """
    faults: dict[tuple[str, str], list[str]] = {}
    rows: list[Row] = []
    places: list[str] = []
    repeated: list[str] = []
    first: dict[str, tuple[str, Row]] = {}
    for place, make in progress(f"reading {path}", made):
        try:
            row = make()
            checked_problem(row)
            where, other = first.setdefault(row["extra_info"]["index"], (place, row))
            if other is not row and _is_same(row, other):
                repeated.append(f"{place} = {where}")
                continue
            if other is not row:
                raise _same_id(row, where)
        except FieldFault as fault:
            column = "answer" if fault.column == TRUTH[0] else fault.column
            faults.setdefault((column, fault.what), []).append(place)
        else:
            rows.append(row)
            places.append(place)
        if len(rows) == limit:
            break
    if faults:
        ((column, what), (at, *more)), *others = faults.items()
        what += f" (and at {places_text(more)})" if more else ""
        if others:
            found = [f"{at[0]} (`{name}`)" for (name, _), at in others]
            what += f"; other faults at {places_text(found)}"
        raise _RowFaults(f"{path}: {at}, column `{column}`: {what}")
    if not rows:
        raise DataError(f"{path}: no problems; at least one is needed")
    return Prepared(path, tuple(rows), tuple(places), repeated=tuple(repeated))


def _is_same(row: Row, other: Row) -> bool:
    return row["problem"] == other["problem"] and row["answer"] == other["answer"]


def _same_id(row: Row, where: str) -> FieldFault:
    given = row["extra_info"]["index"]
    if given == content_id(row["problem"]):
        what = f"the same text as {where} with another answer; drop one, or give each an id"
        return FieldFault("problem", what)
    return FieldFault("id", f"{given!r} is that of {where} too; give each an id of its own")


def _check_columns(
    path: Path, needs: Mapping[str, str], names: Collection[str], cause: Exception | None = None
) -> None:
    """Refuse columns that no record has, with the arguments that name others."""
    missing = {
        option: column
        for option, column in needs.items()
        if not {column, column.split(".")[0]} & set(names)
    }
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


def _turns(fields: Fields) -> tuple[dict[str, str], ...]:
    """Return a record's conversation; nothing where it has none."""
    try:
        return conversation(fields) if fields.get("prompt") else ()
    except FieldFault:
        return ()


def _with_system(turns: Sequence[dict[str, str]], given: str | None) -> list[dict[str, str]]:
    """Return a conversation with another system turn, where one is given."""
    if given is None:
        return list(turns)
    rest = [turn for turn in turns if turn["role"] != "system"]
    return [{"role": "system", "content": given}, *rest] if given else rest


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def places_text(places: Sequence[str]) -> str:
    """Return places as a message lists them: the first five, and how many more."""
    more = len(places) - _MAX_PLACES
    return ", ".join(places[:_MAX_PLACES]) + (f" and {more} more" if more > 0 else "")

"""Turn a file into rows; the faults of its rows are reported in one message.

``records`` reads the file; ``Keys`` makes a row of each record of a file of one's own, by the
contract's names or the command's, and ``layouts`` one of each record of a public set.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from recipe.problems.columns import SCHEMA, Labels, Row, make_row
from recipe.problems.records import Fields, read_records, stem, text, texts
from recipe.problems.schema import (
    LAST_TURN,
    TRUTH,
    FieldFault,
    check_truth,
    checked_problem,
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
        labels = Labels(self.source, self.split, kind)
        row_id, system = self.id(row_id), self.system_prompt
        return make_row(
            problem, answer, solution=solution, row_id=row_id, labels=labels, system_prompt=system
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
        """
        turns = _turns(fields)
        reward, extra = (
            value if isinstance(value := fields.get(name), Mapping) else {}
            for name in ("reward_model", "extra_info")
        )
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
        solution = text(fields, where.solution) if where.solution else ""
        given = self._id(fields, problem)
        row = origin.row(problem, answer, solution, row_id=given, kind=kind)
        is_asked = bool(turns) and problem in turns[-1]["content"]
        if is_asked and name != "prompt" and kind == read_kind(fields):
            row["prompt"] = _with_system(turns, origin.system_prompt)
        row["reward_model"] = {**reward, **row["reward_model"]}
        row["extra_info"] = {**extra, **row["extra_info"]}
        if ability := text(fields, "ability"):
            row["ability"] = ability
        read = {name, truth, where.solution, self.options, *(_SETUP if kind == "program" else ())}
        read.add(self.id or ("id" if is_missing(extra.get("index")) else ""))
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


def read_local(
    path: str | Path,
    *,
    keys: Keys = Keys(),
    origin: Origin = Origin(),
    limit: int | None = None,
) -> Prepared:
    """Return the rows of a file or folder of one's own; its ending says how it is read.

    Args:
        path: The file.
        keys: The names that it uses.
        origin: What is said of all rows. A source or split that is empty, and a system prompt that
            is not given, are those that the file names; else the source is the file's name without
            its ending, and the split ``train``.
        limit: Number of problems after which the file is not read any more.
    """
    path = Path(path)
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

    prepared = prepare(str(path), rows(), limit=limit)
    for what in ("solution", "id"):  # the others are required of each row
        column = getattr(keys, what)
        if column and not {column, column.split(".")[0]} & names:
            there = ", ".join(sorted(names))
            raise DataError(f"{path}: no column {column!r} for --{what}-key; there are {there}")
    return replace(prepared, replaced=tuple(sorted(replaced)), found=found)


def prepare(
    path: str, made: Iterable[tuple[str, Callable[[], Row]]], *, limit: int | None = None
) -> Prepared:
    """Return the rows of a file, their ids unique; repeated problems are left out.

    Args:
        path: What messages call the input.
        made: The place that messages give, and what makes the row or raises ``FieldFault``.
        limit: Number of problems after which ``made`` is not read any more.
    """
    faults: dict[tuple[str, str], list[str]] = {}
    rows: dict[str, tuple[str, Row]] = {}
    repeated: list[str] = []
    for place, make in tqdm(made, f"reading {path}", delay=2, disable=None):
        try:
            row = make()
            checked_problem(row)
            index = row["extra_info"]["index"]
            where, other = rows.setdefault(index, (place, row))
            if other is row:
                pass
            elif all(row[name] == other[name] for name in ("problem", "answer")):
                repeated.append(f"{place} = {where}")
            else:
                same = f"{index!r} is that of {where} too, with another problem or answer"
                raise FieldFault("id", f"{same}; drop one, or give each an id of its own")
        except FieldFault as fault:
            column = "answer" if fault.column == TRUTH[0] else fault.column
            faults.setdefault((column, fault.what), []).append(place)
        if len(rows) == limit:
            break
    if faults:
        told = [
            f"{places_text(at)}, column `{column}`: {what}" for (column, what), at in faults.items()
        ]
        more = f"; and {len(told) - _MAX_PLACES} other faults" if told[_MAX_PLACES:] else ""
        raise DataError(f"{path}: {'; '.join(told[:_MAX_PLACES])}{more}")
    if not rows:
        raise DataError(f"{path}: no problems; at least one is needed")
    places, kept = zip(*rows.values(), strict=True)
    return Prepared(path, kept, places, repeated=tuple(repeated))


def with_options(
    question: str, options: Sequence[str], letter: str, columns: tuple[str, str]
) -> str:
    """Return a question with its options below it, lettered from (A).

    Args:
        question: Its text.
        options: Their texts.
        letter: The answer.
        columns: What messages call the columns of the options and of the answer.
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


def _with_system(turns: Sequence[dict[str, Any]], given: str | None) -> list[dict[str, Any]]:
    """Return a conversation with another system turn, where one is given."""
    if given is None:
        return list(turns)
    rest = [turn for turn in turns if turn["role"] != "system"]
    return [{"role": "system", "content": given}, *rest] if given else rest


def places_text(places: Sequence[str]) -> str:
    """Return places as a message lists them: the first five, and how many more."""
    more = len(places) - _MAX_PLACES
    return ", ".join(places[:_MAX_PLACES]) + (f" and {more} more" if more > 0 else "")

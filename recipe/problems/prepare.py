"""Read files of any form, and turn their records into rows of the contract.

JSON lines, JSON, CSV and TSV, parquet, and a folder of parquet shards. Lines are counted from 1, as
an editor counts them; rows of the other forms from 0.
"""

from __future__ import annotations

import csv
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from recipe.problems.columns import Row, check_names, make_row, parquet_rows, with_system
from recipe.problems.schema import (
    PROBLEM,
    SOLUTION,
    TRUTH,
    FieldFault,
    check_truth,
    conversation,
    field,
    find,
    is_missing,
    problem_from_row,
    read_kind,
    row_id,
    short,
    truth_text,
)
from recipe.run.errors import DataError, one_line
from recipe.run.typed import read_json
from recipe.verify.programs.tests import with_entry_point
from recipe.verify.schema import Kind

Fields = Mapping[str, Any]
_MAX_PLACES = 5
_SETUP = ("setup", "test_imports", "entry_point")  # of a program: they go into its tests
# Names of columns that a command may give, and where each is looked for if it does not.
KEYS = {
    "problem": f"default: {', '.join(PROBLEM)}, else the last user turn",
    "answer": f"default: {', '.join(TRUTH)}; a dot names a nested field",
    "solution": f"default: {', '.join(SOLUTION)}",
    "id": "default: extra_info.index, id",
    "options": "list of a choice's options",
}


@dataclass(frozen=True, slots=True)
class Given:
    """What is said of all rows of a file; what is empty is as the file has it.

    The first five are names of columns, a dot in which names a nested field. An empty
    ``system_prompt`` is a conversation without a system turn.
    """

    problem: str = ""
    answer: str = ""
    solution: str = ""
    id: str = ""
    options: str = ""
    kind: Kind | None = None
    source: str = ""
    split: str = ""
    system_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """The rows made of a file, and where each came from; both in the order of the file.

    ``repeated`` are the places of rows left out because an earlier one is the same problem with the
    same answer.
    """

    path: str
    rows: tuple[Row, ...]
    places: tuple[str, ...]
    repeated: tuple[str, ...] = ()


def read_records(path: Path, split: str = "") -> Iterator[tuple[str, Fields]]:
    """Yield the records of a file or folder with their places; ``split`` begins a shard's name."""
    name = f"{split or 'train'}*.parquet"  # of the hub's shards
    shards = sorted(path.rglob(name)) if path.is_dir() else [path]
    if not shards:
        raise DataError(f"{path}: is a folder without {name}; give a file, or another --split")
    for shard in shards:
        if not (read := _READERS.get(shard.suffix)):
            known = f"in one of {', '.join(_READERS)}, or be of `main_prepare.py sources`"
            raise DataError(f"{path}: the name must end {known}")
        try:
            for place, fields in read(shard):
                place = place if shard == path else f"{shard.relative_to(path)}, {place}"
                if not isinstance(fields, Mapping):
                    raise DataError(f"{path}: {place}: expected an object, got {short(fields)}")
                yield place, fields
        except (pa.ArrowException, csv.Error, OSError, UnicodeError) as error:
            raise DataError(f"{shard}: cannot be read: {one_line(error, 200)}") from error


def _read_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    yield from ((f"row {number}", row) for number, row in enumerate(parquet_rows(path)))


def _read_json(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        is_array = path.suffix == ".json" and file.read(1) == "["
        file.seek(0)
        for number, given in enumerate([file.read()] if is_array else file, 1):
            if not given.strip():
                continue
            try:
                value = read_json(given)
            except ValueError as error:
                told = f"line {number} is not JSON: {error}; one object a line, or an array"
                raise DataError(f"{path}: {told}") from error
            if is_array:
                yield from ((f"row {row}", each) for row, each in enumerate(value))
            else:
                yield f"line {number}", value


def _read_csv(path: Path) -> Iterator[tuple[str, Any]]:
    """Read rows whose header says what separates them: commas, semicolons, tabs or bars."""
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", newline="") as file:
        separator = max(",;\t|", key=file.readline().count)
        file.seek(0)
        rows = csv.DictReader(file, delimiter=separator, strict=True)
        check_names(path, rows.fieldnames or [])
        for row in rows:
            place = f"line {rows.line_num}"
            if None in row or None in row.values():  # a value that is not quoted would shift unseen
                told = f"has not the header's fields, separated by {separator!r}; quote texts"
                raise DataError(f"{path}: {place} {told} with those or line breaks in them")
            yield place, row


_READERS = {".jsonl": _read_json, ".json": _read_json, ".parquet": _read_parquet}
_READERS |= {".csv": _read_csv, ".tsv": _read_csv}


def text(fields: Fields, column: str, *, is_required: bool = False) -> str:
    """Return the text of a field; numbers are written out, null and absent are empty."""
    value = field(fields, column)
    if isinstance(value, bool | list | Mapping | bytes):
        raise FieldFault(column, f"must be a text or a number, got {short(value)}")
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # whole numbers of a column with a gap are stored as 27.0
    value = "" if is_missing(value) else str(value)
    if is_required and not value:
        check_there(fields, column)
        raise FieldFault(column, "is empty")
    return value


def check_there(fields: Fields, column: str) -> None:
    """Refuse a record without the column that is named, or in which it would be a field."""
    if not {column, column.split(".")[0]} & fields.keys():
        raise FieldFault(column, f"no such column; there are {', '.join(fields) or 'none'}")


def texts(fields: Fields, column: str) -> list[str]:
    """Return the texts of a field that is a list; null and absent are an empty list."""
    value = field(fields, column)
    if not isinstance(value, list | None):
        raise FieldFault(column, f"must be a list of texts, got {short(value)}")
    return [text({column: each}, column) for each in value or []]


def with_options(question: str, options: Sequence[str], letter: str, column: str) -> str:
    """Return a question with its options below it, lettered from (A); ``column`` has them."""
    letters = string.ascii_uppercase[: len(options)]
    if not 2 <= len(options) <= len(letters):
        raise FieldFault(column, f"a choice needs 2 to 26 options, got {len(options)}")
    if letter > letters[-1]:
        raise FieldFault("answer", f"the options end with {letters[-1]}, the answer is {letter}")
    lines = [f"({name}) {option.strip()}" for name, option in zip(letters, options, strict=True)]
    return "\n".join([question.strip(), "", *lines])


def read_local(path: Path, given: Given = Given(), limit: int | None = None) -> Prepared:
    """Return the rows of a file or folder of one's own, ``limit`` of them at most.

    The source that is neither given nor in the file is the file's name, the split ``train``.
    """

    def make(fields: Fields) -> Row:
        source = given.source or text(fields, "data_source") or path.stem
        return own_row(fields, replace(given, source=source))

    return prepare(str(path), read_records(path, given.split), make, limit)


def own_row(fields: Fields, given: Given) -> Row:
    """Return the row of one record, with its other columns.

    A conversation that the record has is kept where it asks the problem as it stands.
    """
    try:
        turns = conversation(fields)
    except FieldFault:
        turns = ()
    reward, extra = (
        value if isinstance(value := fields.get(name), Mapping) else {}
        for name in ("reward_model", "extra_info")
    )
    kind = given.kind or read_kind(fields)
    text_at, solution_at, truth_at = find(fields, given.solution)
    truth_at, text_at = given.answer or truth_at, given.problem or text_at
    for column in filter(None, (truth_at, given.solution, given.id)):
        check_there(fields, column)
    answer = truth_text(fields, truth_at, kind)
    if kind == "program":
        answer = with_entry_point(answer, text(fields, "entry_point"))
    if text_at or not turns:
        problem = text(fields, text_at or "problem", is_required=True)
    else:
        problem = turns[-1]["content"]
    check_truth(kind, answer, truth_at)
    if given.options:
        problem = with_options(problem, texts(fields, given.options), answer, given.options)
    has_own_id = given.id or is_missing(field(fields, "extra_info.index"))
    own_id = text(fields, given.id or "id").strip() if has_own_id else ""
    row = make_row(
        problem,
        answer,
        solution=text(fields, solution_at) if solution_at else "",
        row_id=own_id or row_id(fields, problem),
        source=given.source,
        kind=kind,
    )
    is_asked = bool(turns) and problem in turns[-1]["content"]
    if is_asked and text_at != "prompt" and kind == read_kind(fields):
        row["prompt"] = list(turns)
    if given.system_prompt is not None:
        row["prompt"] = with_system(row["prompt"], given.system_prompt)
    split = given.split or text(extra, "split") or "train"
    row["reward_model"] = {**reward, **row["reward_model"]}
    row["extra_info"] = {**extra, **row["extra_info"], "split": split}
    row["ability"] = text(fields, "ability") or row["ability"]
    read = {text_at, truth_at, solution_at, given.options, (given.id or "id") if has_own_id else ""}
    read.update(_SETUP if kind == "program" else ())
    return {name: fields[name] for name in fields if name not in read} | row


def prepare(
    path: str,
    records: Iterable[tuple[str, Any]],
    make: Callable[[Any], Row],
    limit: int | None = None,
) -> Prepared:
    """Return the rows of a file, their ids unique; repeated problems are left out.

    Args:
        path: What messages call the input.
        records: The place that messages give, and what ``make`` makes the row of.
        make: Returns a row, or raises ``FieldFault``.
        limit: Number of problems after which ``records`` is not read any more.
    """
    faults: list[str] = []
    rows: dict[str, tuple[str, Row]] = {}
    repeated: list[str] = []
    for place, record in tqdm(records, f"reading {path}", delay=2, disable=None):
        try:
            row = make(record)
            problem_from_row(row)
            index = row["extra_info"]["index"]
            where, other = rows.setdefault(index, (place, row))
            if other is not row:
                if any(row[name] != other[name] for name in ("problem", "answer")):
                    same = f"{index!r} is that of {where} too, with another problem or answer"
                    raise FieldFault("id", f"{same}; drop one, or give each an id of its own")
                repeated.append(f"{place} = {where}")
        except FieldFault as fault:
            faults.append(f"{place}, column `{fault.column}`: {fault}")
        if len(rows) == limit:
            break
    if faults:
        raise DataError(f"{path}: {listed(faults, '; ')}")
    if not rows:
        raise DataError(f"{path}: no problems; at least one is needed")
    places, kept = zip(*rows.values(), strict=True)
    return Prepared(path, kept, places, tuple(repeated))


def listed(places: Sequence[str], between: str = ", ") -> str:
    """Return what a message lists: the first five, and how many more."""
    more = len(places) - _MAX_PLACES
    return between.join(places[:_MAX_PLACES]) + (f" and {more} more" if more > 0 else "")

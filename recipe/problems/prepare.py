"""Turn the records of a file into rows; the faults of its rows are reported in one message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from recipe.problems.columns import SCHEMA, Row, make_row, told_found, with_system
from recipe.problems.layouts import with_options
from recipe.problems.records import Fields, read_records, text, texts
from recipe.problems.schema import (
    PROBLEM,
    SOLUTION,
    TRUTH,
    FieldFault,
    check_truth,
    checked_problem,
    conversation,
    field,
    find,
    is_missing,
    read_kind,
    row_id,
    truth_text,
)
from recipe.run.errors import DataError
from recipe.verify.programs.tests import with_entry_point
from recipe.verify.schema import Kind

_MAX_PLACES = 5
_REWRITTEN = {*SCHEMA.names} - {"reward_model", "extra_info"}
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
    same answer; ``notes`` are about the file.
    """

    path: str
    rows: tuple[Row, ...]
    places: tuple[str, ...]
    repeated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_local(path: Path, given: Given = Given(), limit: int | None = None) -> Prepared:
    """Return the rows of a file or folder of one's own, ``limit`` of them at most.

    The source that is neither given nor in the file is the file's name, the split ``train``.
    """
    names: set[str] = set()
    changed: set[str] = set()
    found = ("", "", "")

    def make(fields: Fields) -> Row:
        nonlocal found
        names.update(fields)
        source = given.source or text(fields, "data_source") or path.stem
        row = own_row(fields, replace(given, source=source))
        own = _REWRITTEN & fields.keys()
        changed.update(name for name in own if str(fields[name]) != str(row[name]))
        if not found[1]:
            text_at, solution_at, truth_at = find(fields, given.solution)
            found = given.problem or text_at, solution_at, given.answer or truth_at
        return row

    prepared = prepare(str(path), read_records(path, given.split), make, limit)
    for what in ("solution", "id"):  # the others are required of each row
        column = getattr(given, what)
        if column and not {column, column.split(".")[0]} & names:
            there = ", ".join(sorted(names))
            raise DataError(f"{path}: no column {column!r} for --{what}-key; there are {there}")
    rewritten = ", ".join(f"`{name}`" for name in sorted(changed))
    told = [f"its own {rewritten} are rewritten (docs/data.md)"] if changed else []
    return replace(prepared, notes=(told_found(*found), *told))


def own_row(fields: Fields, given: Given) -> Row:
    """Return the row of one record, with its other columns.

    A conversation that the record has is kept where it asks the problem as it stands.
    """
    turns = _turns(fields)
    reward, extra = (
        value if isinstance(value := fields.get(name), Mapping) else {}
        for name in ("reward_model", "extra_info")
    )
    kind = given.kind or read_kind(fields)
    text_at, solution_at, truth_at = find(fields, given.solution)
    truth_at, text_at = given.answer or truth_at, given.problem or text_at
    if is_missing(field(fields, truth_at)):
        text(fields, truth_at, is_required=True)
    answer = truth_text(field(fields, truth_at), kind, truth_at, fields)
    if kind == "program":
        answer = with_entry_point(answer, text(fields, "entry_point"))
    if text_at or not turns:
        problem = text(fields, text_at or "problem", is_required=True)
    else:
        problem = turns[-1]["content"]
    check_truth(kind, answer, truth_at)
    if given.options:
        problem = with_options(problem, texts(fields, given.options), answer, given.options)
    row = make_row(
        problem,
        answer,
        solution=text(fields, solution_at) if solution_at else "",
        row_id=given_id(fields, given, problem),
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
    read = {text_at, truth_at, solution_at, given.options, *(_SETUP if kind == "program" else ())}
    read.add(given.id or ("id" if is_missing(extra.get("index")) else ""))
    return {name: fields[name] for name in fields if name not in read} | row


def given_id(fields: Fields, given: Given, problem: str) -> str:
    """Return the id that a record has; empty: none."""
    if given.id and (own := text(fields, given.id).strip()):
        return own
    if not is_missing(field(fields, "extra_info.index")):
        return row_id(fields, problem)
    return "" if given.id else text(fields, "id").strip()


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
    faults: dict[tuple[str, str], list[str]] = {}
    rows: dict[str, tuple[str, Row]] = {}
    repeated: list[str] = []
    for place, record in tqdm(records, f"reading {path}", delay=2, disable=None):
        try:
            row = make(record)
            checked_problem(row)
            index = row["extra_info"]["index"]
            where, other = rows.setdefault(index, (place, row))
            if other is not row:
                if any(row[name] != other[name] for name in ("problem", "answer")):
                    same = f"{index!r} is that of {where} too, with another problem or answer"
                    raise FieldFault("id", f"{same}; drop one, or give each an id of its own")
                repeated.append(f"{place} = {where}")
        except FieldFault as fault:
            column = "answer" if fault.column == TRUTH[0] else fault.column
            faults.setdefault((column, str(fault)), []).append(place)
        if len(rows) == limit:
            break
    if faults:
        told = [f"{listed(at)}, column `{column}`: {what}" for (column, what), at in faults.items()]
        more = f"; and {len(told) - _MAX_PLACES} other faults" if told[_MAX_PLACES:] else ""
        raise DataError(f"{path}: {'; '.join(told[:_MAX_PLACES])}{more}")
    if not rows:
        raise DataError(f"{path}: no problems; at least one is needed")
    places, kept = zip(*rows.values(), strict=True)
    return Prepared(path, kept, places, tuple(repeated))


def listed(places: Sequence[str]) -> str:
    """Return places as a message lists them: the first five, and how many more."""
    more = len(places) - _MAX_PLACES
    return ", ".join(places[:_MAX_PLACES]) + (f" and {more} more" if more > 0 else "")


def _turns(fields: Fields) -> tuple[dict[str, str], ...]:
    """Return a record's conversation; nothing where it has none."""
    try:
        return conversation(fields) if fields.get("prompt") else ()
    except FieldFault:
        return ()

"""The parquet contract: written, read and checked in one place (docs/data.md).

Rows are counted from 0 in every message, as a data frame counts them.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from recipe.hint.prompt import ANSWER_SYSTEM_PROMPT
from recipe.problems.progress import progress
from recipe.problems.rows import FieldFault, check_names, check_row, short
from recipe.problems.schema import HINT_COLUMN_PREFIX, Problem, content_id, problem_from_row
from recipe.run.errors import DataError, one_line
from recipe.run.whole_file import whole_file
from recipe.verify.schema import Kind

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("problem", pa.string()),
        ("solution", pa.string()),
        ("answer", pa.string()),
        ("data_source", pa.string()),
        ("ability", pa.string()),
        (
            "reward_model",
            pa.struct([(name, pa.string()) for name in ("style", "ground_truth", "kind")]),
        ),
        ("extra_info", pa.struct([("index", pa.string()), ("split", pa.string())])),
    ]
)
# The turn of a mathematics problem is the problem alone: the system prompt asks for the box.
REQUESTS: dict[str, str] = {
    "choice": "\n\nGive the letter of the right option as the final answer, as in \\boxed{A}.",
    "program": "\n\nGive the whole program in one ```python block.",
}
SYSTEM_PROMPTS: dict[str, str] = {
    "program": "Please reason step by step, and give your final program in a ```python block."
}
_ABILITIES = {"maths": "math", "choice": "choice", "program": "code"}
_BATCH_ROWS = 1024
_MAX_DEPTH = 40  # of lists and objects in others: the reader of parquet gives up at 50 lists
# Beginnings of further columns that training reads.
_MORE = (HINT_COLUMN_PREFIX, "first_attempts", "__rollout_n__")


class Labels(NamedTuple):
    """What is said of all rows of a file."""

    source: str = "local"
    split: str = "train"
    kind: Kind = "maths"


_LABELS = Labels()


@dataclass(frozen=True, slots=True)
class FileReport:
    """What a file that keeps the contract holds; the numbers count rows.

    ``num_content_ids`` rows have no ``extra_info.index`` and are known by their problem's text.
    """

    path: str
    num_rows: int
    num_without_solution: int
    num_content_ids: int

    def summary(self) -> str:
        """Return one line for the log of a run."""
        line = f"{self.path}: {self.num_rows} problems, "
        if self.num_without_solution:
            line += (
                f"{self.num_without_solution} without a solution (these get no self-written hint)"
            )
        else:
            line += "all with a solution"
        if self.num_content_ids:
            line += f", {self.num_content_ids} with an id made from their text"
        return line


def make_row(
    problem: str,
    answer: str,
    *,
    solution: str = "",
    row_id: str = "",
    labels: Labels = _LABELS,
    system_prompt: str | None = None,
) -> Row:
    """Return one row of the contract.

    Args:
        problem: What is asked; the user turn adds the kind's request for the form of the answer.
        answer: The ground truth: an answer, a letter, or Python source with asserts.
        solution: What hints are written from; empty when there is none.
        row_id: Stable id; made from the problem's text when empty.
        labels: The data source, the split and the kind.
        system_prompt: Empty for a conversation without a system turn; the kind's if not given.
    """
    source, split, kind = labels
    if system_prompt is None:
        system_prompt = SYSTEM_PROMPTS.get(kind, ANSWER_SYSTEM_PROMPT)
    system = [{"role": "system", "content": system_prompt}] if system_prompt else []
    return {
        "prompt": [*system, {"role": "user", "content": problem + REQUESTS.get(kind, "")}],
        "problem": problem,
        "solution": solution,
        "answer": answer,
        "data_source": source,
        "ability": _ABILITIES.get(kind, ""),
        "reward_model": {"style": "rule", "ground_truth": answer, "kind": kind},
        "extra_info": {"index": row_id or content_id(problem), "split": split},
    }


def write_rows(
    rows: Iterable[Mapping[str, Any]], path: str | Path, places: Sequence[str] = ()
) -> None:
    """Write ``rows`` in their order; equal rows give equal bytes.

    Columns beyond the contract (``hint_level_1``) are kept, in the order of their names. The file
    appears whole or not at all: it is written beside its place and then moved. ``places`` say where
    each row came from, for messages about a column.

    Raises:
        DataError: If the rows break the contract, or the name does not end in ``.parquet``.
        OSError: If the disk refuses; nothing is left behind.
    """
    path = Path(path)
    rows = list(rows)
    _check_name(path)
    for _ in _problems(path, rows):
        pass
    write_table(_table(rows, places or [f"{path}: row {n}" for n in range(len(rows))]), path)


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write a table as it is; the file appears whole or not at all.

    Raises:
        DataError: If a column cannot be stored.
        OSError: If the disk refuses; nothing is left behind.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with whole_file(path) as file:
            pq.write_table(table, file)
    except pa.ArrowException as error:
        raise DataError(
            f"{path}: a column cannot be stored: {one_line(error, 200)}; write all its values "
            f"alike, or take it out"
        ) from error


def read_table(path: str | Path) -> pa.Table:
    """Return all columns of a file as they are stored, with those that nothing here reads.

    Raises:
        DataError: If it is not a parquet file.
    """
    with _opened(path) as file:
        return file.read()


@contextlib.contextmanager
def _opened(path: str | Path) -> Iterator[pq.ParquetFile]:
    """Open a parquet file; what cannot be read of it in the block is an error that names it."""
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {one_line(error, 200)}") from error
    except (pa.ArrowException, OverflowError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: not a readable parquet file: {one_line(error, 200)}; write it again"
        ) from error


def check_target(path: str | Path) -> None:
    """Check that a file can be written there, before work that is paid for; nothing is made.

    Raises:
        DataError: If the name does not end in ``.parquet``, or the folder cannot be written.
    """
    path = Path(path)
    _check_name(path)
    try:
        if path.is_dir():
            raise DataError(f"{path}: is a folder; name a file OUT.parquet, which may be in it")
        # Where a link points to, and the first folder on the way that exists.
        place = Path(os.path.realpath(path))
        folder = next(each for each in place.parents if each.exists())
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error.strerror or error}; name an OUT.parquet in a folder"
            " that can be written"
        ) from error


def _check_name(path: Path) -> None:
    if path.suffix != ".parquet":
        raise DataError(f"{path}: the name must end in .parquet, by which verl picks its reader")


def read_problems(path: str | Path) -> list[Problem]:
    """Return the problems of a file, in its order.

    Raises:
        DataError: If the file breaks the contract.
    """
    return [problem for problem, _ in _problems(path, _rows(Path(path)))]


def check_file(path: str | Path) -> FileReport:
    """Read a whole file before anything is started.

    Raises:
        DataError: Naming the file, and the row and the column if one is at fault.
    """
    num_rows = num_without_solution = num_content_ids = 0
    for problem, is_given in _problems(path, _rows(Path(path))):
        num_rows += 1
        num_without_solution += not problem.solution.strip()
        num_content_ids += not is_given
    return FileReport(str(path), num_rows, num_without_solution, num_content_ids)


def _table(rows: list[Mapping[str, Any]], places: Sequence[str]) -> pa.Table:
    extra = sorted({name for row in rows for name in row} - set(SCHEMA.names))
    types = {field.name: field.type for field in SCHEMA} | dict.fromkeys(extra)
    columns = {}
    for name, kind in types.items():
        try:
            columns[name] = _column(name, rows, kind)
        except UnicodeEncodeError as error:
            place = places[_first_unlike(name, rows, kind)]
            shown = name.encode(errors="backslashreplace").decode()
            raise DataError(
                f"{place}, column `{shown}`: holds half of a surrogate pair, which is not text;"
                " write it in UTF-8"
            ) from error
        except (pa.ArrowException, OverflowError) as error:
            place = places[_first_unlike(name, rows, kind)]
            raise DataError(
                f"{place}, column `{name}`: mixes types with the rows before, and a column has one:"
                f" {one_line(error, 200)}; write all its values alike, or take the column out"
            ) from error
        if why := _unstorable(columns[name].type):
            values = [row.get(name) for row in rows]
            first = next(number for number, value in enumerate(values) if value is not None)
            raise DataError(
                f"{places[first]}, column `{name}`: {why}, which parquet cannot store, got"
                f" {short(values[first])}; take the column out"
            )
    return pa.table(columns)


def _column(name: str, rows: Sequence[Mapping[str, Any]], kind: pa.DataType | None) -> pa.Array:
    if any(name in row for row in rows):
        name.encode()  # refuses half of a surrogate pair, as the values' texts do
    return pa.array([row.get(name) for row in rows], kind)


def _first_unlike(name: str, rows: Sequence[Mapping[str, Any]], kind: pa.DataType | None) -> int:
    """Return the number of the first row that no column can hold with those before it."""
    low, high = 0, len(rows) - 1
    while low < high:
        middle = (low + high) // 2
        try:
            _column(name, rows[: middle + 1], kind)
            low = middle + 1
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):
            high = middle
    return low


def _unstorable(kind: pa.DataType, depth: int = 0) -> str:
    """Return why parquet cannot hold a type; nothing where it can."""
    if depth > _MAX_DEPTH:
        return f"is nested more than {_MAX_DEPTH} deep"
    parts = [kind.field(number).type for number in range(kind.num_fields)]
    if pa.types.is_struct(kind) and not parts:
        return "holds empty objects alone"
    return next(filter(None, (_unstorable(part, depth + 1) for part in parts)), "")


def _rows(path: Path) -> Iterator[Row]:
    """Yield a file's rows with the contract's columns and what else trains, read in batches."""
    if not path.is_file():
        what = "is not a file but a folder or a pipe" if path.exists() else "no such file"
        raise DataError(f"{path}: {what}; main_prepare.py writes one (docs/data.md)")
    with _opened(path) as file:
        names = file.schema_arrow.names
        check_names(str(path), names)
        missing = [f"`{name}`" for name in ("prompt", "problem") if name not in names]
        if "reward_model" not in names and "answer" not in names:
            missing.append("`reward_model` (or `answer`)")
        if missing:
            raise DataError(
                f"{path}: column {', '.join(missing)} is missing; the file has"
                f" {', '.join(names)} (docs/data.md)"
            )
        wanted = [n for n in names if n in SCHEMA.names or n.startswith(_MORE)]
        for batch in file.iter_batches(_BATCH_ROWS, columns=wanted):
            yield from batch.to_pylist()


def _problems(
    path: str | Path, rows: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Problem, bool]]:
    """Yield checked problems, each with whether its id was given; ids are unique."""
    first_row: dict[str, int] = {}
    for number, row in enumerate(progress(f"checking {path}", rows)):
        try:
            check_row(row)
        except FieldFault as fault:
            raise DataError(f"{path}: row {number}, column `{fault.column}`: {fault}") from fault
        problem = problem_from_row(row)
        is_given = (row.get("extra_info") or {}).get("index") is not None
        if problem.id in first_row:
            both = f"{path}: rows {first_row[problem.id]} and {number}"
            if is_given:
                raise DataError(
                    f"{both} have the same `extra_info.index` {problem.id!r}; give every row its"
                    " own, or leave `index` out: ids are then made from the problems' texts"
                )
            raise DataError(
                f"{both}, column `problem`: the same text twice and no `extra_info.index`;"
                " drop one, or give every row an index of its own"
            )
        first_row[problem.id] = number
        yield problem, is_given
    if not first_row:
        raise DataError(f"{path}: no rows; at least one problem is needed")

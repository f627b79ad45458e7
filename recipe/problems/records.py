"""Read files and folders into records that know their place.

JSON lines, JSON, CSV and TSV, parquet, a folder of parquet shards, and what
``datasets.save_to_disk`` wrote. Lines are counted from 1, as an editor counts them; rows of the
other forms from 0.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recipe.problems.schema import FieldFault, field, short
from recipe.run.errors import DataError, one_line
from recipe.run.typed import read_json

Fields = Mapping[str, Any]
_ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


def read_records(path: Path, split: str = "") -> Iterator[tuple[str, Fields]]:
    """Yield the records of a file or folder with their places; ``split`` is a folder's part."""
    try:
        for place, fields in _read_folder(path, split) if path.is_dir() else _read_file(path):
            if not isinstance(fields, Mapping):
                raise DataError(f"{path}: {place}: expected an object, got {short(fields)}")
            yield place, fields
    except (pa.ArrowException, csv.Error, OSError, UnicodeError) as error:
        raise DataError(f"{path}: cannot be read: {one_line(error, 200)}") from error


def text(fields: Fields, column: str, *, is_required: bool = False) -> str:
    """Return the text of a field; numbers are written out, null and absent are empty."""
    value = field(fields, column)
    if is_required and value is None and column.split(".")[0] not in fields:
        raise FieldFault(column, f"no such column; there are {', '.join(fields) or 'none'}")
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)  # whole numbers of a column with a gap are stored as 27.0
    if value is None or (isinstance(value, float) and math.isnan(value)):
        value = ""
    if isinstance(value, bool | list | Mapping | bytes):
        raise FieldFault(column, f"must be a text or a number, got {short(value)}")
    value = str(value)
    if is_required and not value.strip():
        raise FieldFault(column, "is empty")
    return value


def texts(fields: Fields, column: str) -> list[str]:
    """Return the texts of a field that is a list; null and absent are an empty list."""
    value = field(fields, column)
    if not isinstance(value, list | None):
        raise FieldFault(column, f"must be a list of texts, got {short(value)}")
    return [text({column: each}, column) for each in value or []]


def _read_file(path: Path) -> Iterator[tuple[str, Any]]:
    ending = path.suffix.lower()
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if ending not in _ENDINGS:
        raise DataError(f"{path}: the name must end in one of {', '.join(_ENDINGS)}")
    if ending == ".parquet":
        with pq.ParquetFile(path) as table:
            rows = (row for batch in table.iter_batches(1024) for row in batch.to_pylist())
            yield from ((f"row {number}", row) for number, row in enumerate(rows))
        return
    with path.open(encoding="utf-8-sig", newline="") as file:
        if ending in (".csv", ".tsv"):
            yield from _read_csv(path, file)
            return
        first = file.readline()
        while first and not first.strip():
            first = file.readline()
        file.seek(0)
        if ending == ".json" and not first.lstrip().startswith("{"):
            rows = _json(file.read(), str(path))
            if not isinstance(rows, list):
                raise DataError(f"{path}: expected an array of objects, got {short(rows)}")
            yield from ((f"row {number}", row) for number, row in enumerate(rows))
            return
        for number, line in enumerate(file, 1):
            if line.strip():
                yield f"line {number}", _json(line, f"{path}: line {number}")


def _json(given: str, place: str) -> Any:
    try:
        return read_json(given)
    except ValueError as error:
        raise DataError(f"{place} is not JSON: {error}; one object a line, or an array") from error


def _read_csv(path: Path, file: Any) -> Iterator[tuple[str, Any]]:
    """Read rows whose header says what separates them: commas, semicolons, tabs or bars."""
    csv.field_size_limit(2**31 - 1)
    separator = max(",;\t|", key=file.readline().count)
    file.seek(0)
    rows = csv.DictReader(file, delimiter=separator, strict=True)
    names = rows.fieldnames or []
    if len(set(names)) < len(names):
        raise DataError(f"{path}: line 1: two columns have one name: {', '.join(names)}")
    for row in rows:
        if None in row or None in row.values():  # a value that is not quoted would shift unseen
            raise DataError(
                f"{path}: line {rows.line_num} has not the header's {len(names)} fields; put fields"
                f" with {separator!r} or line breaks in double quotes"
            )
        yield f"line {rows.line_num}", row


def _read_folder(path: Path, split: str) -> Iterator[tuple[str, Any]]:
    if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
        import datasets

        saved = datasets.load_from_disk(str(path))
        if isinstance(saved, datasets.DatasetDict):
            if (split or "train") not in saved:
                raise DataError(f"{path}: has the splits {', '.join(saved)}; choose one by --split")
            saved = saved[split or "train"]
        yield from ((f"row {n}", row) for n, row in enumerate(saved.with_format(None)))
        return
    name = f"{split or 'train'}*.parquet"  # of the hub's shards
    if not (files := sorted(path.rglob(name))):
        raise DataError(f"{path}: is a folder without {name}; give a file, or another --split")
    for each in files:
        for place, fields in _read_file(each):
            yield f"{each.relative_to(path)}, {place}", fields

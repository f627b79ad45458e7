"""Read local files into records that know their place: JSON lines, JSON, CSV, TSV, parquet.

All but parquet may be packed (``.jsonl.gz``). Lines are counted from 1, as an editor counts them;
rows of a parquet file and elements of a JSON array from 0.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import math
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from recipe.problems.rows import FieldFault, check_names, short
from recipe.run.errors import DataError, one_line
from recipe.run.typed import SpelledFloat, finite, spelled_float, unique_pairs

Fields = Mapping[str, Any]
Numbered = Iterator[tuple[str, dict[str, Any]]]
_BATCH_ROWS = 1024
# Python's own limit of 131072 characters is less than some worked solutions hold.
_MAX_CSV_FIELD = 1 << 26
_MAX_INT_CHARS = 20
_SURROGATE = re.compile("[\ud800-\udfff]")


class Record(NamedTuple):
    """One record: its place as messages give it, its number from 0, and its fields."""

    place: str
    number: int
    fields: Fields


def read_records(path: str | Path) -> Iterator[Record]:
    """Yield the records of a file, in order; blank lines are skipped.

    Numbers of JSON know their spelling (``0.50``), which ``text`` gives back.

    Raises:
        DataError: If the file cannot be read, naming the line or row when there is one.
    """
    path = Path(path)
    check_input(path)
    reader = _READERS.get(_ending(path))
    if reader is None:
        known = ", ".join(_READERS)
        raise DataError(
            f"{path}: the name must end in one of {known}; all but .parquet may be gzipped (.gz)"
        )
    try:
        for number, (place, fields) in enumerate(reader(path)):
            yield Record(place, number, fields)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: {_not_utf8(path)}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path}: not a whole gzip file: {one_line(error, 200)}; write it again"
        ) from error
    except pa.ArrowException as error:
        raise DataError(
            f"{path}: not a readable parquet file: {one_line(error, 200)}; write it again"
        ) from error
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read: {error.strerror or one_line(error, 200)}"
        ) from error


def check_input(path: Path) -> None:
    """Refuse what is not a file, before it is opened: a pipe without a writer would never open.

    Raises:
        DataError: Saying what it is.
    """
    if not os.path.exists(path):  # also false where the system refuses the name
        raise DataError(f"{path}: no such file")
    if not path.is_file():
        raise DataError(f"{path}: is not a file but a folder, a pipe or a device; give a file")


def stem(path: Path) -> str:
    """Return the name of a file without its endings."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def text(fields: Fields, column: str, *, is_required: bool = False) -> str:
    """Return the text of a field; numbers are spelled out, null and absent are empty.

    Raises:
        FieldFault: If it is not a text or number, or is required and blank or absent.
    """
    if is_required:
        _check_column(fields, column)
    value = fields.get(column)
    if isinstance(value, SpelledInt | SpelledFloat):
        value = value.spelling
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if math.isinf(value):
            raise FieldFault(column, f"must be a finite number, got {value}")
        if math.isnan(value):  # the gap of a data frame
            value = None
        else:  # whole numbers of a column with a gap are stored as 27.0
            value = str(int(value) if float(value).is_integer() else value)
    if value is None:
        value = ""
    if isinstance(value, Decimal):
        value = str(value)
    if not isinstance(value, str):
        raise FieldFault(column, f"must be a text or a number, got {short(value)}")
    if is_required and not value.strip():
        raise FieldFault(column, "is empty")
    _check_characters(value, column)
    return value


def _check_characters(value: str, column: str) -> None:
    if not value.isascii() and _SURROGATE.search(value):
        raise FieldFault(column, "holds half of a surrogate pair, which is not text")
    if "\0" in value:
        raise FieldFault(column, f"holds a control character, got {short(value)}; take it out")


def texts(fields: Fields, column: str, *, is_required: bool = False) -> list[str]:
    """Return the texts of a field that is a list; null and absent are an empty list.

    Raises:
        FieldFault: If it is not a list, an element is not a text, or it is required and absent.
    """
    if is_required:
        _check_column(fields, column)
    value = fields.get(column)
    if value is None:
        return []
    if not isinstance(value, list):
        raise FieldFault(column, f"must be a list of texts, got {short(value)}")
    return [text({column: each}, column) for each in value]


def _check_column(fields: Fields, column: str) -> None:
    if column not in fields:
        raise FieldFault(column, f"no such column; there are {', '.join(fields) or 'none'}")


def _not_utf8(path: Path) -> str:
    """Return what a file is instead of UTF-8, or which line is not, and what to do.

    The decoder counts its bytes from the last block it read.
    """
    advice = "save the file as UTF-8 (from {0}: iconv -f {0} -t utf-8 IN > OUT)"
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        begin = file.read(2)
        if begin == b"\x1f\x8b":
            return f"is gzipped; name it {path.name}.gz"
        if begin in (b"\xff\xfe", b"\xfe\xff"):
            return f"is UTF-16 text; {advice.format('utf-16')}"
        file.seek(0)
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = f"byte {error.start + 1} is 0x{line[error.start]:02x}"
                return f"line {number} is not UTF-8 text ({byte}); {advice.format('latin1')}"
    return f"not UTF-8 text; {advice.format('latin1')}"


def _ending(path: Path) -> str:
    """Return the ending that says how a file is read: ``.jsonl`` for ``a.jsonl.gz``."""
    if path.suffix.lower() != ".gz":
        return path.suffix.lower()
    ending = Path(path.stem).suffix.lower()
    return "" if ending == ".parquet" else ending


def _opened(path: Path, newline: str | None = None) -> IO[str]:
    """Open a file as text, unpacked where its name says that it is packed."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline=newline)
    return path.open(encoding="utf-8-sig", newline=newline)


def _read_jsonl(path: Path) -> Numbered:
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                where = f"{path}: line {number}"
                yield f"line {number}", _object(_parsed(line, where), where)


def _read_json(path: Path) -> Numbered:
    with _opened(path) as file:
        value = _parsed(file.read(), f"{path}:")
    if not isinstance(value, list):
        raise DataError(
            f"{path}: expected an array of objects, got {type(value).__name__}; one object per"
            " line needs the ending .jsonl"
        )
    for number, element in enumerate(value):
        yield f"row {number}", _object(element, f"{path}: row {number}")


def _read_csv(path: Path) -> Numbered:
    form = _ending(path)[1:].upper()
    delimiter, delimiters = ("\t", "tabs") if form == "TSV" else (",", "commas")
    csv.field_size_limit(_MAX_CSV_FIELD)
    with _opened(path, newline="") as file:
        rows = csv.reader(file, strict=True, delimiter=delimiter)
        names: list[str] = []
        while True:
            place = f"line {rows.line_num + 1}"
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                raise DataError(f"{path}: {place} is not {form}: {error}") from error
            if not names:
                names = cells
                if not names:
                    raise DataError(f"{path}: line 1, the header, is empty; name the columns there")
                check_names(f"{path}: line 1, the header", names)
            elif len(cells) == len(names):
                yield place, dict(zip(names, cells, strict=True))
            elif cells:
                raise DataError(
                    f"{path}: {place} has {len(cells)} fields and the header {len(names)}; put"
                    f" fields with {delimiters} or line breaks in double quotes"
                )


def _read_parquet(path: Path) -> Numbered:
    with pq.ParquetFile(path) as file:
        check_names(str(path), file.schema_arrow.names)
        for each in file.schema_arrow:
            if "map<" in str(each.type):
                raise DataError(
                    f"{path}: column `{each.name}` has a map type, which is not kept; write it as "
                    f"named fields or as a text, or take it out"
                )
        narrow = {
            each.name: np.float16 if pa.types.is_float16(each.type) else np.float32
            for each in file.schema_arrow
            if pa.types.is_float16(each.type) or pa.types.is_float32(each.type)
        }
        batches = (_plain(batch, path) for batch in file.iter_batches(_BATCH_ROWS))
        for number, fields in enumerate(itertools.chain.from_iterable(batches)):
            for name, kind in narrow.items():  # 0.1, which is 0.10000000149 in 64 bits
                value = fields[name]
                if value is not None and math.isfinite(value) and not value.is_integer():
                    fields[name] = spelled_float(str(kind(value)))
            yield f"row {number}", fields


def _plain(batch: pa.RecordBatch, path: Path) -> list[dict[str, Any]]:
    """Return the rows of a batch in values of Python.

    Raises:
        DataError: Naming the column with a value that has none, such as a date after the year 9999.
    """
    try:
        return batch.to_pylist()
    except (OverflowError, ValueError) as error:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            for value in column:
                try:
                    value.as_py()
                except (OverflowError, ValueError) as fault:
                    raise DataError(
                        f"{path}: column `{name}` holds a value that cannot be read: "
                        f"{one_line(fault, 200)}; repair it, or take the column out"
                    ) from error
        raise


_READERS: dict[str, Callable[[Path], Numbered]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
}


class SpelledInt(int):
    """A whole number that knows how the file wrote it."""

    spelling: str


def _parsed(source: str, where: str) -> Any:
    try:
        return json.loads(
            source,
            parse_int=_spelled_int,
            parse_float=spelled_float,
            parse_constant=finite,
            object_pairs_hook=unique_pairs,
        )
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON: {error}") from error


def _spelled_int(spelling: str) -> SpelledInt | str:
    # What a column of 64 bits cannot hold is a text.
    if len(spelling) > _MAX_INT_CHARS or not -(2**63) <= int(spelling) < 2**63:
        return spelling
    value = SpelledInt(spelling)
    value.spelling = spelling
    return value


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected a JSON object, got {type(value).__name__}")
    return value

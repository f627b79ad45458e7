"""Read files and folders into records that know their place.

JSON lines, JSON, CSV and TSV (each also ``.gz``), parquet, a folder of such files, and what
``datasets.save_to_disk`` wrote. Lines are counted from 1, as an editor counts them; rows of the
other forms from 0.
"""

from __future__ import annotations

import csv
import gzip
import math
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from recipe.problems.rows import check_names
from recipe.problems.schema import FieldFault, field, short
from recipe.run.errors import DataError, one_line
from recipe.run.typed import read_json

Fields = Mapping[str, Any]
Numbered = Iterator[tuple[str, dict[str, Any]]]
_BATCH_ROWS = 1024
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class Record(NamedTuple):
    """One record: its place as messages give it, its number from 0, and its fields."""

    place: str
    number: int
    fields: Fields


def read_records(path: str | Path, split: str = "") -> Iterator[Record]:
    """Yield the records of a file or folder, in order; blank lines are skipped.

    Args:
        path: The file or folder.
        split: Which part of a folder that has several.

    Raises:
        DataError: If something cannot be read, naming the line or row when there is one.
    """
    path = Path(path)
    reader = _reader(path, split)
    try:
        for number, (place, fields) in enumerate(reader):
            yield Record(place, number, fields)
    except UnicodeDecodeError as error:
        what = "is gzipped; name it .gz" if error.object[:2] == b"\x1f\x8b" else "is not UTF-8 text"
        advice = "save it as UTF-8 (iconv -f latin1 -t utf-8 IN > OUT, or from utf-16)"
        raise DataError(f"{path}: {what} (byte {error.start}); {advice}") from error
    except (EOFError, zlib.error, pa.ArrowException, OverflowError, csv.Error, OSError) as error:
        raise DataError(f"{path}: cannot be read: {one_line(error, 200)}") from error


def stem(path: Path) -> str:
    """Return the name of a file without its endings."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


def text(fields: Fields, column: str, *, is_required: bool = False) -> str:
    """Return the text of a field; numbers are written out, null and absent are empty.

    Raises:
        FieldFault: If it is not a text or number, or is required and blank or absent.
    """
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
    if "\0" in value or not value.isascii() and any("\ud800" <= sign <= "\udfff" for sign in value):
        raise FieldFault(column, f"holds no text, got {short(value)}")
    return value


def texts(fields: Fields, column: str, *, is_required: bool = False) -> list[str]:
    """Return the texts of a field that is a list; null and absent are an empty list.

    Raises:
        FieldFault: If it is not a list, an element is not a text, or it is required and absent.
    """
    value = field(fields, column)
    if value is None and not is_required:
        return []
    if not isinstance(value, list):
        raise FieldFault(column, f"must be a list of texts, got {short(value)}")
    return [text({column: each}, column) for each in value]


def _reader(path: Path, split: str) -> Numbered:
    if path.is_dir():
        return _read_folder(path, split)
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if not path.is_file():
        raise DataError(f"{path}: is neither a file nor a folder but a pipe or a device")
    if reader := _READERS.get(_ending(path)):
        return reader(path)
    raise DataError(
        f"{path}: the name must end in one of {', '.join(_READERS)}; all but .parquet may be "
        f"gzipped (.gz)"
    )


def _ending(path: Path) -> str:
    """Return the ending that says how a file is read: ``.jsonl`` for ``a.jsonl.gz``."""
    if path.suffix.lower() != ".gz":
        return path.suffix.lower()
    ending = Path(path.stem).suffix.lower()
    return "" if ending == ".parquet" else ending


def _opened(path: Path, newline: str | None = None) -> IO[str]:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline=newline)


def _read_folder(path: Path, split: str) -> Numbered:
    """Read what ``save_to_disk`` wrote, or the files of a folder in the order of their names."""
    if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
        import datasets

        saved = datasets.load_from_disk(str(path))
        if isinstance(saved, datasets.DatasetDict):
            saved = saved[_only(path, [*map(str, saved)], split)]
        for number, row in enumerate(saved.with_format(None)):
            yield f"row {number}", dict(row)
        return
    files = sorted(each for each in path.rglob("*") if _ending(each) in _READERS)
    # Of the hub's shards: train-00000-of-00002.parquet, train/0.parquet, data/train.jsonl.
    known = {"train", "test", "validation", "val", "dev"}
    of = {each: stem(each.relative_to(path)).split("-")[0] for each in files}
    of |= {each: each.parent.name for each in files if each.parent.name in known}
    named = sorted(known & set(of.values()))
    if named:
        wanted = _only(path, named, split)
        files = [each for each in files if of[each] == wanted]
    if not files:
        raise DataError(f"{path}: is a folder without files {', '.join(_READERS)}; give a file")
    for each in files:
        for place, fields in _READERS[_ending(each)](each):
            yield f"{each.relative_to(path)}, {place}", fields


def _only(path: Path, splits: Sequence[str], split: str) -> str:
    """Return the split that is meant: the one named, the only one, or ``train``."""
    if split not in splits and (split or (len(splits) > 1 and "train" not in splits)):
        raise DataError(f"{path}: has the splits {', '.join(splits)}; choose one with --split")
    return split or (splits[0] if len(splits) == 1 else "train")


def _read_jsonl(path: Path) -> Numbered:
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield f"line {number}", _object(line, f"{path}: line {number}")


def _read_json(path: Path) -> Numbered:
    """Read an array of objects, or lines of them that go by the wrong name."""
    with _opened(path) as file:
        first = next((line for line in file if line.strip()), "")
    if first.lstrip().startswith("{"):
        yield from _read_jsonl(path)
        return
    with _opened(path) as file:
        try:
            value = read_json(file.read())
        except ValueError as error:
            raise DataError(f"{path}: is not JSON: {error}") from error
    if not isinstance(value, list):
        raise DataError(f"{path}: expected an array of objects, got {type(value).__name__}")
    for number, element in enumerate(value):
        if not isinstance(element, dict):
            raise DataError(f"{path}: row {number}: expected an object, got {short(element)}")
        yield f"row {number}", element


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        value = read_json(line)
    except ValueError as error:
        raise DataError(f"{where} is not JSON: {error}; one object a line, or an array") from error
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected a JSON object, got {type(value).__name__}")
    return value


def _read_csv(path: Path) -> Numbered:
    """Read rows whose header says what separates them: commas, semicolons, tabs or bars."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    with _opened(path) as file:
        header = file.readline()
    separator = max(_SEPARATORS, key=header.count)
    if header.startswith("sep="):
        raise DataError(f"{path}: line 1 is {header.strip()!r}; take it out, it is found without")
    with _opened(path, newline="") as file:
        rows = csv.reader(file, strict=True, delimiter=separator)
        names = next(rows, [])
        if not names:
            raise DataError(f"{path}: line 1, the header, is empty; name the columns there")
        check_names(f"{path}: line 1, the header", names)
        place = f"line {rows.line_num + 1}"
        for cells in rows:
            if cells and len(cells) != len(names):
                raise DataError(
                    f"{path}: {place} has {len(cells)} fields and the header {len(names)}; put "
                    f"fields with {_SEPARATORS[separator]} or line breaks in double quotes"
                )
            if cells:
                yield place, dict(zip(names, cells, strict=True))
            place = f"line {rows.line_num + 1}"


def _read_parquet(path: Path) -> Numbered:
    with pq.ParquetFile(path) as file:
        check_names(str(path), file.schema_arrow.names)
        batches = (batch.to_pylist() for batch in file.iter_batches(_BATCH_ROWS))
        rows = (row for batch in batches for row in batch)
        for number, row in enumerate(rows):
            yield f"row {number}", row


_READERS: dict[str, Callable[[Path], Numbered]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
}

"""Read files and folders into records that know their place.

JSON lines, JSON, CSV and TSV (each also ``.gz``), parquet, a folder of such files, and what
``datasets.save_to_disk`` wrote. Lines are counted from 1, as an editor counts them; rows of the
other forms from 0.
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from recipe.problems.schema import FieldFault, field, short
from recipe.run.errors import DataError, one_line
from recipe.run.typed import read_json

Fields = Mapping[str, Any]
Placed = Iterator[tuple[str, Any]]
_SEPARATORS = ",;\t|"


class Record(NamedTuple):
    """One record: its place as messages give it, its number from 0, and its fields."""

    place: str
    number: int
    fields: Fields


def read_records(path: Path, split: str = "") -> Iterator[Record]:
    """Yield the records of a file or folder, in order; ``split`` chooses a part of a folder."""
    try:
        for number, (place, fields) in enumerate(_reader(path)(path, split)):
            if not isinstance(fields, Mapping):
                raise DataError(f"{path}: {place}: expected an object, got {short(fields)}")
            yield Record(place, number, fields)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text (byte {error.start}); save it so") from error
    except (EOFError, zlib.error, pa.ArrowException, csv.Error, OSError) as error:
        raise DataError(f"{path}: cannot be read: {one_line(error, 200)}") from error


def stem(path: Path) -> str:
    """Return the name of a file without its endings."""
    return Path(path.stem).stem if path.suffix.lower() == ".gz" else path.stem


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


def texts(fields: Fields, column: str, *, is_required: bool = False) -> list[str]:
    """Return the texts of a field that is a list; null and absent are an empty list."""
    value = field(fields, column)
    if value is None and not is_required:
        return []
    if not isinstance(value, list):
        raise FieldFault(column, f"must be a list of texts, got {short(value)}")
    return [text({column: each}, column) for each in value]


def _reader(path: Path) -> Callable[[Path, str], Placed]:
    if path.is_dir():
        is_saved = (path / "dataset_dict.json").exists() or (path / "state.json").exists()
        return _read_saved if is_saved else _read_folder
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if reader := _READERS.get(_ending(path)):
        return lambda file, _: reader(file)
    known = ", ".join(_READERS)
    raise DataError(f"{path}: the name must end in one of {known}, all but .parquet also .gz")


def _ending(path: Path) -> str:
    """Return the ending that says how a file is read: ``.jsonl`` for ``a.jsonl.gz``."""
    is_packed = path.suffix.lower() == ".gz"
    return (Path(path.stem) if is_packed else path).suffix.lower()


def _opened(path: Path, newline: str | None = None) -> IO[str]:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline=newline)


def _read_saved(path: Path, split: str) -> Placed:
    import datasets

    saved = datasets.load_from_disk(str(path))
    if isinstance(saved, datasets.DatasetDict):
        saved = saved[_only(path, [*map(str, saved)], split)]
    for number, row in enumerate(saved.with_format(None)):
        yield f"row {number}", row


def _read_folder(path: Path, split: str) -> Placed:
    files = sorted(each for each in path.rglob("*") if _ending(each) in _READERS)
    # Of the hub's shards: train-00000-of-00002.parquet, train/0.parquet, data/train.jsonl.
    known = {"train", "test", "validation", "val", "dev"}
    of = {each: stem(each).split("-")[0] for each in files}
    of |= {each: each.parent.name for each in files if each.parent.name in known}
    if named := sorted(known & set(of.values())):
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


def _read_jsonl(path: Path) -> Placed:
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield f"line {number}", _json(line, f"{path}: line {number}")


def _read_json(path: Path) -> Placed:
    """Read an array of objects, or lines of them that go by the wrong name."""
    with _opened(path) as file:
        whole = file.read()
    if whole.lstrip().startswith("{"):
        yield from _read_jsonl(path)
        return
    rows = _json(whole, str(path))
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected an array of objects, got {type(rows).__name__}")
    for number, row in enumerate(rows):
        yield f"row {number}", row


def _json(given: str, place: str) -> Any:
    try:
        return read_json(given)
    except ValueError as error:
        raise DataError(f"{place} is not JSON: {error}; one object a line, or an array") from error


def _read_csv(path: Path) -> Placed:
    """Read rows whose header says what separates them: commas, semicolons, tabs or bars."""
    csv.field_size_limit(2**31 - 1)
    with _opened(path, newline="") as file:
        separator = max(_SEPARATORS, key=file.readline().count)
        file.seek(0)
        rows = csv.DictReader(file, delimiter=separator, strict=True)
        names = rows.fieldnames or []
        if len(set(names)) < len(names):
            raise DataError(f"{path}: line 1: two columns have one name: {', '.join(names)}")
        for row in rows:
            # A separator that is not quoted would shift an answer unseen.
            if None in row or None in row.values():
                raise DataError(
                    f"{path}: line {rows.line_num} has not the header's {len(names)} fields; put "
                    f"fields with {separator!r} or line breaks in double quotes"
                )
            yield f"line {rows.line_num}", row


def _read_parquet(path: Path) -> Placed:
    with pq.ParquetFile(path) as file:
        rows = (row for batch in file.iter_batches(1024) for row in batch.to_pylist())
        for number, row in enumerate(rows):
            yield f"row {number}", row


_READERS: dict[str, Callable[[Path], Placed]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
}

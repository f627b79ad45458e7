"""Grade responses made elsewhere: ``main_grade.py IN.jsonl[.gz] OUT.jsonl[.gz]``.

A row holds ``id``, ``kind`` (maths, choice or program), ``response`` and ``answer``, or for a
program ``tests``; ``problem``, the problem's text, and ``prompt``, the conversation as a text or
turns, are optional. The output has the same rows in the
same order with ``score``, ``reason``, ``extracted``, ``basis`` and ``ignored``. Exit code 0: all
rows were graded; 1: some were not (reason error or timeout); 2: a file cannot be used, and there is
no output.
"""

from __future__ import annotations

import argparse
import gzip
import logging
import os
import sys
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from tqdm import tqdm

from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import DataError
from recipe.run.typed import finite, write_json
from recipe.run.whole_file import whole_file
from recipe.verify.options import GradeOptions
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.rows import GradeRow, read_row
from recipe.verify.schema import UNGRADED, Verdict

# Rows in the air: enough to keep the workers busy beside a slow grade, and little memory.
_CHUNK_ROWS = 32
_MAX_CHUNKS = 64
_ADDED = ("score", "reason", "extracted", "basis", "ignored")
_BAD = Verdict(0.0, "error")
_OTHER_FORMS = {".parquet", ".csv", ".tsv"}
_Source = gzip.GzipFile | BufferedReader


def _parser() -> Parser:
    options = GradeOptions()
    parser = Parser(description=str(__doc__).splitlines()[0])
    parser.add_argument("input", type=Path, metavar="IN.jsonl", help="one JSON object per line")
    parser.add_argument("output", type=Path, metavar="OUT.jsonl")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument(
        "--timeout-s", type=finite, default=10.0, help="processor time of one grade"
    )
    parser.add_argument(
        "--answer-format",
        default=options.answer_format,
        help="auto|boxed|hashes|tags|line; auto: a box, else what the row's prompt asks for",
    )
    parser.add_argument("--isolation", default=options.program_isolation, help="full|partial|none")
    return parser


@errors_in_one_line(hears_sigterm=True)
def main(argv: Sequence[str] | None = None) -> None:
    """Grade a file; the exit code says whether every row was graded."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    parser = _parser()
    given = parser.parse_args(argv)
    _check(parser, given)
    try:
        options = GradeOptions(answer_format=given.answer_format, program_isolation=given.isolation)
        pool = VerifierPool(given.workers, given.timeout_s, options=options)
        with pool:
            with _opened(given.input) as source:
                counts = _grade_file(pool, source, given.output)
            _print_summary(counts)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{given.input}: not a whole gzip file: {error}") from error
    except OSError as error:
        raise DataError(f"{error.filename or given.output}: {error.strerror or error}") from error
    sys.exit(1 if any(reason in UNGRADED for _, reason in counts) else 0)


def _check(parser: Parser, given: argparse.Namespace) -> None:
    """Refuse arguments that cannot be used, before anything is written."""
    for option, most in (("workers", 1024), ("timeout_s", 86400)):
        if not 0 < (value := getattr(given, option)) <= most:
            name = f"--{option.replace('_', '-')}"
            parser.error(f"{name} {value:g}: it must be above 0 and at most {most}")
    files = {"IN.jsonl": given.input, "OUT.jsonl": given.output}
    for name, path in files.items():
        if path and path.suffix.lower() in _OTHER_FORMS:
            parser.error(f"{path}: rows are JSON lines here; name a file .jsonl as {name}")
    for name, path in list(files.items())[1:]:
        if path and not path.parent.is_dir():
            parser.error(f"{path.parent}: no such folder; make it, or name another {name}")
    if given.input.exists() and not _is_readable(given.input):
        parser.error(f"{given.input}: is a folder, a pipe or a device; give a file of rows")
    taken: dict[str, str] = {}
    for name, path in files.items():
        first = taken.setdefault(os.path.realpath(path), name) if path else name
        if first != name:
            parser.error(f"{path}: the same file as {first}; name another {name}")


def _is_readable(path: Path) -> bool:
    """Return whether reading ends: the pipe of ``<(zcat x)`` has a writer, others may not."""
    return path.is_file() or (path.is_fifo() and path.parts[:2] in (("/", "dev"), ("/", "proc")))


def _opened(path: Path) -> _Source:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")


def _packed(file: BinaryIO, path: Path) -> AbstractContextManager[BinaryIO | gzip.GzipFile]:
    """Return what packs into ``file`` where the name says so; equal rows give equal bytes."""
    if path.suffix.lower() != ".gz":
        return nullcontext(file)
    return gzip.GzipFile("", "wb", fileobj=file, mtime=0)


def _grade_file(pool: VerifierPool, source: _Source, output: Path) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    # How much a packed file holds is known at its end.
    is_packed = isinstance(source, gzip.GzipFile)
    size = None if is_packed else os.fstat(source.fileno()).st_size
    # None: shown on a terminal only.
    bar = tqdm(total=size, unit="B", unit_scale=True, disable=None, desc="grading")
    fault, are_read = "", False
    with whole_file(output) as place, _packed(place, output) as file, bar:
        for row, verdict in _graded(pool, source):
            result = {**row.fields, **{name: getattr(verdict, name) for name in _ADDED}}
            result |= {"message": row.message} if row.item is None else {}
            file.write((write_json(result) + "\n").encode())
            counts[row.kind, verdict.reason] += 1
            bar.update(row.num_bytes)
            fault = fault or row.message
            are_read = are_read or row.is_object
        if fault and not are_read:
            raise DataError(f"{source.name}: no line is a JSON object; {fault}")
    return counts


def _graded(pool: VerifierPool, source: _Source) -> Iterator[tuple[GradeRow, Verdict]]:
    """Yield rows with their verdicts, in order; later rows are graded meanwhile."""
    waiting: deque[tuple[list[GradeRow], Future[list[Verdict]]]] = deque()
    lines = ((number, line) for number, line in enumerate(source, 1) if line.strip())
    while True:
        rows = [read_row(line, number) for number, line in islice(lines, _CHUNK_ROWS)]
        sound = [row for row in rows if row.item]
        ids = [str(row.fields.get("id", "")) for row in sound]
        if rows:
            waiting.append((rows, pool.submit([row.item for row in sound if row.item], ids)))
        while waiting and (not rows or len(waiting) >= _MAX_CHUNKS):
            done, future = waiting.popleft()
            verdicts = iter(future.result())
            yield from ((row, next(verdicts) if row.item else _BAD) for row in done)
        if not rows:
            return


def _print_summary(counts: Counter[tuple[str, str]]) -> None:
    for kind in sorted({kind for kind, _ in counts}):
        reasons = {reason: number for (each, reason), number in counts.items() if each == kind}
        total = sum(reasons.values())
        graded = total - sum(reasons.get(reason, 0) for reason in UNGRADED)
        listed = ", ".join(f"{name} {reasons[name]}" for name in sorted(reasons))
        share = (
            f"{reasons.get('correct', 0) / graded:.1%} of those graded" if graded else "none graded"
        )
        print(f"{kind}: {total} rows, {graded} graded, correct {share} ({listed})")
    if not counts:
        print("no rows")


if __name__ == "__main__":
    main()

"""Grade responses made elsewhere: ``main_grade.py IN.jsonl[.gz] OUT.jsonl[.gz]``.

A row holds ``id``, ``kind`` (maths, choice or program), ``response`` and ``answer``, or for a
program ``tests``; ``problem``, the problem's text, and ``prompt``, the conversation as a text or
turns, are optional. The output has the same rows in the same order with ``score``, ``reason``,
``extracted``, ``basis`` and ``ignored``. Exit code 0: all rows were graded; 1: some were not
(reason error or timeout); 2: a file cannot be used, and there is no output.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import logging
import os
import sys
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tqdm import tqdm

from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import DataError
from recipe.run.typed import finite
from recipe.run.whole_file import whole_file
from recipe.study.grade_rows import GradeRow, read_row
from recipe.verify.options import GradeOptions
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.schema import UNGRADED, Verdict

# Rows in the air: enough to keep the workers busy beside a slow grade, and little memory.
_CHUNK_ROWS = 32
_MAX_CHUNKS = 64
_ADDED = ("score", "reason", "extracted", "basis", "ignored")
_BAD = Verdict(0.0, "error")


def read_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; what cannot be used ends the program with a message."""
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
    given = parser.parse_args(argv)
    for option in ("workers", "timeout_s"):
        if getattr(given, option) <= 0:
            parser.error(f"--{option.replace('_', '-')} must be above 0")
    if given.output.exists() and given.input.exists() and given.output.samefile(given.input):
        parser.error(f"{given.output}: the same file as IN.jsonl; name another OUT.jsonl")
    return given


@errors_in_one_line(hears_sigterm=True)
def main(argv: Sequence[str] | None = None) -> None:
    """Grade a file; the exit code says whether every row was graded."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    given = read_arguments(argv)
    options = GradeOptions(answer_format=given.answer_format, program_isolation=given.isolation)
    try:
        with VerifierPool(given.workers, given.timeout_s, options=options) as pool:
            counts = grade_file(pool, given.input, given.output)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{given.input}: not a whole gzip file: {error}") from error
    for kind in sorted({kind for kind, _ in counts}):
        print(_summary(kind, {reason: n for (each, reason), n in counts.items() if each == kind}))
    if not counts:
        print("no rows")
    sys.exit(1 if any(reason in UNGRADED for _, reason in counts) else 0)


def grade_file(pool: VerifierPool, source: Path, target: Path) -> Counter[tuple[str, str]]:
    """Write the rows of a file with their verdicts; return how many have a kind and a reason.

    Raises:
        DataError: If no line is a JSON object; nothing is written then.
    """
    counts: Counter[tuple[str, str]] = Counter()
    fault, are_read = "", False
    with _opened(source) as lines, whole_file(target) as place, _packed(place, target) as file:
        # None: shown on a terminal only.
        for row, verdict in tqdm(_graded(pool, lines), unit=" rows", disable=None, desc="grading"):
            result = {**row.fields, **{name: getattr(verdict, name) for name in _ADDED}}
            result |= {"message": row.message} if row.item is None else {}
            file.write((json.dumps(result) + "\n").encode())
            counts[row.kind, verdict.reason] += 1
            fault = fault or row.message
            are_read = are_read or row.is_object
        if fault and not are_read:
            raise DataError(f"{source}: no line is a JSON object; {fault}")
    return counts


def _opened(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")


def _packed(file: Any, path: Path) -> Any:
    """Return what packs into ``file`` where the name says so; equal rows give equal bytes."""
    is_packed = path.suffix.lower() == ".gz"
    return gzip.GzipFile("", "wb", fileobj=file, mtime=0) if is_packed else nullcontext(file)


def _graded(pool: VerifierPool, lines: Iterable[bytes]) -> Iterator[tuple[GradeRow, Verdict]]:
    """Yield rows with their verdicts, in order; later rows are graded meanwhile."""
    waiting: deque[tuple[list[GradeRow], Future[list[Verdict]]]] = deque()
    rows = (read_row(line, number) for number, line in enumerate(lines, 1) if line.strip())
    while True:
        chunk = list(itertools.islice(rows, _CHUNK_ROWS))
        if chunk:
            sound = [(row.item, str(row.fields.get("id", ""))) for row in chunk if row.item]
            verdicts = pool.submit([item for item, _ in sound], [name for _, name in sound])
            waiting.append((chunk, verdicts))
        while waiting and (not chunk or len(waiting) >= _MAX_CHUNKS):
            done, future = waiting.popleft()
            found = iter(future.result())
            yield from ((row, next(found) if row.item else _BAD) for row in done)
        if not chunk:
            return


def _summary(kind: str, reasons: dict[str, int]) -> str:
    total = sum(reasons.values())
    graded = total - sum(reasons.get(reason, 0) for reason in UNGRADED)
    listed = ", ".join(f"{name} {reasons[name]}" for name in sorted(reasons))
    share = f"{reasons.get('correct', 0) / graded:.1%} of those graded" if graded else "none graded"
    return f"{kind}: {total} rows, {graded} graded, correct {share} ({listed})"

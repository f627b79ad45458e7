"""Grades responses made elsewhere: ``main_grade.py IN.jsonl[.gz] OUT.jsonl``.

A row holds ``id``, ``kind`` (maths, choice or program), ``response`` and ``answer``, or for a
program ``tests``; ``problem``, the problem's text, is optional. The output has the same rows in the
same order with ``score``, ``reason``, ``extracted``, ``basis`` and ``ignored``. Exit code 0: all
rows were judged; 1: some were not (reason error or timeout); 2: a file cannot be used, and there is
no output.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import sys
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any, NoReturn

from tqdm import tqdm

from recipe.hint.errors import HintError
from recipe.hint.schema import UNGRADED, Verdict
from recipe.hint.typed import finite
from recipe.hint.verify import GradeOptions, VerifierPool
from recipe.hint.verify.rows import BadRow, GradeRow, read_row
from recipe.hint.whole_file import whole_file

# Rows in the air: enough to keep the workers busy beside a slow grade, and little memory.
_CHUNK_ROWS = 32
_MAX_CHUNKS = 64


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line; argparse would print the usage before it."""
        self.exit(2, f"{self.prog}: {message}\n")


def _parser() -> _Parser:
    options = GradeOptions()
    parser = _Parser(description=__doc__.splitlines()[0])
    parser.add_argument("input", type=Path, metavar="IN.jsonl", help="one JSON object per line")
    parser.add_argument("output", type=Path, metavar="OUT.jsonl")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument(
        "--timeout-s", type=finite, default=10.0, help="processor time of one grade"
    )
    parser.add_argument("--audit", type=Path, metavar="FILE", help="second judge's disagreements")
    parser.add_argument(
        "--no-box", action="store_true", help="without a box, judge the last formula or line"
    )
    parser.add_argument("--isolation", default=options.program_isolation, help="full|partial|none")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Grade a file; the exit code says whether every row was judged."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    parser = _parser()
    given = parser.parse_args(argv)
    if not given.output.parent.is_dir():
        parser.error(f"{given.output.parent}: no such folder; make it, or name another OUT.jsonl")
    if given.output.exists() and given.input.exists() and given.output.samefile(given.input):
        parser.error(f"{given.output}: the same file as IN.jsonl; name another OUT.jsonl")
    try:
        options = GradeOptions(require_boxed=not given.no_box, program_isolation=given.isolation)
        pool = VerifierPool(given.workers, given.timeout_s, options=options, audit_path=given.audit)
        with pool, _opened(given.input) as source:
            counts = _grade_file(pool, source, given.output)
    except HintError as error:
        parser.error(str(error))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        parser.error(f"{given.input}: not a whole gzip file: {error}")
    except OSError as error:
        parser.error(f"{error.filename or given.output}: {error.strerror or error}")
    _print_summary(counts, pool, given.audit)
    sys.exit(1 if any(reason in UNGRADED for _, reason in counts) else 0)


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")


def _grade_file(pool: VerifierPool, source: IO[bytes], output: Path) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    # How much a packed file holds is known at its end.
    is_packed = isinstance(source, gzip.GzipFile)
    size = None if is_packed else os.fstat(source.fileno()).st_size
    # None: shown on a terminal only.
    bar = tqdm(total=size, unit="B", unit_scale=True, disable=None, desc="grading")
    with whole_file(output) as file, bar:
        for rows, verdicts in _graded(pool, source):
            for row, verdict in zip(rows, verdicts, strict=True):
                file.write((json.dumps(_result(row, verdict)) + "\n").encode())
                counts[row.kind, verdict.reason] += 1
                bar.update(row.num_bytes)
            bar.set_postfix(rows=sum(counts.values()))
    return counts


_Chunk = tuple[list[GradeRow | BadRow], "Future[list[Verdict]]"]


def _graded(
    pool: VerifierPool, source: IO[bytes]
) -> Iterator[tuple[list[GradeRow | BadRow], list[Verdict]]]:
    """Chunks of rows with their verdicts, in order; later chunks are graded meanwhile."""
    waiting: deque[_Chunk] = deque()
    for rows in _chunks(source):
        sound = [row for row in rows if isinstance(row, GradeRow)]
        items = [row.item for row in sound]
        waiting.append((rows, pool.submit(items, [row.id for row in sound])))
        if len(waiting) >= _MAX_CHUNKS:
            yield _settled(*waiting.popleft())
    while waiting:
        yield _settled(*waiting.popleft())


def _settled(
    rows: list[GradeRow | BadRow], future: Future[list[Verdict]]
) -> tuple[list[GradeRow | BadRow], list[Verdict]]:
    verdicts = iter(future.result())
    bad = Verdict(0.0, "error")
    return rows, [next(verdicts) if isinstance(row, GradeRow) else bad for row in rows]


def _chunks(source: IO[bytes]) -> Iterator[list[GradeRow | BadRow]]:
    rows: list[GradeRow | BadRow] = []
    for number, line in enumerate(source, 1):
        if line.strip():
            rows.append(read_row(line, number))
        if len(rows) == _CHUNK_ROWS:
            yield rows
            rows = []
    if rows:
        yield rows


def _result(row: GradeRow | BadRow, verdict: Verdict) -> dict[str, Any]:
    result = {
        **row.fields,
        "score": verdict.score,
        "reason": verdict.reason,
        "extracted": verdict.extracted,
        "basis": verdict.basis,
        "ignored": verdict.ignored,
    }
    return {**result, "message": row.message} if isinstance(row, BadRow) else result


def _print_summary(
    counts: Counter[tuple[str, str]], pool: VerifierPool, audit: Path | None
) -> None:
    for kind in sorted({kind for kind, _ in counts}):
        reasons = {reason: number for (each, reason), number in counts.items() if each == kind}
        total = sum(reasons.values())
        judged = total - sum(reasons.get(reason, 0) for reason in UNGRADED)
        listed = ", ".join(f"{name} {reasons[name]}" for name in sorted(reasons))
        share = (
            f"{reasons.get('correct', 0) / judged:.1%} of those judged" if judged else "none judged"
        )
        print(f"{kind}: {total} rows, {judged} judged, correct {share} ({listed})")
    if not counts:
        print("no rows")
    if audit is not None:
        print(f"audit: {pool.disagreements} disagreements, appended to {audit}")


if __name__ == "__main__":
    main()

"""Grade responses made elsewhere: ``hint grade IN.jsonl OUT.jsonl``.

A row has kind (maths, choice or program), response, and answer or tests; id, problem and prompt (a
text or turns) are optional. OUT has the rows with score, reason, extracted, basis and ignored. Exit
code 0: all were graded; 1: some were not (error or timeout); 2: a file is unusable, no output.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from tqdm import tqdm

from recipe.run.ending import Parser, errors_in_one_line
from recipe.run.typed import fault_of, finite, read_json
from recipe.run.whole_file import whole_file
from recipe.verify.choice import read_letter
from recipe.verify.golds import number_text
from recipe.verify.options import GradeOptions, Isolation
from recipe.verify.pool import VerifierPool
from recipe.verify.programs.tests import with_entry_point
from recipe.verify.schema import UNGRADED, AnswerFormat, Item, Verdict, read_prompt

_CHUNK_ROWS = 2048  # graded together: enough to keep all workers busy
_ADDED = ("score", "reason", "extracted", "basis", "ignored")


class _Row(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    response: str
    answer: str | int | float = ""
    kind: Literal["maths", "choice", "program"] = "maths"
    problem: str = ""
    prompt: Any = ""
    is_truncated: bool | None = None
    tests: str | list[str] = ""
    test_imports: str | list[str] = ""
    entry_point: str = ""


@errors_in_one_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Grade a file; the exit code says whether every row was graded."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    parser = Parser(description=__doc__)
    parser.add_argument("input", type=Path, metavar="IN.jsonl", help="one JSON object per line")
    parser.add_argument("output", type=Path, metavar="OUT.jsonl")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--timeout-s", type=finite, default=10.0, help="processor time of a grade")
    parser.add_argument("--answer-format", default="auto", choices=get_args(AnswerFormat))
    parser.add_argument(
        "--isolation", default=GradeOptions.program_isolation, choices=get_args(Isolation)
    )
    given = parser.parse_args(argv)
    options = GradeOptions(answer_format=given.answer_format, program_isolation=given.isolation)
    with VerifierPool(given.workers, given.timeout_s, options=options) as pool:
        counts = grade_file(pool, given.input, given.output)
    for kind, reasons in sorted(counts.items()):
        listed = ", ".join(f"{name} {reasons[name]}" for name in sorted(reasons))
        graded = sum(count for reason, count in reasons.items() if reason not in UNGRADED)
        share = f"{reasons['correct'] / (graded or 1):.1%}"
        total = reasons.total()
        print(f"{kind}: {total} rows, {graded} graded, {share} of these correct ({listed})")
    sys.exit(1 if any(UNGRADED & reasons.keys() for reasons in counts.values()) else 0)


def grade_file(pool: VerifierPool, source: Path, target: Path) -> dict[str, Counter[str]]:
    """Write the rows of a file with their verdicts; return by kind how many have a reason."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with source.open("rb") as lines, whole_file(target) as file:
        read = (_read(line, number) for number, line in enumerate(lines, 1) if line.strip())
        bar = iter(tqdm(read, unit=" rows", disable=None, desc="grading"))
        while rows := list(itertools.islice(bar, _CHUNK_ROWS)):
            sound = [(item, str(fields.get("id", ""))) for fields, item in rows if item]
            items, names = [item for item, _ in sound], [name for _, name in sound]
            verdicts = iter(pool.grade_many_blocking(items, names))
            for fields, item in rows:
                verdict = next(verdicts) if item else Verdict(0.0, "error")
                result = {**fields, **{name: getattr(verdict, name) for name in _ADDED}}
                file.write((json.dumps(result) + "\n").encode())
                counts[item.kind if item else "bad rows"][verdict.reason] += 1
    return counts


def _read(line: bytes, number: int) -> tuple[dict[str, Any], Item | None]:
    """Return what a line holds and what to grade of it; without, a ``message`` says why."""
    fields: dict[str, Any] = {}
    try:
        fields = dict(read_json(line))
        return fields, read_item(fields)
    except (ValueError, TypeError) as error:
        return {**fields, "message": f"line {number}: {' '.join(str(error).split())}"}, None


def read_item(fields: dict[str, Any]) -> Item:
    """Return what to grade of a row; ``ValueError`` where something is wrong or missing."""
    try:
        row = _Row.model_validate(fields)
    except ValidationError as error:
        raise ValueError(fault_of(error)) from error
    answer = number_text(row.answer)
    if row.tests:
        parts = [row.test_imports, row.tests]
        lines = [each for part in parts for each in ([part] if isinstance(part, str) else part)]
        answer = with_entry_point("\n".join(lines), row.entry_point)
    if not answer.strip() or bool(row.tests) and row.kind != "program":
        raise ValueError(f"kind={row.kind}: give the gold answer, or tests of a program")
    if row.kind == "choice" and not read_letter(answer):
        raise ValueError(f"answer={answer!r} must be one letter")
    problem, asked = read_prompt(row.prompt)
    truncated, problem = bool(row.is_truncated), row.problem or problem
    return Item(row.response, answer, truncated, row.kind, problem, asked=asked)

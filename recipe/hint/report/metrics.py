"""What a training run wrote down at each step: ``metrics.jsonl`` and other files of lines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recipe.hint.errors import DataError

# verl's names are val-core/SOURCE/acc/mean@N, N answers per problem.
_VALIDATION, _ACCURACY = "val-core/", "/acc/mean@"
_USED = "rollout_tokens|tokens|prompts|prompts_with_hint|zero_signal_after"
_READ = re.compile(rf"(hint/({_USED})|timing_s/step)$|{_VALIDATION}.*{_ACCURACY}")


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """All rows in order, as :func:`read_rows` gives them."""
    return list(read_rows(path))


def read_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file that a run grows; none when it is not there yet.

    A last line without its end, which a killed run leaves, is not a row. A number that a report
    reads must be a finite one; verl's other metrics may be ``nan`` where a run went wrong.

    Raises:
        DataError: If a whole line is not a JSON object with a step, or such a number is none.
    """
    path = Path(path)
    if not path.exists():
        return
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith("\n"):
                    break
                yield _row(path, number, line)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def accuracies(row: Mapping[str, Any]) -> dict[str, float]:
    """Mean accuracy per data source, in [0, 1]; empty for a step without validation."""
    return {
        name.removeprefix(_VALIDATION).split(_ACCURACY)[0]: value
        for name, value in sorted(row.items())
        if name.startswith(_VALIDATION) and _ACCURACY in name
    }


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: line {number} is not JSON ({error}); take it out") from error
    if not isinstance(row, dict):
        raise DataError(f"{path}: line {number} holds a {type(row).__name__}, expected an object")
    if not isinstance(row.get("step"), int):
        raise DataError(f"{path}: line {number} has no whole number `step`; take it out")
    for name, value in row.items():
        if _READ.match(name) and not is_number(value):
            raise DataError(
                f"{path}: line {number}: {name} is {value!r:.60}, expected a finite number; take"
                " the line out, or start the run again from the checkpoint before it"
            )
    return row


def is_number(value: Any) -> bool:
    """Whether a value of a JSON file is a finite number."""
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and math.isfinite(value)

"""What a training run wrote down at each step: ``metrics.jsonl`` and other files of lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recipe.hint.errors import DataError

# verl's names are val-core/SOURCE/acc/mean@N, N answers per problem.
_VALIDATION, _ACCURACY = "val-core/", "/acc/mean@"


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """All rows in order, as :func:`read_rows` gives them."""
    return list(read_rows(path))


def read_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file that a run grows; none when it is not there yet.

    A last line without its end, which a killed run leaves, is not a row.

    Raises:
        DataError: If a whole line is not a JSON object.
    """
    path = Path(path)
    if not path.exists():
        return
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith("\n"):
                break
            yield _row(path, number, line)


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
    except ValueError as error:
        raise DataError(f"{path}: line {number} is not JSON ({error}); take it out") from error
    if not isinstance(row, dict):
        raise DataError(f"{path}: line {number} holds a {type(row).__name__}, expected an object")
    return row

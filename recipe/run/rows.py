"""Read the files that a run grows, a JSON object with a step in each line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from recipe.run.errors import DataError

# verl's names are val-core/SOURCE/acc/mean@N, N responses per problem.
_VALIDATION, _ACCURACY = "val-core/", "/acc/mean@"


def read_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file that a run grows; none when it is not there yet.

    A last line without its end, which a killed run leaves, is not a row.
    """
    if not Path(path).exists():
        return
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.endswith("\n"):
                try:
                    row = json.loads(line)
                    int(row["step"])
                except (ValueError, TypeError, KeyError) as error:
                    raise DataError(
                        f"{path}: line {number} is no row ({error}); take it out"
                    ) from None
                yield row


def by_step(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for each step, in order; later values win."""
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["step"], {}).update(row)
    return [found[step] for step in sorted(found)]


def accuracies(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean accuracy per data source, in [0, 1]; none for a step without validation."""
    return {
        name.removeprefix(_VALIDATION).split(_ACCURACY)[0]: value
        for name, value in sorted(row.items())
        if name.startswith(_VALIDATION) and _ACCURACY in name
    }

"""Read the files that a run grows, a JSON object with a step in each line."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from recipe.run.errors import DataError

# verl's names are val-core/SOURCE/acc/mean@N, N responses per problem.
_VALIDATION, _ACCURACY = "val-core/", "/acc/mean@"
_USED = "rollout_tokens|tokens|prompts|prompts_with_hint|zero_signal_after"
_READ = re.compile(rf"(hint/({_USED})|timing_s/step)$|{_VALIDATION}.*{_ACCURACY}")


def read_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file that a run grows; none when it is not there yet.

    A last line without its end, which a killed run leaves, is not a row. A number that a report
    reads must be a finite one; verl's other metrics may be ``nan`` where a run went wrong.

    Raises:
        DataError: If a whole line is not a JSON object with a step, or such a number is not one.
    """
    path = Path(path)
    if not path.exists():
        return
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith("\n"):
                    break
                yield _row(f"{path}: line {number}", line)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def by_step(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for each step, in order; later values win."""
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["step"], {}).update(row)
    return [found[step] for step in sorted(found)]


def _row(place: str, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place} is not JSON ({error}); take it out") from error
    if not isinstance(row, dict):
        raise DataError(f"{place} holds a {type(row).__name__}, expected an object")
    if not isinstance(row.get("step"), int):
        raise DataError(f"{place} has no whole number `step`; take it out")
    for name, value in row.items():
        is_real = isinstance(value, int | float) and not isinstance(value, bool)
        if _READ.match(name) and not (is_real and abs(value) <= sys.float_info.max):
            raise DataError(
                f"{place}: {name} is {value!r:.60}, expected a finite number; take the line out, "
                f"or start the run again from the checkpoint before it"
            )
    return row


def accuracies(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean accuracy per data source, in [0, 1]; none for a step without validation."""
    return {
        name.removeprefix(_VALIDATION).split(_ACCURACY)[0]: value
        for name, value in sorted(row.items())
        if name.startswith(_VALIDATION) and _ACCURACY in name
    }

"""The folder of one run: where records, metrics, checkpoints and logs go.

The files that a run grows hold a JSON object with a step in each line.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from recipe.run.errors import DataError
from recipe.run.whole_file import append_lines, sync, whole_file, write_whole

METRICS_FILE = "hint_metrics.json"  # in a checkpoint: metrics of its step
# verl's names are val-core/SOURCE/acc/mean@N, N responses per problem.
_VALIDATION, _ACCURACY = "val-core/", "/acc/mean@"


class RunFolder:
    """Paths and append-only files of ``hint.run_dir``."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self.logs = self.root / "logs"
        self.records = self.root / "records.jsonl"
        self.metrics = self.root / "metrics.jsonl"
        self.samples = self.root / "samples.jsonl"
        self.console = self.logs / "console.log"

    def create(self) -> None:
        """Make the folders; an existing run's files stay."""
        self.logs.mkdir(parents=True, exist_ok=True)

    def append_metrics(self, step: int, metrics: dict[str, Any]) -> None:
        """Add one line for a step."""
        append_rows(self.metrics, [{"step": step} | plain(metrics)])

    def restore_metrics(self, step: int, checkpoint: Path) -> None:
        """Add the line of a step whose run ended between its checkpoint and its line."""
        path = checkpoint / METRICS_FILE
        metrics = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        rows = (row for row in read_rows(self.metrics) if row["step"] == step)
        if metrics and not any(metrics.keys() <= row.keys() for row in rows):
            self.append_metrics(step, metrics)

    def begin_after(self, step: int) -> None:
        """Drop records, metrics and samples of later steps: a resumed run makes those steps again.

        A run that starts over (``step`` 0) moves an earlier run's files aside instead.
        """
        for path in self._grown():
            if step == 0:
                os.replace(path, _free_name(path))
                continue
            # Line by line: the records of a long run do not fit the memory.
            with open(path, "rb") as file, whole_file(path) as kept:
                kept.writelines(line for line in file if _is_until(line, step))

    def settle(self) -> None:
        """Bring records, metrics and samples to the disk."""
        for path in self._grown():
            sync(path)

    def _grown(self) -> list[Path]:
        return [path for path in (self.records, self.metrics, self.samples) if path.exists()]

    def say(self, line: str) -> None:
        """Write a line for the console; the launcher shows this file as it grows."""
        with open(self.console, "a", encoding="utf-8") as file:
            file.write(line + "\n")


def keep_config(path: Path, text: str) -> None:
    """Write a run's settings; those of an earlier start that differ are kept beside them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and (before := path.read_text(encoding="utf-8")) != text:
        write_whole(_free_name(path), before)  # not moved: a kill must leave settings
    write_whole(path, text)


def plain(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return metrics as JSON values, without verl's own (``_...``), which it does not log."""

    def value(each: Any) -> Any:
        each = each.item() if hasattr(each, "item") else each
        return each if isinstance(each, int | float | str | bool | None) else str(each)

    return {name: value(each) for name, each in metrics.items() if not name.startswith("_")}


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


def append_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Add one line per row, which is written when the call returns."""
    append_lines(path, (json.dumps(row).encode() for row in rows))


def _free_name(path: Path) -> Path:
    numbered = (path.with_name(f"{path.stem}.{n}{path.suffix}") for n in itertools.count(1))
    return next(name for name in numbered if not name.exists())


def _is_until(line: bytes, step: int) -> bool:
    """Return whether a row is of a step up to this one; what a kill left of a row is not."""
    try:
        return line.endswith(b"\n") and json.loads(line)["step"] <= step
    except (ValueError, TypeError, KeyError):
        return False

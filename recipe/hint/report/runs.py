"""Reading a run's folder; nothing is counted here that the run did not write down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from recipe.hint.errors import DataError
from recipe.hint.report.metrics import accuracies, read_metrics


@dataclass(frozen=True)
class RunResult:
    """What one run wrote: its settings and one row of metrics per step."""

    name: str
    method: str
    rows: list[dict[str, Any]]
    val_files: list[str] = field(default_factory=list)
    val_max_samples: int = -1

    def accuracy(self, source: str) -> list[tuple[int, float]]:
        """(step, accuracy without hints in [0, 1]) at each validation of a data source."""
        found = [(row["step"], accuracies(row)) for row in self.rows]
        return [(step, shares[source]) for step, shares in found if source in shares]

    def series(self, metric: str) -> list[tuple[int, float]]:
        """(step, value) of one metric."""
        return [(row["step"], row[metric]) for row in self.rows if metric in row]

    def number(self, row: Mapping[str, Any], metric: str) -> float:
        """A metric that each training step has.

        Raises:
            DataError: If this one does not have it.
        """
        if metric not in row:
            raise DataError(f"the run {self.name} has no {metric} at step {row['step']}")
        return row[metric]

    def num_problems(self, source: str) -> int:
        """Problems of a data source in the run's validation files.

        Raises:
            DataError: If a file is not there any more, none holds the source, or the run used a
                part of them only.
        """
        if self.val_max_samples > 0:
            raise DataError(
                f"the run {self.name} validated on data.val_max_samples={self.val_max_samples} "
                f"problems, which of them is not on record; give --problems"
            )
        count = sum(_count_rows(path, source) for path in self.val_files)
        if not count:
            raise DataError(
                f"the run {self.name} has no problem of {source!r} in its data.val_files "
                f"({', '.join(self.val_files) or 'none'}); give --problems or another --source"
            )
        return count


def read_run(folder: str | Path) -> RunResult:
    """One run's folder.

    Raises:
        DataError: If it is not the folder of a run.
    """
    folder = Path(folder)
    metrics, config = folder / "metrics.jsonl", folder / "config.yaml"
    for path in (metrics, config):
        if not path.exists():
            raise DataError(f"{folder} is not the folder of a run: {path.name} is missing")
    return RunResult(folder.name, rows=read_metrics(metrics), **_settings(config))


def check_source(runs: Sequence[RunResult], source: str) -> None:
    """Refuse a data source that no run validated on; runs without any validation have none.

    Raises:
        DataError: Naming those that there are.
    """
    known = {name for run in runs for row in run.rows for name in accuracies(row)}
    if known and source not in known:
        raise DataError(
            f"no run validated on {source!r}; give --source with one of {', '.join(sorted(known))}"
        )


def _settings(path: Path) -> dict[str, Any]:
    """What a report needs of a run's ``config.yaml``."""
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        what = " ".join(str(error).split())[:200]
        raise DataError(f"{path} cannot be read as YAML: {what}") from error
    match settings:
        case {"trainer": {"method": str() as method}, "data": dict() as data}:
            files, cap = data.get("val_files") or [], data.get("val_max_samples") or -1
            files = [files] if isinstance(files, str) else files
            is_list = isinstance(files, list) and all(isinstance(each, str) for each in files)
            if is_list and isinstance(cap, int):
                return {"method": method, "val_files": files, "val_max_samples": cap}
    raise DataError(
        f"{path} is not the config of a run: expected trainer.method, data.val_files and "
        "data.val_max_samples; copy it from the run again"
    )


def _count_rows(path: str, source: str) -> int:
    try:
        column = pq.read_table(path, columns=["data_source"]).column("data_source")
    except (OSError, KeyError, pa.ArrowException) as error:
        what = " ".join(str(error).split())
        raise DataError(
            f"the problems behind an accuracy cannot be counted: {path}: {what}; give --problems"
        ) from error
    return column.to_pylist().count(source)

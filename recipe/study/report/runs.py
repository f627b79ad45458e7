"""Read a training run's folder; nothing is counted here that the run did not write down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from recipe.run.errors import DataError, one_line
from recipe.run.rows import accuracies, by_step, read_rows
from recipe.run.typed import read_yaml
from recipe.study.campaign import run_name

# The metrics that make up what a step sampled.
TOKENS = ("hint/rollout_tokens", "hint/tokens")
# The mean difference of a token's probability between the trainer and vLLM.
VLLM_DIFFERENCE = "training/rollout_probs_diff_mean"


@dataclass
class RunResult:
    """What one run wrote.

    Attributes:
        rows: Its metrics, one row per step and validation.
        config: Its settings, as ``config.yaml`` has them.
    """

    name: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)

    def setting(self, name: str) -> Any:
        """Return a setting by its dotted name, or nothing."""
        node: Any = self.config
        for part in name.split("."):
            node = node.get(part) if isinstance(node, Mapping) else None
        return node

    @property
    def method(self) -> str:
        """The name of the method, for headings."""
        return str(self.setting("trainer.method") or "unknown method")

    @property
    def arm(self) -> str:
        """The run's arm in its campaign, else its method."""
        return self.name.rpartition("/")[0] or self.method

    def number(self, row: Mapping[str, Any], metric: str) -> float:
        """Return a metric that each training step has.

        Raises:
            DataError: If this one does not have it.
        """
        if metric not in row:
            raise DataError(
                f"the run {self.name} has no {metric} at step {row['step']}; take the run out, or "
                f"copy its metrics.jsonl again"
            )
        return row[metric]

    def num_problems(self, source: str) -> int:
        """Count the problems of a data source in the run's validation files.

        Raises:
            DataError: If a file is not there any more, none holds the source, or the run used a
                part of them only.
        """
        files = self.setting("data.val_files") or []
        files = [files] if isinstance(files, str) else files
        if (cap := self.setting("data.val_max_samples") or -1) > 0:
            raise DataError(
                f"the run {self.name} validated on data.val_max_samples={cap} problems, "
                f"which of them is not on record; give --problems"
            )
        count = 0
        for path in files:
            try:
                column = pq.read_table(path, columns=["data_source"]).column("data_source")
            except (OSError, KeyError, pa.ArrowException) as error:
                raise DataError(
                    f"the problems behind an accuracy cannot be counted: {path}: {error}; give "
                    f"--problems"
                ) from error
            count += column.to_pylist().count(source)
        if not count:
            raise DataError(
                f"the run {self.name} has no problem of {source!r} in its data.val_files "
                f"({', '.join(files) or 'none'}); give --problems or another --source"
            )
        return count


def read_run(folder: str | Path) -> RunResult:
    """Read one run's folder.

    Raises:
        DataError: If it is not the folder of a run, or a file of it is damaged.
    """
    folder = Path(folder)
    metrics, config = folder / "metrics.jsonl", folder / "config.yaml"
    for path in (metrics, config):
        if not path.exists():
            raise DataError(
                f"{folder} is not the folder of a run: {path.name} is missing; take the run out, "
                f"or copy the file again"
            )
    rows = by_step(read_rows(metrics))
    try:
        settings = read_yaml(config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        what = one_line(error, 200)
        raise DataError(f"{config} cannot be read as YAML: {what}") from error
    match settings:
        case {"trainer": {"method": str()}, "data": dict() as data}:
            files, cap = data.get("val_files") or [], data.get("val_max_samples") or -1
            files = [files] if isinstance(files, str) else files
            is_list = isinstance(files, list) and all(isinstance(each, str) for each in files)
            if is_list and isinstance(cap, int):
                return RunResult(run_name(folder), rows, settings)
    raise DataError(
        f"{config} is not the config of a run: expected trainer.method, data.val_files and "
        "data.val_max_samples; copy it from the run again"
    )


def accuracy_curve(rows: Iterable[Mapping[str, Any]], source: str) -> list[tuple[int, float]]:
    """Return (step, accuracy without hints in [0, 1]) at each validation of a data source."""
    found = [(int(row["step"]), accuracies(row)) for row in rows]
    return [(step, shares[source]) for step, shares in found if source in shares]

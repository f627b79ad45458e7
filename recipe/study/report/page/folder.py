"""Read a run's folder for the page: finished, in progress, or damaged in places."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from recipe.hint.schema import MAX_LEVELS
from recipe.run.errors import DataError
from recipe.run.rows import by_step
from recipe.run.typed import read_yaml
from recipe.study.campaign import run_name
from recipe.study.report.page.visits import Visit, read_sample, read_visit, text
from recipe.study.report.runs import RunResult

_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
_NO_HINT, LEVEL = "hint/used_no_hint", "hint/used_level_"
MAX_LINE_BYTES = 4_000_000  # a longer one is damaged: a record has some kB, a sample 32 KiB


@dataclass
class PageRun(RunResult):
    """What one run's folder holds; its rows have finite numbers only.

    Attributes:
        damaged: Lines that were skipped, by file.
        machine: ``machine.json``; empty for a run that wrote none.
        updated_s: When the newest line was written, in seconds since 1970.
        failure: Why the run ended, from ``logs/fatal.json``.
    """

    visits: list[Visit] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)
    damaged: Counter[str] = field(default_factory=Counter)
    machine: dict[str, Any] = field(default_factory=dict)
    updated_s: float = 0.0
    failure: str = ""

    @property
    def training(self) -> list[dict[str, float]]:
        """The rows of training steps."""
        return [row for row in self.rows if "hint/prompts" in row]

    @property
    def levels(self) -> set[int]:
        """The hint levels that prompts were trained under, 0 without a hint."""
        names = {name for row in self.training for name in row}
        found = {int(name.removeprefix(LEVEL)) for name in names if is_level(name)}
        return found | ({0} if _NO_HINT in names else set())

    @property
    def last_step(self) -> int:
        """The newest training step."""
        return max((int(row["step"]) for row in self.training), default=0)


def is_level(name: str) -> bool:
    """Return whether a metric counts the prompts of a hint level that there may be."""
    level = name.removeprefix(LEVEL)
    is_number = name.startswith(LEVEL) and level.isascii() and level.isdecimal()
    return is_number and len(level) <= 3 and 0 < int(level) <= MAX_LEVELS


def level_share(row: Mapping[str, float], level: int) -> float:
    """Return the share of a step's prompts that were trained under a level, 0 without a hint."""
    return row.get(f"{LEVEL}{level}" if level else _NO_HINT, 0.0) / max(row["hint/prompts"], 1.0)


def read_folder(folder: str | Path, *, with_visits: bool = True) -> PageRun:
    """Read what is there; a line that cannot be read is skipped and counted.

    A last line without its end, which a run in progress or a killed one leaves, is not damage.

    Args:
        folder: The run's.
        with_visits: Read records and samples too, by far the most of it.

    Raises:
        DataError: If the folder holds neither metrics nor records.
    """
    folder = Path(folder)
    if not any((folder / name).is_file() for name in ("metrics.jsonl", "records.jsonl")):
        raise DataError(
            f"{folder} is not the folder of a run: metrics.jsonl and records.jsonl are missing"
        )
    run = PageRun(text(run_name(folder)))
    rows = list(_rows(folder / "metrics.jsonl", _metrics_row, run))
    run.rows = by_step(rows)
    if repeated := sum("hint/prompts" in row for row in rows) - len(run.training):
        run.damaged["metrics.jsonl"] += repeated
    if with_visits:
        run.visits = list(_rows(folder / "records.jsonl", read_visit, run))
        run.samples = list(_rows(folder / "samples.jsonl", read_sample, run))
    run.config = _mapping(folder / "config.yaml", read_yaml, run)
    run.machine = _mapping(folder / "machine.json", json.loads, run)
    fatal = _mapping(folder / "logs" / "fatal.json", json.loads, run)
    run.failure = str(next(iter(fatal.values()), ""))[:2000]
    return run


def _rows(path: Path, read: Callable[[Any], Any], run: PageRun) -> Iterator[Any]:
    if not path.is_file():
        return
    run.updated_s = max(run.updated_s, path.stat().st_mtime)
    with open(path, "rb") as file:
        while line := file.readline(MAX_LINE_BYTES):
            if not line.endswith(b"\n"):
                if len(line) < MAX_LINE_BYTES:
                    return
                while line and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES)
                run.damaged[path.name] += 1
                continue
            try:
                yield read(json.loads(line))
            except _DAMAGE:
                run.damaged[path.name] += 1


def _metrics_row(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite numbers; verl writes ``nan`` where a run went wrong."""
    numbers = {
        text(name): float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and abs(value) < 1e300 and math.isfinite(value)
    }
    return numbers | {"step": int(row["step"])}


def _mapping(path: Path, parse: Callable[[str], Any], run: PageRun) -> dict[str, Any]:
    """Return the values as JSON in UTF-8 has them: a date is a text, what holds itself is none."""
    if not path.is_file():
        return {}
    try:
        value = parse(path.read_text(encoding="utf-8", errors="replace"))
        whole = json.dumps(value, default=str, ensure_ascii=False)
        value = json.loads(whole.encode("utf-8", "replace"))
    except (*_DAMAGE, yaml.YAMLError):
        value = None
    if isinstance(value, dict):
        return value
    run.damaged[path.name] += 1
    return {}

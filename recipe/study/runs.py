"""Read what a run left in its folder, finished, at work or killed; all that tells of runs does."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from recipe.run.errors import DataError, reading
from recipe.run.run_folder import accuracies, by_step, read_rows
from recipe.run.typed import read_yaml

RUN_FILE = "campaign.json"  # in the folder of a campaign's run: what it is made of
TOKENS = ("hint/rollout_tokens", "hint/tokens")  # what a step sampled
TRAINED = "perf/total_num_tokens"  # what it trained, prompts included
SECONDS = "timing_s/step"
_NO_HINT, _LEVEL = "hint/used_no_hint", "hint/used_level_"


@dataclass
class Run:
    """One run, as far as it went.

    ``rows`` are its metrics, one row for each step, with finite numbers; ``failure`` says why it
    ended; ``kept`` is what a campaign keeps of it when it is finished (``campaign_results``).
    """

    name: str
    folder: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    failure: str = ""
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def training(self) -> list[dict[str, Any]]:
        """The rows of training steps."""
        return [row for row in self.rows if "hint/prompts" in row]

    @property
    def last_step(self) -> int:
        """The newest training step."""
        return max((row["step"] for row in self.training), default=0)

    @property
    def levels(self) -> set[int]:
        """The hint levels that prompts were trained under, 0 without a hint."""
        names = {name for row in self.training for name in row}
        found = {int(name.removeprefix(_LEVEL)) for name in names if name.startswith(_LEVEL)}
        return found | ({0} if _NO_HINT in names else set())

    def curve(self, source: str) -> dict[int, float]:
        """Return step -> accuracy without hints, in [0, 1], of a data source."""
        found = {row["step"]: accuracies(row) for row in self.rows}
        return {step: shares[source] for step, shares in found.items() if source in shares}

    def tokens(self, last_step: float = math.inf, names: Sequence[str] = TOKENS) -> float:
        """Return the tokens that training sampled up to a step, hints included; NaN if unknown."""
        rows = (row for row in self.training if row["step"] <= last_step)
        return sum(row.get(name, math.nan) for row in rows for name in names)

    def area(self, source: str) -> float | None:
        """Return the mean height of the curve over the steps; ``None`` without two validations."""
        steps_V, shares_V = [*self.curve(source)], [*self.curve(source).values()]
        if len(steps_V) < 2:
            return None
        return float(np.trapezoid(shares_V, steps_V)) / (steps_V[-1] - steps_V[0])

    def minutes(self) -> float | None:
        """Return the minutes of all steps; ``None`` if one, restored after a kill, has no time."""
        seconds = [row[SECONDS] for row in self.training if SECONDS in row]
        return sum(seconds) / 60 if len(seconds) == len(self.training) else None


def read_run(folder: str | Path) -> Run:
    """Read a run's folder.

    Raises:
        DataError: If it is none, or a line of its metrics cannot be read.
    """
    folder = Path(folder)
    if not any((folder / name).is_file() for name in ("metrics.jsonl", "records.jsonl")):
        raise DataError(f"{folder} is not the folder of a run: it has no metrics.jsonl")
    place = folder.resolve()
    is_of_campaign = (place / RUN_FILE).exists()
    rows = [  # verl writes ``nan`` where a run went wrong
        {k: float(v) for k, v in row.items() if isinstance(v, int | float) and abs(v) < 1e300}
        | {"step": row["step"]}
        for row in read_rows(folder / "metrics.jsonl")
    ]
    files: dict[str, dict[str, Any]] = {}
    readers = {"config.yaml": read_yaml, "machine.json": json.loads, "logs/fatal.json": json.loads}
    for name, read in readers.items():
        if (path := folder / name).is_file():
            with reading(path):
                files[name] = {**read(path.read_text("utf-8"))}
    return Run(
        f"{place.parent.name}/{place.name}" if is_of_campaign else place.name,
        folder,
        by_step(rows),
        files.get("config.yaml", {}),
        files.get("machine.json", {}),
        str(next(iter(files.get("logs/fatal.json", {}).values()), ""))[:2000],
    )


def level_share(row: Mapping[str, float], level: int) -> float:
    """Return the share of a step's prompts that were trained under a level, 0 without a hint."""
    return row.get(f"{_LEVEL}{level}" if level else _NO_HINT, 0.0) / max(row["hint/prompts"], 1.0)

"""What a run left, to be compared with a run that nothing happened to."""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

STEPS, PROMPTS, GROUP = 3, 8, 4
# Clocks, memory, and names that are drawn anew in each run.
_NOT_COMPARED = ("seconds", "timing", "perf/", "memory", "_s/", "uid", "throughput")


def differences(folder: Path, straight: Path) -> list[str]:
    """Say in which parts two runs of ``sync`` differ, from the coarse to the last bit."""
    found = []
    ours, theirs = _records(folder), _records(straight)
    for part in ("planned_level", "accepted_level", "accuracies"):
        if {k: r[part] for k, r in ours.items()} != {k: r[part] for k, r in theirs.items()}:
            found.append(part)
    if _strip(list(ours.values())) != _strip(list(theirs.values())):
        found.append("records")
    for mine, other in zip(_metrics(folder), _metrics(straight), strict=True):
        # A line that came back from its checkpoint has what was known at the save.
        names = other.keys() if "critic/score/mean" in mine else mine.keys() & other.keys()
        if any(mine.get(name) != other[name] for name in names):
            found.append("metrics")
    last = f"checkpoints/global_step_{STEPS}"
    if not _same_state(folder / last, straight / last):
        found.append("tracker")
    for name in ("model", "optim"):
        file = f"{last}/actor/{name}_world_size_1_rank_0.pt"
        if not _equal(_load(folder / file), _load(straight / file)):
            found.append("weights" if name == "model" else "optimizer")
    return found


def losses(folder: Path, straight: Path | None) -> list[str]:
    """Say what is lost or doubled: steps, prompts of a step, problems of the run.

    ``straight`` is given for `sync`: in the asynchronous modes a step may have other problems.
    """
    found = []
    rows = _lines(folder / "records.jsonl")
    by_step = collections.Counter(row["step"] for row in rows)
    if by_step != {step: PROMPTS for step in range(1, STEPS + 1)}:
        found.append(f"prompts by step {dict(by_step)}")
    if len({row["uid"] for row in rows}) != len(rows):
        found.append("a uid twice")
    if any(len(row["rows"]) != GROUP for row in rows):
        found.append("a group that is not whole")
    steps = [row["step"] for row in _lines(folder / "metrics.jsonl") if "hint/prompts" in row]
    if steps != list(range(1, STEPS + 1)):
        found.append(f"metrics of steps {steps}")
    if straight is not None and set(_records(folder)) != set(_records(straight)):
        found.append("other problems")
    return found


def _records(folder: Path) -> dict[tuple[int, str], dict[str, Any]]:
    rows = _lines(folder / "records.jsonl")
    return {
        (row["step"], row["problem_id"]): row
        for row in sorted(rows, key=lambda row: (row["step"], row["problem_id"]))
    }


def _metrics(folder: Path) -> list[Any]:
    rows: dict[int, Any] = {}
    for row in _lines(folder / "metrics.jsonl"):
        # A run that goes on validates before it does.
        kept = {name: value for name, value in row.items() if not name.startswith("val-")}
        rows.setdefault(row["step"], {}).update(row if row["step"] == 0 else kept)
    return [_strip(row) for row in rows.values()]


def _strip(value: Any) -> Any:
    if isinstance(value, list):
        return [_strip(each) for each in value]
    if isinstance(value, dict):
        return {
            name: _strip(each)
            for name, each in value.items()
            if not any(part in name for part in _NOT_COMPARED)
        }
    return value


def _same_state(ours: Path, theirs: Path) -> bool:
    columns = []
    for folder in (ours, theirs):
        with np.load(folder / "hint_state.npz") as state:
            order = np.argsort(state["ids"])
            columns.append({n: state[n][order] for n in state if n != "version"})
    return all(np.array_equal(columns[0][name], columns[1][name]) for name in columns[0])


def _load(path: Path) -> Any:
    return torch.load(path, weights_only=False)


def _equal(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(_equal(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list | tuple):
        return len(ours) == len(theirs) and all(map(_equal, ours, theirs))
    if hasattr(ours, "to_local"):
        ours, theirs = ours.to_local(), theirs.to_local()
    if isinstance(ours, torch.Tensor):
        return torch.equal(ours, theirs)
    return bool(ours == theirs)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

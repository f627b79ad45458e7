"""What a run left, to be compared with a run that nothing happened to."""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recipe.hint.reward_tracker import saved_ids

PROMPTS, GROUP = 8, 4
# Clocks, memory, and names that are drawn anew in each run.
_NOT_COMPARED = ("seconds", "timing", "perf/", "memory", "_s/", "uid", "throughput")


def last_checkpoint(folder: Path) -> int:
    """Return the step of the newest whole checkpoint; 0 without one."""
    marks = folder.glob("checkpoints/global_step_*/COMPLETE")
    return max((int(mark.parent.name.removeprefix("global_step_")) for mark in marks), default=0)


def differences(folder: Path, straight: Path, last: int) -> dict[int, list[str]]:
    """Say in which steps up to ``last``, and in which parts, two runs of ``sync`` differ."""
    found: dict[int, list[str]] = {}
    ours, theirs = _records(folder), _records(straight)
    our_metrics, their_metrics = _metrics(folder), _metrics(straight)
    for step in range(1, last + 1):
        mine, other = our_metrics.get(step, {}), their_metrics[step]
        # A line that came back from its checkpoint has what was known at the save.
        names = other.keys() if "critic/score/mean" in mine else mine.keys() & other.keys()
        parts = {
            "records": ours.get(step) != theirs[step],
            "metrics": any(mine.get(name) != other[name] for name in names),
            **_states(folder, straight, f"checkpoints/global_step_{step}"),
        }
        if any(parts.values()):
            found[step] = [part for part, is_different in parts.items() if is_different]
    return found


def losses(folder: Path, last: int) -> dict[int, list[str]]:
    """Say what is lost or doubled in each step up to ``last``."""
    found: dict[int, list[str]] = {}
    rows = [row for row in _lines(folder / "records.jsonl") if row["step"] <= last]
    uids = collections.Counter(row["uid"] for row in rows)
    lines = _lines(folder / "metrics.jsonl")
    for step in range(1, last + 1):
        here = [row for row in rows if row["step"] == step]
        parts = []
        if len(here) != PROMPTS:
            parts.append(f"{len(here)} prompts")
        if any(uids[row["uid"]] > 1 for row in here):
            parts.append("a uid twice")
        if any(len(row["rows"]) != GROUP for row in here):
            parts.append("a group that is not whole")
        if (n := sum(row["step"] == step and "hint/prompts" in row for row in lines)) != 1:
            parts.append(f"{n} lines of metrics")
        if parts:
            found[step] = parts
    return found


def _states(folder: Path, straight: Path, checkpoint: str) -> dict[str, bool]:
    """Say of each part of a checkpoint whether it differs; nothing of one that was deleted."""
    ours, theirs = folder / checkpoint, straight / checkpoint
    if not (ours / "COMPLETE").exists():
        return {}
    file = "actor/{}_world_size_1_rank_0.pt"
    found = {"tracker": not _same_state(ours, theirs)}
    for part, name in (("weights", "model"), ("optimizer", "optim")):
        one, other = (_load(each / file.format(name)) for each in (ours, theirs))
        found[part] = not _equal(one, other)
    return found


def _records(folder: Path) -> dict[int, dict[str, Any]]:
    """Return what is compared of the records, by step and problem."""
    found: dict[int, dict[str, Any]] = {}
    for row in _lines(folder / "records.jsonl"):
        found.setdefault(row["step"], {})[row["problem_id"]] = _strip(row)
    return found


def _metrics(folder: Path) -> dict[int, Any]:
    rows: dict[int, Any] = {}
    for row in _lines(folder / "metrics.jsonl"):
        # A run that goes on validates before it does.
        kept = {name: value for name, value in row.items() if not name.startswith("val-")}
        rows.setdefault(row["step"], {}).update(_strip(kept))
    return rows


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
            ids = saved_ids(state)
            order = np.argsort(ids)
            columns.append({n: state[n][order] for n in state if n not in ("version", "ids")})
            columns[-1]["ids"] = sorted(ids)
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

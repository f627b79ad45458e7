"""Whether two runs sampled the same: prompt by prompt, from their records."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.hint.errors import DataError
from recipe.hint.report.runs import read_rows

_MEAN, _MOST = (f"training/rollout_probs_diff_{which}" for which in ("mean", "max"))
_TIMES = ("seconds", "hint_seconds")


@dataclass(frozen=True)
class Sameness:
    """Prompts of both runs; of these, the ones whose rounds are equal; the first step of others."""

    num_prompts: int
    num_equal: int
    first_step: int | None


def compare_records(first: Path, second: Path) -> Sameness:
    """Compare levels, tokens and verdicts of each round of each prompt; its times do not count.

    Args:
        first: Folder of a training run.
        second: Folder of another, of as many steps or fewer.

    Raises:
        DataError: If a folder has no records, or the runs have no prompt in common.
    """
    theirs, ours = _rounds(first), _rounds(second)
    common = sorted(set(theirs) & set(ours))
    if not common:
        raise DataError(f"{first} and {second} have no step and problem in common")
    other = [key for key in common if theirs[key] != ours[key]]
    return Sameness(len(common), len(common) - len(other), other[0][0] if other else None)


def vllm_difference(folder: Path) -> tuple[float, float]:
    """Return the mean and the largest difference of a token's probability to vLLM's."""
    rows = [row for row in read_rows(folder / "metrics.jsonl") if _MEAN in row]
    if not rows:
        raise DataError(f"{folder}/metrics.jsonl has no {_MEAN}")
    return sum(row[_MEAN] for row in rows) / len(rows), max(row[_MOST] for row in rows)


def _rounds(folder: Path) -> dict[tuple[int, str], Any]:
    path = folder / "records.jsonl"
    if not path.exists():
        raise DataError(f"{path} is not there; give the folder of a training run")
    return {
        (row["step"], row["problem_id"]): [
            {name: value for name, value in each.items() if name not in _TIMES}
            for each in row["rounds"]
        ]
        for row in read_rows(path)
    }

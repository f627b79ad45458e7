"""Decide whether two runs sampled the same: prompt by prompt, from their records."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from recipe.run.errors import DataError
from recipe.run.rows import read_rows
from recipe.study.report.runs import VLLM_DIFFERENCE

_MEAN, _MOST = VLLM_DIFFERENCE, "training/rollout_probs_diff_max"
_TIMES = ("seconds", "hint_seconds")


@dataclass(frozen=True)
class Sameness:
    """Prompts of the steps that both runs have; the equal ones; the first step with others.

    A prompt that only one of them has does not count as equal. ``num_steps`` are the steps
    compared, of ``of_steps`` that either run has.
    """

    num_prompts: int
    num_equal: int
    first_step: int | None
    num_steps: int
    of_steps: int


def compare_records(first: Path, second: Path) -> Sameness:
    """Compare levels, tokens and verdicts of each round of each prompt; its times do not count.

    Args:
        first: Folder of a training run.
        second: Folder of another, of as many steps or fewer.

    Raises:
        DataError: If a folder has no records, or damaged ones, or the runs have no step in common.
    """
    theirs, ours = _rounds(first), _rounds(second)
    steps = [{step for step, _ in each} for each in (theirs, ours)]
    shared = steps[0] & steps[1]
    if not shared:
        raise DataError(
            f"{first} and {second} have no step in common; give two runs of the same steps"
        )
    keys = sorted(key for key in theirs.keys() | ours.keys() if key[0] in shared)
    other = [key for key in keys if theirs.get(key) != ours.get(key)]
    return Sameness(
        *(len(keys), len(keys) - len(other), other[0][0] if other else None),
        *(len(shared), len(steps[0] | steps[1])),
    )


def vllm_difference(folder: Path) -> tuple[float, float]:
    """Return the mean and the largest difference of a token's probability to vLLM's.

    Raises:
        DataError: If the run has no such numbers.
    """
    rows = [row for row in read_rows(folder / "metrics.jsonl") if _MEAN in row and _MOST in row]
    if not rows:
        raise DataError(
            f"{folder}/metrics.jsonl has no {_MEAN} and {_MOST}; give the folder of a training run"
        )
    try:
        means, mosts = ([float(row[name]) for row in rows] for name in (_MEAN, _MOST))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{folder}/metrics.jsonl: {_MEAN} or {_MOST} is not a number: {error!r:.80}; take the "
            f"line out"
        ) from error
    return sum(means) / len(means), max(mosts)


def _rounds(folder: Path) -> dict[tuple[int, str], list[str]]:
    path = folder / "records.jsonl"
    if not path.exists():
        raise DataError(f"{path} is not there; give the folder of a training run")
    found: dict[tuple[int, str], list[str]] = {}
    for row in read_rows(path):
        try:
            rounds = [
                {name: value for name, value in each.items() if name not in _TIMES}
                for each in row["rounds"]
            ]
            # A problem may come twice in a step.
            key = int(row["step"]), str(row["problem_id"])
            found.setdefault(key, []).append(json.dumps(rounds, sort_keys=True))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{path} holds a line that is not a record: {error!r}") from error
    return {key: sorted(rounds) for key, rounds in found.items()}

"""What the steps of a benchmark are, which problems they sample, and what their tokens became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recipe.hint.record import PromptRecord
from recipe.run.errors import ConfigError
from recipe.study.bench.settings import BenchSettings

CALIBRATION = "calibration"
# In the run's folder: one row per step.
ROWS_FILE = "bench.jsonl"


@dataclass(frozen=True, slots=True)
class Slot:
    """One step: its arm (or calibration) and its round, from 1."""

    arm: str
    round: int


def slots_of(bench: BenchSettings) -> list[Slot]:
    """Return the steps of the run, in order: the calibration, then round by round."""
    first = [Slot(CALIBRATION, number) for number in range(1, bench.calibration + 1)]
    rounds = range(bench.calibration + 1, bench.calibration + bench.warmup + bench.steps + 1)
    return first + [Slot(arm, number) for number in rounds for arm in bench.arms]


def compose_batches(
    solved: Mapping[int, bool], size: int, num_batches: int, share: float
) -> list[list[int]]:
    """Return batches with a ``share`` of problems that the calibration did not solve.

    Args:
        solved: Per row of the data, whether some response was right.
        size: Problems in a batch, P.
        num_batches: How many batches, without a problem in common.
        share: Of unsolved problems, in [0, 1]; negative: as the data gives them.

    Raises:
        ConfigError: If the calibration did not find enough problems of one kind.
    """
    rows = list(solved)
    if share < 0:
        counts = [(size, rows)]
    else:
        num_hard = round(share * size)
        hard = [row for row in rows if not solved[row]]
        easy = [row for row in rows if solved[row]]
        counts = [(num_hard, hard), (size - num_hard, easy)]
    if any(len(pool) < count * num_batches for count, pool in counts):
        found = sum(solved.values())
        raise ConfigError(
            f"bench.unresolved={share}: {num_batches} batches of {size} problems cannot be made "
            f"from the calibration, which solved {found} of {len(solved)}; raise "
            "bench.calibration, or choose another share or other data"
        )
    return [
        [row for count, pool in counts for row in pool[place * count : (place + 1) * count]]
        for place in range(num_batches)
    ]


def token_counts(records: Sequence[PromptRecord]) -> dict[str, float]:
    """Return a step's prompts, those unresolved at level 0, and tokens by what became of them.

    ``level0`` counts the prompts whose search began without a hint.
    """
    at_zero = [record for record in records if record.levels[0] == 0]
    sampled = sum(each.tokens for record in records for each in record.rounds)
    accepted = sum(record.trained_tokens for record in records)
    return {
        "prompts": len(records),
        "level0": len(at_zero),
        "unresolved": sum(not any(each.rounds[0].accuracies) for each in at_zero),
        "accepted_tokens": accepted,
        "discarded_tokens": sampled - accepted,
        "hint_tokens": sum(record.hint_tokens for record in records),
    }

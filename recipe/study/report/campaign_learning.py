"""A campaign's validations during training, at equal steps and at equal tokens."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence

import numpy as np

from recipe.study.report.campaign import CampaignResult
from recipe.study.report.campaign_run import SeedResult
from recipe.study.report.runs import TOKENS, accuracy_curve
from recipe.study.tables import markdown, percent

_HALF = 0.5


def learning_table(result: CampaignResult, source: str) -> list[str]:
    """Return the mean over seeds at each validation, at equal tokens, and when it was a half."""
    curves = {
        arm: [dict(accuracy_curve(run.training.rows, source)) for run in seeds.values()]
        for arm, seeds in result.seeds.items()
    }
    steps = sorted({step for group in curves.values() for curve in group for step in curve})
    rows, reference = [], result.campaign.compared_with
    references = result.seeds.get(reference, {})
    for arm, group in curves.items():
        runs = result.seeds[arm]
        columns = [[curve.get(step) for curve in group] for step in steps]
        columns.append(
            [_at_tokens(run, references.get(seed), source) for seed, run in runs.items()]
        )
        halves = [_half(run, source) for run in runs.values()]
        reached = [each for each in halves if each]
        half = "-"
        if reached:
            at = statistics.fmean(step for step, _, _ in reached)
            tokens = statistics.fmean(tokens for _, tokens, _ in reached)
            minutes = [each[2] for each in reached if each[2] is not None]
            is_complete = all(run.steps_with_tokens() for run in runs.values())
            spent = f", {tokens / 1000:.0f}k tokens" if is_complete else ""
            if is_complete and len(minutes) == len(reached):
                spent += f", {statistics.fmean(minutes):.1f} min"
            half = f"step {at:.0f}{spent} ({len(reached)} of {len(halves)})"
        rows.append([arm, *map(mean_cell, columns), half])
    head = ["arm", *(f"step {step}" for step in steps), f"at {reference}'s tokens"]
    return markdown([*head, "50 % at (seeds)"], rows)


def mean_cell(values: Sequence[float | None], shown: Callable[[float], str] = percent) -> str:
    """Return the mean of what is known, with the number of seeds where some are not."""
    known = [each for each in values if each is not None]
    part = f" ({len(known)})" if len(known) < len(values) else ""
    return f"{shown(statistics.fmean(known))}{part}" if known else "-"


def _at_tokens(run: SeedResult, other: SeedResult | None, source: str) -> float | None:
    """Return the accuracy when as many tokens were sampled as by another run; if that is known."""
    curve = accuracy_curve(run.training.rows, source)
    rows = sorted(run.training.training, key=lambda row: row["step"])
    spent = itertools.accumulate(sum(row.get(name, 0.0) for name in TOKENS) for row in rows)
    tokens_at = {row["step"]: tokens for row, tokens in zip(rows, spent, strict=True)}
    points = [(tokens_at.get(step, 0.0), value) for step, value in curve]
    if other is None or not (points and run.steps_with_tokens() and other.steps_with_tokens()):
        return None
    tokens = min(other.tokens(), run.tokens())
    tokens_V, accuracies_V = zip(*points, strict=True)
    is_covered = tokens_V[0] <= tokens <= tokens_V[-1]
    return float(np.interp(tokens, tokens_V, accuracies_V)) if is_covered else None


def _half(run: SeedResult, source: str) -> tuple[int, float, float | None] | None:
    """Return step, tokens and minutes at the first validation of at least a half."""
    curve = accuracy_curve(run.training.rows, source)
    step = next((step for step, value in curve if value >= _HALF), None)
    return None if step is None else (step, run.tokens(step), run.minutes(step))

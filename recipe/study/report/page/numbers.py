"""The numbers that matter of an arm: tiles where it is alone, else a row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recipe.study.report.page.arms import Arm
from recipe.study.report.page.charts import CURVES, accuracy_line, points_of
from recipe.study.report.runs import TOKENS

_DISCARDED, _SECONDS = "hint/rollout_tokens_discarded", "timing_s/step"


@dataclass(frozen=True)
class Number:
    """A number as it is shown.

    Attributes:
        trend: ``right`` for a change to the better, ``wrong`` for one to the worse.
    """

    title: str
    value: str = "-"
    change: str = ""
    note: str = ""
    trend: str = ""


def numbers_of(arm: Arm, sources: Sequence[str]) -> list[Number]:
    """Return the same numbers of each arm, means over its seeds; ``-`` where it has none."""
    return [
        *(_accuracy(arm, source) for source in sources),
        _quarters(arm, "Informative groups", "Informative groups, share"),
        _quarters(arm, "Trained under a hint", "Prompts trained under a hint, share"),
        _tokens(arm),
        _minutes(arm),
    ]


def _accuracy(arm: Arm, source: str) -> Number:
    title, line = f"Accuracy, {source}", accuracy_line(arm, source)
    if not line.means:
        return Number(title)
    last = f"{100 * line.means[-1]:.1f} %"
    if len(line.means) == 1:
        return Number(title, last, note=f"at step {line.steps[0]}")
    change = 100 * (line.means[-1] - line.means[0])
    trend = "" if abs(change) < 0.05 else "right" if change > 0 else "wrong"
    return Number(title, last, f"{change:+.1f} points", f"since step {line.steps[0]}", trend)


def _quarters(arm: Arm, title: str, curve: str) -> Number:
    """Return the means over the first and the last quarter of the steps."""
    firsts, lasts = [], []
    for points in points_of(arm, CURVES[curve]):
        values = list(points.values())
        size = max(1, len(values) // 4)
        firsts += values[:size]
        lasts += values[-size:]
    if not any(firsts + lasts):
        return Number(title)
    first, last = (100 * sum(each) / len(each) for each in (firsts, lasts))
    return Number(title, f"{first:.0f} → {last:.0f} %", note="first → last quarter")


def _tokens(arm: Arm) -> Number:
    sums = [sum(row.get(name, 0.0) for row in run.rows for name in TOKENS) for run in arm.runs]
    if not (total := sum(sums)):
        return Number("Tokens sampled")
    discarded = sum(row.get(_DISCARDED, 0.0) for run in arm.runs for row in run.rows)
    mean = total / len(arm.runs)
    shown = f"{mean / 1e6:.2f} M" if mean >= 1e6 else f"{mean / 1e3:.0f} k"
    return Number("Tokens sampled", shown, note=f"{100 * discarded / total:.0f} % not trained on")


def _minutes(arm: Arm) -> Number:
    times = [row[_SECONDS] for run in arm.runs for row in run.rows if _SECONDS in row]
    if not times:
        return Number("Minutes of steps")
    minutes = sum(times) / 60 / len(arm.runs)
    return Number(
        "Minutes of steps", f"{minutes:.1f}", note=f"{sum(times) / len(times):.1f} s a step"
    )

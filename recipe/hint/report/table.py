"""Runs side by side, one line each."""

from __future__ import annotations

from collections.abc import Sequence

from recipe.hint.evaluation.estimators import wilson_interval
from recipe.hint.report.runs import RunResult, check_source

_TOKENS = ("rollout_tokens", "tokens")
_HEAD = "| run | method | steps | accuracy | 95 % | tokens | minutes |"


def table(runs: Sequence[RunResult], source: str, num_problems: int | None = None) -> list[str]:
    """Markdown lines: the last validation, the tokens sampled and the minutes of all steps.

    Args:
        runs: Finished runs.
        source: Data source of the accuracy.
        num_problems: Problems behind one accuracy, counted in the runs' validation files when not
            given. The interval counts them, not the samples: those of one problem are not
            independent, and metrics do not say how they differ (the wider, safe choice).

    Raises:
        DataError: If the problems are not given and cannot be counted, or no run validated on the
            source.
    """
    check_source(runs, source)
    lines = [_HEAD, "|---|---|---|---|---|---|---|"]
    for run in runs:
        points = run.accuracy(source)
        steps = [row for row in run.rows if "timing_s/step" in row]
        tokens = sum(run.number(row, f"hint/{name}") for row in steps for name in _TOKENS)
        minutes = sum(row["timing_s/step"] for row in steps) / 60
        shown, interval = "-", "-"
        if points:
            low, high = wilson_interval(points[-1][1], num_problems or run.num_problems(source))
            shown = f"{100 * points[-1][1]:.1f} %"
            interval = f"{100 * low:.1f} - {100 * high:.1f}"
        lines.append(
            f"| {run.name} | {run.method} | {len(steps)} | {shown} | {interval} "
            f"| {tokens / 1000:.0f}k | {minutes:.1f} |"
        )
    return lines

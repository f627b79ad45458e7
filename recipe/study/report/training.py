"""Training runs side by side: a table with a line each, and one figure."""

from __future__ import annotations

import io
import itertools
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipe.run.errors import DataError
from recipe.run.rows import accuracies
from recipe.run.whole_file import write_whole
from recipe.study.estimators import wilson_interval
from recipe.study.report.runs import TOKENS, RunResult, accuracy_curve

_COLOURS = ("#6b6b6b", "#1b6ca8", "#d9822b", "#5b8c5a", "#8e5ea2", "#c0504d")
_NO_SIGNAL = "hint/zero_signal_after"
_WINDOW = 8  # steps that the share of prompts with signal is averaged over


def training_table(
    runs: Sequence[RunResult], source: str, num_problems: int | None = None
) -> list[str]:
    """Return Markdown lines: the last validation, the tokens sampled and the minutes of all steps.

    Args:
        runs: Finished runs.
        source: Data source of the accuracy.
        num_problems: Problems behind one accuracy, counted in the runs' validation files when not
            given. The interval counts them, not the responses: those to one problem are not
            independent, and metrics do not say how they differ (the wider, safe choice).

    Raises:
        DataError: If the problems are not given and cannot be counted, or no run validated on the
            source.
    """
    _check_source(runs, source)
    lines = ["| run | method | steps | accuracy | 95 % | tokens | minutes |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for run in runs:
        points = accuracy_curve(run.rows, source)
        steps = [row for row in run.rows if "hint/prompts" in row]
        tokens = sum(run.number(row, name) for row in steps for name in TOKENS)
        seconds = [row["timing_s/step"] for row in steps if "timing_s/step" in row]
        # A line that was restored after a kill has no time.
        minutes = f"{sum(seconds) / 60:.1f}" if len(seconds) == len(steps) else "-"
        shown, interval = "-", "-"
        if points:
            low, high = wilson_interval(points[-1][1], num_problems or run.num_problems(source))
            shown = f"{100 * points[-1][1]:.1f} %"
            interval = f"{100 * low:.1f} - {100 * high:.1f}"
        lines.append(
            f"| {run.name} | {run.method} | {len(steps)} | {shown} | {interval} "
            f"| {tokens / 1000:.0f}k | {minutes} |"
        )
    return lines


def draw_learning(runs: Sequence[RunResult], source: str, path: Path) -> None:
    """Draw accuracy without hints, and prompts with signal, over the steps into an SVG file.

    Thin lines are runs, thick ones the mean of an arm (of a method, outside a campaign) over the
    steps that all its runs have.
    The same runs give the same file.

    Args:
        runs: Finished runs, any number per method.
        source: Data source of the accuracy, such as ``tiny/hard``.
        path: Where the figure goes.

    Raises:
        DataError: If no run validated on the source, or matplotlib is not installed.
        OSError: If the file cannot be written.
    """
    _check_source(runs, source)
    # An arm of another campaign may have the same name, and never met these problems.
    runs = [run for run in runs if accuracy_curve(run.rows, source)] or list(runs)
    try:
        import matplotlib
    except ImportError:
        raise DataError("a figure needs matplotlib: install it, or leave --figure out") from None
    matplotlib.use("svg")
    # Nothing random, and text as text instead of the outlines of its letters.
    matplotlib.rcParams.update({"svg.hashsalt": "hint", "svg.fonttype": "none"})
    matplotlib.rcParams["font.sans-serif"] = ["DejaVu Sans"]
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.0, 3.4))
    _panel(left, [(run.arm, accuracy_curve(run.rows, source)) for run in runs])
    left.set(xlabel="step", ylabel="accuracy without hints", ylim=(-0.02, 1.0), title=source)
    left.legend(frameon=False, loc="upper left")
    _panel(right, [(run.arm, _signal(run)) for run in runs])
    right.set(xlabel="step", ylabel="share of prompts with signal", ylim=(0, 1.0))
    for axes in (left, right):
        axes.locator_params(nbins=5)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    svg = io.StringIO()
    figure.savefig(svg, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    pyplot.close(figure)
    # A path on a line of its own, in hundredths of a point: a third of the size.
    text = re.sub(r' d="[^"]*"', lambda found: " " + " ".join(found[0].split()), svg.getvalue())
    text = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", text)
    write_whole(path, text)


def _panel(axes: Any, lines: Sequence[tuple[str, list[tuple[int, float]]]]) -> None:
    by_arm = defaultdict(list)
    for arm, points in lines:
        by_arm[arm].append(dict(points))
    colour = dict(zip(sorted(by_arm), itertools.cycle(_COLOURS), strict=False))
    for arm, points in lines:
        steps, values = [step for step, _ in points], [value for _, value in points]
        axes.plot(steps, values, color=colour[arm], alpha=0.35, linewidth=1)
    for arm, group in sorted(by_arm.items()):
        steps = sorted(set.intersection(*map(set, group)))
        means = [sum(values[step] for values in group) / len(group) for step in steps]
        axes.plot(steps, means, color=colour[arm], linewidth=2.2, label=arm)


def _signal(run: RunResult) -> list[tuple[int, float]]:
    """Return the share of prompts with signal, as a moving mean of ``_WINDOW`` steps."""
    rows = [row for row in run.rows if _NO_SIGNAL in row]
    shares = [1 - row[_NO_SIGNAL] for row in rows]
    windows = [shares[max(0, at - _WINDOW + 1) : at + 1] for at in range(len(shares))]
    means = [sum(window) / len(window) for window in windows]
    return [(row["step"], mean) for row, mean in zip(rows, means, strict=True)]


def _check_source(runs: Sequence[RunResult], source: str) -> None:
    """Refuse a data source that no run validated on; runs without any validation have none."""
    known = {name for run in runs for row in run.rows for name in accuracies(row)}
    if known and source not in known:
        raise DataError(
            f"no run validated on {source!r}; give --source with one of {', '.join(sorted(known))}"
        )

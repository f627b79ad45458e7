"""One figure: accuracy without hints, and groups with signal, over the steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from recipe.hint.report.runs import RunResult, check_source

_COLOURS = {"sage": "#1b6ca8", "sage-light": "#d9822b", "grpo": "#6b6b6b", "fixed": "#5b8c5a"}
_WINDOW = 8  # steps that the share of groups with signal is averaged over


def draw_learning(runs: Sequence[RunResult], source: str, path: Path) -> None:
    """Write an SVG with two panels; thin lines are runs, thick ones the mean of a method.

    Args:
        runs: Finished runs, any number per method.
        source: Data source of the accuracy, such as ``tiny/hard``.
        path: Where the figure goes.

    Raises:
        DataError: If no run validated on the source.
        OSError: If the file cannot be written.
    """
    check_source(runs, source)
    import matplotlib

    matplotlib.use("svg")
    # No date and no random ids: the same runs give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "hint"
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.0, 3.4))
    _panel(left, {run.name: (run.method, run.accuracy(source)) for run in runs})
    left.set(xlabel="step", ylabel="accuracy without hints", ylim=(-0.02, 1.0), title=source)
    signal = {run.name: (run.method, _smooth(_signal(run))) for run in runs}
    _panel(right, signal)
    right.set(xlabel="step", ylabel="share of groups with signal", ylim=(0, 1.0))
    left.legend(frameon=False, loc="upper left")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot.close(figure)


def _panel(axes, lines) -> None:  # noqa: ANN001 - matplotlib is imported late
    by_method = defaultdict(list)
    for method, points in lines.values():
        by_method[method].append(points)
        steps, values = [step for step, _ in points], [value for _, value in points]
        axes.plot(steps, values, color=_COLOURS.get(method), alpha=0.35, linewidth=1)
    for method, group in sorted(by_method.items()):
        steps = sorted(set.intersection(*({step for step, _ in points} for points in group)))
        means = [sum(dict(points)[step] for points in group) / len(group) for step in steps]
        axes.plot(steps, means, color=_COLOURS.get(method), linewidth=2.2, label=method)


def _signal(run: RunResult) -> list[tuple[int, float]]:
    return [(step, 1 - value) for step, value in run.series("hint/zero_signal_after")]


def _smooth(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Each value replaced by the mean of the last ``_WINDOW`` up to it."""
    values = [value for _, value in points]
    windows = [values[max(0, at - _WINDOW + 1) : at + 1] for at in range(len(values))]
    means = [sum(window) / len(window) for window in windows]
    return [(step, mean) for (step, _), mean in zip(points, means, strict=True)]

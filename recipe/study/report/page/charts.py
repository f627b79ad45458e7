"""The page's charts, as Plotly figures: one line per arm, a band over its seeds."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import plotly.graph_objects as go

from recipe.run.errors import DataError
from recipe.run.rows import accuracies
from recipe.study.estimators import t_quantile, wilson_interval
from recipe.study.report.page.arms import Arm
from recipe.study.report.page.folder import PageRun, level_share
from recipe.study.report.runs import VLLM_DIFFERENCE, accuracy_curve

Row = dict[str, float]
AXES = ("step", "tokens sampled (thousands)", "minutes of training")
# After Okabe and Ito, told apart by most people; in tones that show on white and on black.
COLOURS = ("#2f86cf", "#de6b1f", "#12a37f", "#cc79a7", "#d99a00", "#8c76c9", "#5fb4e0", "#888888")
DASHES = {"solid": "solid", "dash": "dashed", "dot": "dotted", "dashdot": "double"}  # and in CSS
MAX_STACKED = 8  # arms that have charts of their own
_MAX_POINTS = 600
_HEIGHT = 300

CURVES: dict[str, Callable[[Row], float]] = {
    "Mean reward of what trains": lambda row: row["critic/score/mean"],
    "Informative groups, share": lambda row: 1 - row["hint/zero_signal_after"],
    "Prompts trained under a hint, share": lambda row: (
        row["hint/prompts_with_hint"] / row["hint/prompts"]
    ),
    "Problems never solved, hints included, %": lambda row: row["reward_tracking/pct_never_solved"],
    "Tokens sampled per step": lambda row: row["hint/rollout_tokens"] + row["hint/tokens"],
    "Seconds per step": lambda row: row["timing_s/step"],
    "Entropy, nats": lambda row: row["actor/entropy"],
    "Response length, tokens": lambda row: row["response_length/mean"],
    "Gradient norm": lambda row: row["actor/grad_norm"],
    "Prompts with a hint that holds the answer, share": lambda row: (
        row["hint/leaked"] / row["hint/prompts"]
    ),
    "First turn right, share of conversations": lambda row: row["turns/acc_t1"],
    "Last turn right, share of conversations": lambda row: row["turns/acc_t2"],
    "Wrong at first and right at last, share": lambda row: row["turns/wrong_to_right"],
    "Right at first and wrong at last, share": lambda row: row["turns/right_to_wrong"],
    "Same answer in both turns, share": lambda row: row["turns/unchanged"],
    "Feedback that holds the answer, share": lambda row: row["turns/leaks"],
    "Verdicts not graded, share": lambda row: row["verify/ungraded"],
    "Trainer against vLLM, mean difference of a token's probability": lambda row: row[
        VLLM_DIFFERENCE
    ],
}
_OF_HINTS = {
    "Prompts trained under a hint, share",
    "Prompts with a hint that holds the answer, share",
}
TOKENS: dict[str, Callable[[Row], float]] = {
    "trained on": lambda row: row["hint/rollout_tokens"] - row["hint/rollout_tokens_discarded"],
    "sampled, not trained on": lambda row: row["hint/rollout_tokens_discarded"],
    "writing hints": lambda row: row["hint/tokens"],
}
_PHASES = {
    "rollout": "gen",
    "log-probs": "old_log_prob",
    "update": "update_actor",
    "weights to vLLM": "update_weights",
    "advantages": "adv",
    "checkpoint": "save_checkpoint",
    "reference": "ref",
    "values": "values",
    "critic update": "update_critic",
}


@dataclass(frozen=True)
class Chart:
    """A figure with its place on the page.

    Attributes:
        by_axis: Per name of an x axis, the x values of each trace; empty for a fixed axis.
    """

    section: str
    title: str
    figure: go.Figure
    by_axis: dict[str, list[list[float]]] = field(default_factory=dict)


def all_charts(arms: Sequence[Arm]) -> list[Chart]:
    """Return every chart that some run has numbers for, other than zero throughout."""
    has_hints = any(run.levels - {0} for arm in arms for run in arm.runs)
    lines: dict[str, list[_Line]] = {}
    for title, read in (
        ("Accuracy", accuracy_curve), ("Accuracy of the first turn", _first_turns_of)
    ):  # fmt: skip
        for source in sources_of([run for arm in arms for run in arm.runs]):
            lines[f"{title}: {source}"] = [accuracy_line(arm, source, read) for arm in arms]
    for title, value in CURVES.items():
        if has_hints or title not in _OF_HINTS:
            lines[title] = [_mean_line(arm, points_of(arm, value)) for arm in arms]
            if title.endswith(", share"):
                lines[title] = [_as_shares(line, 0) for line in lines[title]]
    charts = [
        _line_chart(title, arms, each)
        for title, each in lines.items()
        if any(any(line.high) for line in each)
    ]
    levels = sorted({level for arm in arms for run in arm.runs for level in run.levels})
    shares: dict[str, Callable[[Row], float]] = {
        f"level {level}" if level else "no hint": functools.partial(level_share, level=level)
        for level in levels
    }
    phases: dict[str, Callable[[Row], float]] = {
        name: functools.partial(_seconds, key=key) for name, key in _PHASES.items()
    } | {"other": _other_seconds}
    charts += _totals("Tokens of all steps, thousands per seed", arms, TOKENS, 1e-3)
    charts += _totals("Minutes of all steps, per seed", arms, phases, 1 / 60)
    for arm in arms if len(arms) <= MAX_STACKED else ():
        name = "" if len(arms) == 1 else f": {arm.name}"
        if has_hints:
            title = f"Prompts by the hint level that trains, share{name}"
            charts += _stack("levels", title, arm, shares)
        charts += _stack("costs", f"Seconds of a step{name}", arm, phases)
    return charts


@dataclass(frozen=True)
class _Line:
    """Means over seeds with a 95 % interval; ``half`` is 0 where a single run has a value."""

    steps: list[int]
    means: list[float]
    low: list[float]
    high: list[float]
    by_axis: dict[str, list[float]]


def _mean_line(arm: Arm, points: Sequence[dict[int, float]]) -> _Line:
    """Average over the seeds, at steps that all of them have; the interval is Student's."""
    there = [set(each) for each in points if each]
    steps = _thin(sorted(set.intersection(*there))) if there else []
    means, low, high = [], [], []
    for step in steps:
        values = [each[step] for each in points if step in each]
        mean = sum(values) / len(values)
        half = 0.0
        if len(values) > 1:
            variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
            half = t_quantile(len(values) - 1) * math.sqrt(variance / len(values))
        means.append(_short(mean))
        low.append(_short(mean - half))
        high.append(_short(mean + half))
    return _Line(steps, means, low, high, _axes(arm, steps))


def _axes(arm: Arm, steps: Sequence[int]) -> dict[str, list[float]]:
    """Return, per axis, where the steps lie on it: the mean over the arm's seeds."""
    found: list[list[float]] = [list(steps)]
    for keys, factor in (
        (("hint/rollout_tokens", "hint/tokens"), 1e-3),
        (("timing_s/step",), 1 / 60),
    ):
        sums = [_cumulated(run, keys) for run in arm.runs]
        found.append([])
        for step in steps:
            there = [each[step] for each in sums if step in each] or [0.0]
            found[-1].append(_short(factor * sum(there) / len(there)))
    return dict(zip(AXES, found, strict=True))


def _cumulated(run: PageRun, keys: Sequence[str]) -> dict[int, float]:
    total, sums = 0.0, {}
    for row in run.rows:
        total += sum(row.get(key, 0.0) for key in keys)
        sums[int(row["step"])] = total
    return sums


def points_of(arm: Arm, value: Callable[[Row], float]) -> list[dict[int, float]]:
    """Return step -> value of each run; steps without the metric are left out."""
    found = []
    for run in arm.runs:
        points = {}
        for row in run.training:
            try:
                points[int(row["step"])] = value(row)
            except (KeyError, ZeroDivisionError):
                continue
        found.append(points)
    return found


def _first_turns_of(rows: Sequence[Row], source: str) -> list[tuple[int, float]]:
    """Return (step, accuracy of the first turn) at each validation that had several turns."""
    name = f"val-turns/{source}/acc_t1"
    return [(int(row["step"]), row[name]) for row in rows if name in row]


def sources_of(runs: Sequence[PageRun]) -> list[str]:
    """Return the data sources that some run validated on."""
    return sorted({source for run in runs for row in run.rows for source in accuracies(row)})


def accuracy_line(
    arm: Arm,
    source: str,
    read: Callable[[Sequence[Row], str], list[tuple[int, float]]] = accuracy_curve,
) -> _Line:
    """Return an arm's accuracy without hints at its validations."""
    line = _mean_line(arm, [dict(read(run.rows, source)) for run in arm.runs])
    return _as_shares(line, _num_problems(arm.runs[0], source))


def _as_shares(line: _Line, num_problems: int) -> _Line:
    """Keep the intervals of shares in [0, 1], and no narrower than the problems allow."""
    means = [min(max(mean, 0.0), 1.0) for mean in line.means]
    ends = [wilson_interval(each, num_problems) if num_problems else (each, each) for each in means]
    low = [max(0.0, min(own, end)) for own, (end, _) in zip(line.low, ends, strict=True)]
    high = [min(1.0, max(own, end)) for own, (_, end) in zip(line.high, ends, strict=True)]
    return replace(line, low=low, high=high)


def _num_problems(run: PageRun, source: str) -> int:
    """Count the problems behind an accuracy; 0 when the files are not there any more."""
    try:
        return run.num_problems(source)
    except (DataError, TypeError, ValueError):
        return 0


def _line_chart(title: str, arms: Sequence[Arm], lines: Sequence[_Line]) -> Chart:
    """Draw a line per arm; the page has one legend for all charts, where there are several."""
    figure = go.Figure()
    by_axis: dict[str, list[list[float]]] = {name: [] for name in AXES}
    for number, (arm, line) in enumerate(zip(arms, lines, strict=True)):
        name = escape(arm.name) if len(arms) > 1 else ""
        colour, dash = style_of(number)
        shared: dict[str, Any] = {"x": line.steps, "legendgroup": str(number), "name": name}
        if line.low != line.high:
            edge = shared | {"x": line.steps + line.steps[::-1], "y": line.high + line.low[::-1]}
            figure.add_scatter(
                **edge, fill="toself", fillcolor=colour, opacity=0.18, mode="none",
                hoverinfo="skip",
            )  # fmt: skip
            for axis in AXES:
                by_axis[axis].append(line.by_axis[axis] + line.by_axis[axis][::-1])
        is_sparse = len(line.steps) < 40
        figure.add_scatter(
            **shared, y=line.means, mode="lines+markers" if is_sparse else "lines",
            line={"color": colour, "width": 2, "dash": dash},
            marker={"size": 5}, hovertemplate=f"%{{y:.4g}}<extra>{name}</extra>",
        )  # fmt: skip
        for axis in AXES:
            by_axis[axis].append(line.by_axis[axis])
    _lay_out(figure, "step")
    figure.update_layout(
        showlegend=False, hovermode="x unified" if len(arms) <= MAX_STACKED else "closest"
    )
    if "ccuracy" in title:
        figure.update_yaxes(range=[-0.02, 1.02], tickformat=".0%")
    return Chart("curves", title, figure, by_axis)


def style_of(number: int) -> tuple[str, str]:
    """Return the colour and dash of an arm's lines."""
    return COLOURS[number % len(COLOURS)], [*DASHES][number // len(COLOURS) % len(DASHES)]


def _stack(
    section: str, title: str, arm: Arm, parts: dict[str, Callable[[Row], float]]
) -> list[Chart]:
    """Return the arm's stacked areas over the steps, the mean over its seeds; none without data."""
    figure = go.Figure()
    for number, (name, value) in enumerate(parts.items()):
        line = _mean_line(arm, points_of(arm, value))
        if any(line.means):
            figure.add_scatter(
                x=line.steps, y=line.means, name=name, stackgroup="all", mode="lines",
                line={"width": 0.5, "color": _part_colour(number, name)},
                hovertemplate="%{y:.3g}<extra>" + name + "</extra>",
            )  # fmt: skip
    _lay_out(figure, "step")
    return [Chart(section, title, figure)] if figure.data else []


def _totals(
    title: str, arms: Sequence[Arm], parts: dict[str, Callable[[Row], float]], factor: float
) -> list[Chart]:
    """Return one bar per arm: sums over all steps, the mean over its seeds."""
    figure = go.Figure()
    for number, (name, value) in enumerate(parts.items()):
        sums = [
            factor * sum(sum(each.values()) for each in points_of(arm, value)) / len(arm.runs)
            for arm in arms
        ]
        if any(sums):
            figure.add_bar(
                y=[escape(arm.name) for arm in arms], x=[_short(each) for each in sums],
                name=name, orientation="h", marker={"color": _part_colour(number, name)},
                hovertemplate="%{x:.4g}<extra>" + name + "</extra>",
            )  # fmt: skip
    _lay_out(figure, "")
    figure.update_layout(barmode="stack", hovermode="closest", height=150 + 34 * len(arms))
    figure.update_yaxes(autorange="reversed", automargin=True, showticklabels=len(arms) > 1)
    return [Chart("costs", title, figure)] if figure.data else []


def _part_colour(number: int, name: str) -> str:
    return COLOURS[-1] if name == "other" else COLOURS[number % (len(COLOURS) - 1)]


def _lay_out(figure: go.Figure, x_title: str) -> None:
    """Set what all charts share; colours of text and grid are the page's."""
    figure.update_layout(
        template="none", height=_HEIGHT, margin={"l": 48, "r": 34, "t": 10, "b": 44},
        font={"family": "system-ui, sans-serif"},
        # In the right margin, where it covers nothing.
        modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)"},
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", hovermode="x unified",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        showlegend=True,
    )  # fmt: skip
    figure.update_xaxes(title={"text": x_title, "standoff": 8}, zeroline=False)
    figure.update_yaxes(zeroline=False, rangemode="tozero")


def _seconds(row: Row, key: str) -> float:
    return row.get(f"timing_s/{key}", 0.0)


def _other_seconds(row: Row) -> float:
    """Return what no named phase explains; phases of an asynchronous run may overlap."""
    return max(0.0, row["timing_s/step"] - sum(_seconds(row, key) for key in _PHASES.values()))


def _thin(steps: list[int]) -> list[int]:
    stride = -(-len(steps) // _MAX_POINTS) if steps else 1
    return steps[::stride] + steps[-1:] * ((len(steps) - 1) % stride != 0)


def _short(value: float) -> float:
    return float(f"{value:.5g}")

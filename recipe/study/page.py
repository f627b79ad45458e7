"""One HTML file that shows runs: numbers, curves, prompts with texts, settings; no network."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import math
import operator
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from recipe.hint.credit.base import has_signal
from recipe.hint.estimators import t_quantile
from recipe.run.run_folder import accuracies, read_rows
from recipe.study.runs import SECONDS, Run, level_share

_FILES = Path(__file__).parent / "page_files"
# After Okabe and Ito, told apart by most people.
_COLOURS = ("#2f86cf", "#de6b1f", "#12a37f", "#cc79a7", "#d99a00", "#8c76c9", "#5fb4e0", "#888888")
_MAX_POINTS, _MAX_BANDS = 400, 8
_PLACES = ("hint.run_dir", "trainer.default_local_dir", "trainer.experiment_name")

Curve = Callable[[Run], Mapping[int, float]]
Variants = Mapping[str, Sequence[Run]]


def render_page(runs: Sequence[Run], max_prompts: int = 200) -> str:
    """Return the page of some runs, in their order, as HTML.

    ``max_prompts`` are shown, of all runs alike: those with texts and the newest.
    """
    variants: dict[str, list[Run]] = {}
    for run in runs:  # only a campaign says which runs are seeds of one variant
        variants.setdefault(run.name.partition("/seed-")[0], []).append(run)
    charts = [each for each in _charts(variants) if any(any(line["y"]) for line in each["data"])]
    code = (_FILES / "page.js").read_text("utf-8")
    prompts = [each for run in runs for each in _prompts(run, max_prompts // len(runs))]
    settings = _texts(group[0].config for group in variants.values())
    settings = settings.drop(columns=[*_PLACES], errors="ignore")  # those that differ are shown
    environment = Environment(
        loader=FileSystemLoader(_FILES), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
        finalize=lambda each: _visible(each) if type(each) is str else each,
    )  # fmt: skip
    return environment.get_template("page.html").render(
        title=", ".join([*variants][:3]) + (" ..." if len(variants) > 3 else ""),
        css=(_FILES / "page.css").read_text("utf-8"),
        code=code,
        nonce=hashlib.sha256(code.encode()).hexdigest()[:32],
        plotly=base64.b64encode(zlib.compress(get_plotlyjs().encode(), 9)).decode(),
        charts=charts,
        data=json.dumps(charts, allow_nan=False).replace("<", "\\u003c"),
        runs=runs,
        numbers={name: _numbers(group, runs) for name, group in variants.items()},
        variants=variants,
        prompts=sorted(prompts, key=lambda each: -each[1]["step"]),
        has_signal=has_signal,
        settings={str(name): [*each] for name, each in settings.items() if each.nunique() > 1},
        machine={name: each[0] for name, each in _texts([runs[0].machine]).items()},
    )


def _visible(text: str) -> str:
    """Return a text in which controls, and marks that hide or reorder text, are seen."""
    return "".join(
        each if each.isprintable() or each in "\n\t" else f"⟨U+{ord(each):04X}⟩" for each in text
    )


def _points(run: Run, value: Callable[[Mapping[str, float]], float]) -> dict[int, float]:
    """Return step -> value; steps without the metric are left out."""
    points = {}
    for row in run.training:
        with contextlib.suppress(KeyError, ZeroDivisionError):
            points[row["step"]] = value(row)
    return points


_INFORMATIVE = partial(_points, value=lambda row: 1 - row["hint/zero_signal_after"])
_HINTED = partial(_points, value=lambda row: row["hint/prompts_with_hint"] / row["hint/prompts"])
_SHARES = {"Informative groups": _INFORMATIVE, "Prompts trained under a hint": _HINTED}
_METRICS = {  # drawn as they are
    "Mean reward": "critic/score/mean",
    "Tokens per response": "response_length/mean",
    "Share of responses cut at the longest length": "response_length/clip_ratio",
    "Seconds per step": SECONDS,
}


def _accuracies(runs: Sequence[Run]) -> dict[str, Curve]:
    names = sorted({name for run in runs for row in run.rows for name in accuracies(row)})
    return {f"Accuracy, {name}": partial(Run.curve, source=name) for name in names}


def _line(runs: Sequence[Run], curve: Curve) -> pd.DataFrame:
    """Return means over the seeds (``y``) at the steps that all have, with Student's interval."""
    table = pd.DataFrame([each for run in runs if (each := curve(run))]).T.dropna().sort_index()
    table, count = table.iloc[:: len(table) // _MAX_POINTS or 1], table.shape[1]
    means, half = table.mean(axis=1), 0.0 * table.sum(axis=1)
    if count > 1:
        half = table.std(axis=1) * t_quantile(count - 1) / math.sqrt(count)
    lines = pd.DataFrame({"y": means, "low": means - half, "high": means + half})
    return lines.map(lambda each: float(f"{each:.5g}"))


def _numbers(group: Sequence[Run], runs: Sequence[Run]) -> dict[str, str]:
    """Return a variant's numbers by their titles, means over its seeds; ``-`` where unknown."""
    found = {"seeds": str(len(group)), "step": str(max(run.last_step for run in group))}
    for title, curve in (_accuracies(runs) | _SHARES).items():
        y = _line(group, curve)["y"]
        part = max(1, len(y) // 4) if title in _SHARES else 1
        ends = [100 * y.iloc[:part].mean(), 100 * y.iloc[-part:].mean()][: len(y)]
        found[f"{title}, %"] = " → ".join(f"{each:.1f}" for each in ends) or "-"
    minutes = [each for run in group if (each := run.minutes()) is not None]
    tokens = sum(run.tokens() for run in group) / len(group)
    found["tokens"] = "-" if math.isnan(tokens) else f"{tokens / 1000:.0f} k"
    found["minutes"] = f"{sum(minutes) / len(minutes):.1f}" if minutes else "-"
    return found


def _charts(variants: Variants) -> Iterator[dict[str, Any]]:
    """Yield every chart: accuracies, shares, metrics, and the levels of each variant."""
    shares = _accuracies([run for group in variants.values() for run in group]) | _SHARES
    others = {
        title: partial(_points, value=operator.itemgetter(name)) for title, name in _METRICS.items()
    }
    for title, curve in (shares | others).items():
        lines = {name: _line(group, curve) for name, group in variants.items()}
        if title in shares:
            lines = {name: each.clip(0.0, 1.0) for name, each in lines.items()}
        traces = [each for at, name in enumerate(lines) for each in _traces(lines[name], name, at)]
        if len(variants) > _MAX_BANDS:
            traces = [each for each in traces if each["mode"] != "none"]
        yield {"title": title, "data": traces}
    for name, group in variants.items() if len(variants) <= _MAX_BANDS else ():
        levels = sorted({level for run in group for level in run.levels})
        found = [partial(_points, value=partial(level_share, level=level)) for level in levels]
        areas = zip(levels, [_line(group, share)["y"] for share in found], strict=True)
        traces = [
            {"x": [*y.index], "y": [*y], "name": f"level {level}", "stackgroup": "all"}
            for level, y in areas
        ]
        if {*levels} - {0}:
            yield {"title": f"Prompts by the hint level that trains: {name}", "data": traces}


def _traces(line: pd.DataFrame, name: str, number: int) -> Iterator[dict[str, Any]]:
    """Yield a variant's band over its seeds, where it has one, and its line."""
    x, colour = [*line.index], _COLOURS[number % len(_COLOURS)]
    if [*line["low"]] != [*line["high"]]:
        band = {"x": [*x, *x[::-1]], "y": [*line["high"], *line["low"][::-1]], "mode": "none"}
        look = {"fill": "toself", "fillcolor": colour, "opacity": 0.18, "hoverinfo": "skip"}
        yield band | look | {"name": name, "legendgroup": name, "showlegend": False}
    dash = ("solid", "dash", "dot", "dashdot")[number // len(_COLOURS) % 4]
    look = {"mode": "lines" if len(x) > 1 else "markers", "line": {"color": colour, "dash": dash}}
    yield look | {"x": x, "y": [*line["y"]], "name": name, "legendgroup": name}


def _prompts(run: Run, limit: int) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield the run's name, record and texts of prompts: the newest, and half with texts."""
    kept = deque(read_rows(run.folder / "samples.jsonl"), limit // 2)
    samples = {(row["step"], row["problem_id"]): row for row in kept}
    with_texts, others = [], deque[dict[str, Any]](maxlen=max(0, limit - len(samples)))
    for record in read_rows(run.folder / "records.jsonl") if limit else ():
        is_kept = (record["step"], record["problem_id"]) in samples
        (with_texts if is_kept else others).append(record)
    for record in [*with_texts, *others]:
        yield run.name, record, samples.get((record["step"], record["problem_id"]))


def _texts(nodes: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a row for each tree, a column for each dotted name; ``-`` where it is not there."""
    table = pd.json_normalize([dict(each) for each in nodes])
    return table.where(table.notna(), "-").map(lambda each: str(each)[:300])

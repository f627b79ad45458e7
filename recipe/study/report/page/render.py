"""Put the page together: one HTML file that asks no network for anything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from recipe.run.rows import accuracies
from recipe.study.report.page.arms import Arm, changed_settings, group_arms
from recipe.study.report.page.charts import AXES, all_charts
from recipe.study.report.page.folder import PageRun
from recipe.study.report.page.payload import compact_runs, pack_json, pack_text
from recipe.study.report.runs import TOKENS, accuracy_curve

_HERE = Path(__file__).parent


def render_page(
    runs: Sequence[PageRun], defaults: Mapping[str, Any], max_bytes: int = 5_000_000
) -> str:
    """Return the page of some runs as HTML.

    Args:
        runs: Runs in the order in which they are shown.
        defaults: All settings as the primary configuration gives them; empty: not at hand.
        max_bytes: Size of the page at most, as long as charts and tables alone leave room.
    """
    arms = group_arms(runs)
    charts = all_charts(arms)
    plotly = pack_text(get_plotlyjs())
    code, css = (
        "\n".join((_HERE / name).read_text("utf-8") for name in names)
        for names in (("conversations.js", "page.js"), ("page.css",))
    )
    sources = sorted({name for run in runs for row in run.rows for name in accuracies(row)})
    figures = {"charts": [_chart(chart) for chart in charts]}
    context = {
        "title": ", ".join(run.name for run in runs[:3]) + (" ..." if len(runs) > 3 else ""),
        "css": css,
        "code": code,
        "nonce": hashlib.sha256(code.encode()).hexdigest()[:32],
        "sources": sources,
        "runs": [_run_row(run, arms, sources) for run in runs],
        "machines": _machines(runs),
        "has_defaults": bool(defaults),
        "settings": _settings(runs, defaults),
        "axes": AXES,
        "all_charts": [
            {
                "number": number,
                "section": chart.section,
                "title": chart.title,
                "note": chart.note,
                "height": chart.figure.layout.height,
            }  # fmt: skip
            for number, chart in enumerate(charts)
        ],
        "plotly": plotly,
        "data": "",
        "left_out": "",
    }
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    template = environment.get_template("page.html")
    fixed = len(template.render(context).encode()) + len(pack_json(figures))
    room = max_bytes - fixed - 20_000
    while True:
        data = compact_runs(runs, max(room, 0))
        packed = pack_json(data | figures)
        page = template.render(context | {"data": packed, "left_out": _left_out(data["runs"])})
        if len(page.encode()) < max_bytes or room <= 0:
            return page
        room -= len(page.encode()) - max_bytes + 50_000


def _chart(chart: Any) -> dict[str, Any]:
    figure = json.loads(chart.figure.to_json(engine="json"))
    return {"figure": figure, "by_axis": chart.by_axis or None}


def _left_out(runs: Sequence[Mapping[str, Any]]) -> str:
    """Say what found no room."""
    found = []
    for name in ("visits", "samples"):
        kept = sum(len(run[name]) for run in runs)
        total = sum(run[f"num_{name}"] for run in runs)
        if kept < total:
            found.append(f"{kept} of {total} {name}")
    rest = "; the runs' folders hold the rest."
    return f"One file has room for {' and '.join(found)}{rest}" if found else ""


def _run_row(run: PageRun, arms: Sequence[Arm], sources: Sequence[str]) -> dict[str, Any]:
    total = run.setting("trainer.total_training_steps")
    state = f"step {run.last_step}" + (f" of {total}" if total else "")
    tokens = sum(row.get(name, 0) for row in run.training for name in TOKENS)
    minutes = sum(row.get("timing_s/step", 0.0) for row in run.training) / 60
    damaged = [
        f"{count} damaged lines of {name} left out" for name, count in sorted(run.damaged.items())
    ]
    shown = []
    for source in sources:
        points = [value for _, value in accuracy_curve(run.rows, source)]
        shown.append(f"{100 * points[0]:.1f} → {100 * points[-1]:.1f} %" if points else "-")
    return {
        "name": run.name,
        "arm": next(arm.name for arm in arms if any(each is run for each in arm.runs)),
        "state": f"{state}; ended: {run.failure}" if run.failure else state,
        "accuracies": shown,
        "tokens": f"{tokens / 1000:.0f}k",
        "minutes": f"{minutes:.1f}",
        "updated": f"{datetime.fromtimestamp(run.updated_s, UTC):%Y-%m-%d %H:%M} UTC",
        "files": "; ".join(damaged) or "whole",
    }


def _machines(runs: Sequence[PageRun]) -> list[tuple[str, list[str]]]:
    """Return the rows of the table of machines and versions."""
    flat = [
        {
            f"{section}: {name}" if section != "machine" else str(name): str(value)[:300]
            for section, part in run.machine.items()
            for name, value in (part.items() if isinstance(part, dict) else [("", part)])
        }
        for run in runs
    ]
    names = dict.fromkeys(name for each in flat for name in each)
    return [(name, [each.get(name, "-") for each in flat]) for name in names]


def _settings(runs: Sequence[PageRun], defaults: Mapping[str, Any]) -> list[tuple[str, list[Any]]]:
    rows = changed_settings(runs, defaults)
    mixed, common = ([row for row in rows if row.is_mixed is each] for each in (True, False))
    shared = "Changed in all runs" if len(runs) > 1 else "Changed"
    return [
        (name, part)
        for name, part in (("What tells the runs apart", mixed), (shared, common))
        if part
    ]

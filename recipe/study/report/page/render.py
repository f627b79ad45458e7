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

from recipe.study.report.page.arms import Arm, changed_settings, group_arms, leaves
from recipe.study.report.page.charts import (
    AXES,
    DASHES,
    MAX_STACKED,
    all_charts,
    sources_of,
    style_of,
)
from recipe.study.report.page.folder import PageRun
from recipe.study.report.page.numbers import numbers_of
from recipe.study.report.page.payload import compact_runs, pack_json, pack_text

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
    sources = sources_of(runs)
    names = [run.name for run in runs] if len(runs) <= 3 else [arm.name for arm in arms]
    figures = {"charts": [_chart(chart) for chart in charts]}
    context = {
        "title": ", ".join(names[:3]) + (" ..." if len(names) > 3 else ""),
        "css": css,
        "code": code,
        "nonce": hashlib.sha256(code.encode()).hexdigest()[:32],
        "arms": [(arm, *style_of(number)) for number, arm in enumerate(arms)],
        "numbers": [numbers_of(arm, sources) for arm in arms],
        "dashes": DASHES,
        "max_stacked": MAX_STACKED,
        "has_visits": any(run.visits or run.samples for run in runs),
        "runs": [_run_row(run, arms) for run in runs],
        "machines": _machines(runs),
        "has_defaults": bool(defaults),
        "settings": _settings([arm.runs[0] for arm in arms], defaults),
        "axes": AXES,
        "all_charts": [
            {
                "number": number,
                "section": chart.section,
                "title": chart.title,
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


def _run_row(run: PageRun, arms: Sequence[Arm]) -> dict[str, Any]:
    total = run.setting("trainer.total_training_steps")
    state = f"step {run.last_step}" + (f" of {total}" if total else "")
    damaged = [
        f"{count} damaged lines of {name} left out" for name, count in sorted(run.damaged.items())
    ]
    newest = f"{datetime.fromtimestamp(run.updated_s, UTC):%Y-%m-%d %H:%M} UTC"
    return {
        "name": run.name,
        "arm": next(arm.name for arm in arms if any(each is run for each in arm.runs)),
        "state": state,
        "failure": run.failure,
        "updated": newest if run.updated_s else "-",
        "files": "; ".join(damaged),
    }


def _machines(runs: Sequence[PageRun]) -> list[tuple[str, str]]:
    """Return the rows of the table of machines and versions; of several runs each value once."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, value in leaves(run.machine).items():
            found.setdefault(name, {})[str(value)[:300]] = None
    return [(name, " | ".join(values)) for name, values in found.items() if name]


def _settings(runs: Sequence[PageRun], defaults: Mapping[str, Any]) -> list[tuple[str, list[Any]]]:
    rows = changed_settings(runs, defaults)
    mixed, common = ([row for row in rows if row.is_mixed is each] for each in (True, False))
    shared = "Changed in all runs" if len(runs) > 1 else "Changed"
    return [
        (name, part)
        for name, part in (("What tells the runs apart", mixed), (shared, common))
        if part
    ]

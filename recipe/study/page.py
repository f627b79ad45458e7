"""One HTML file that shows runs: numbers, curves, prompts with texts, settings.

It asks no network for anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from omegaconf import OmegaConf
from plotly.offline import get_plotlyjs

from recipe.hint.command.compose import primary_config, set_config_paths
from recipe.hint.credit.rows import has_signal
from recipe.run.rows import accuracies
from recipe.study.estimators import t_quantile, wilson_interval
from recipe.study.runs import SECONDS, Run, level_share, num_problems
from recipe.study.tables import percent

_FILES = Path(__file__).parent / "page_files"
# After Okabe and Ito, told apart by most people.
_COLOURS = ("#2f86cf", "#de6b1f", "#12a37f", "#cc79a7", "#d99a00", "#8c76c9", "#5fb4e0", "#888888")
_MAX_POINTS, _MAX_BANDS = 400, 8
_TEXT_CHARS, _MAX_RESPONSES = 6000, 8  # of a prompt's texts
_PLACES = ("hint.run_dir", "trainer.default_local_dir", "trainer.experiment_name")

Row = Mapping[str, float]
CURVES: dict[str, Callable[[Row], float]] = {
    "Informative groups": lambda row: 1 - row["hint/zero_signal_after"],
    "Prompts trained under a hint": lambda row: row["hint/prompts_with_hint"] / row["hint/prompts"],
    "Seconds per step": lambda row: row[SECONDS],
}


def render_page(runs: Sequence[Run], max_prompts: int = 200) -> str:
    """Return the page of some runs as HTML.

    Args:
        runs: Runs in the order in which they are shown.
        max_prompts: Prompts shown, of all runs alike: those with texts and the newest.
    """
    variants: dict[str, list[Run]] = {}
    for run in runs:  # only a campaign says which runs are seeds of one variant
        name = run.variant if "/seed-" in run.name else run.name
        variants.setdefault(name, []).append(run)
    sources = sorted({name for run in runs for row in run.rows for name in accuracies(row)})
    charts = [each for each in _charts(variants, sources) if any(map(_is_drawn, each["data"]))]
    code = (_FILES / "page.js").read_text("utf-8")
    prompts = [each for run in runs for each in _prompts(run, max_prompts // len(runs))]
    machines: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, value in _leaves(run.machine).items():
            machines.setdefault(name, {})[value] = None
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
        numbers={name: _numbers(group, sources) for name, group in variants.items()},
        variants=variants,
        prompts=sorted(prompts, key=lambda each: -each["step"]),
        settings=_settings([group[0] for group in variants.values()]),
        machines={name: " | ".join(values) for name, values in machines.items() if name},
    )


def _visible(text: str) -> str:
    """Return a text in which controls, and marks that hide or reorder text, are seen."""
    return "".join(
        each if each.isprintable() or each in "\n\t" else f"⟨U+{ord(each):04X}⟩" for each in text
    )


def _is_drawn(trace: Mapping[str, Any]) -> bool:
    return any(trace["y"])


def _points(run: Run, value: Callable[[Row], float]) -> dict[int, float]:
    """Return step -> value; steps without the metric are left out."""
    points = {}
    for row in run.training:
        try:
            points[row["step"]] = value(row)
        except (KeyError, ZeroDivisionError):
            continue
    return points


def _line(seeds: Sequence[Mapping[int, float]], num_problems: int | None = None) -> pd.DataFrame:
    """Return means over the seeds (``y``) at the steps that all have, with Student's interval.

    That of a share (``num_problems`` given) stays in [0, 1], and is no narrower than Wilson's over
    its problems.
    """
    table = pd.DataFrame([each for each in seeds if each]).T.dropna().sort_index()
    count = table.shape[1]
    error = table.std(axis=1) / math.sqrt(count) if count > 1 else 0.0 * table.sum(axis=1)
    means, half = table.mean(axis=1), error * (t_quantile(count - 1) if count > 1 else 0.0)
    lines = pd.DataFrame({"y": means, "low": means - half, "high": means + half})
    if num_problems is not None:
        lines = lines.clip(0.0, 1.0)
        ends = [wilson_interval(y, num_problems) if num_problems else (y, y) for y in lines["y"]]
        lines["low"] = np.minimum(lines["low"], [low for low, _ in ends])
        lines["high"] = np.maximum(lines["high"], [high for _, high in ends])
    stride = -(-len(lines) // _MAX_POINTS) or 1
    lines = lines.iloc[[*range(0, len(lines) - 1, stride), *range(len(lines))[-1:]]]
    return lines.map(lambda each: float(f"{each:.5g}"))


def _accuracy(runs: Sequence[Run], source: str) -> pd.DataFrame:
    return _line([run.curve(source) for run in runs], num_problems(runs[0], source))


def _curve(
    runs: Sequence[Run], value: Callable[[Row], float], share: int | None = None
) -> pd.DataFrame:
    return _line([_points(run, value) for run in runs], share)


def _numbers(runs: Sequence[Run], sources: Sequence[str]) -> dict[str, str]:
    """Return a variant's numbers by their titles, means over its seeds; ``-`` where unknown."""
    found = {"seeds": str(len(runs)), "step": str(max(run.last_step for run in runs))}
    for source in sources:
        y = [*_accuracy(runs, source)["y"]]
        change = f" ({percent(y[-1] - y[0], sign=True)})" if len(y) > 1 else ""
        found[f"{source}, % (change)"] = f"{percent(y[-1])}{change}" if y else "-"
    for title in [*CURVES][:2]:
        points = [[*_points(run, CURVES[title]).values()] for run in runs]
        parts = [
            (each[: max(1, len(each) // 4)], each[-max(1, len(each) // 4) :]) for each in points
        ]
        means = [100 * np.mean(np.concatenate(each)) for each in zip(*parts, strict=True)]
        is_known = any(map(any, points))
        found[f"{title}, first → last quarter, %"] = (
            " → ".join(f"{each:.0f}" for each in means) if is_known else "-"
        )
    tokens = sum(run.tokens() for run in runs)
    seconds = [row[SECONDS] for run in runs for row in run.training if SECONDS in row]
    found["tokens"] = f"{tokens / len(runs) / 1000:.0f} k" if tokens else "-"
    found["minutes"] = f"{sum(seconds) / 60 / len(runs):.1f}" if seconds else "-"
    return found


def _charts(
    variants: Mapping[str, Sequence[Run]], sources: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield every chart: accuracy, informative groups, hints, step time, levels of a variant."""
    curves = {f"Accuracy, {source}": partial(_accuracy, source=source) for source in sources}
    for title, value in CURVES.items():
        share = None if value is CURVES["Seconds per step"] else 0
        curves[title] = partial(_curve, value=value, share=share)
    for title, of in curves.items():
        lines = {name: of(group) for name, group in variants.items()}
        traces = [each for at, name in enumerate(lines) for each in _traces(lines[name], name, at)]
        if len(variants) > _MAX_BANDS:
            traces = [each for each in traces if each["mode"] != "none"]
        yield {"title": title, "data": traces}
    for name, group in variants.items() if len(variants) <= _MAX_BANDS else ():
        levels = sorted({level for run in group for level in run.levels})
        areas = [_curve(group, partial(level_share, level=level)) for level in levels]
        traces = [
            {"x": [*area.index], "y": [*area["y"]], "name": f"level {level}", "stackgroup": "all"}
            for level, area in zip(levels, areas, strict=True)
        ]
        if {*levels} - {0}:
            yield {"title": f"Prompts by the hint level that trains: {name}", "data": traces}


def _traces(line: pd.DataFrame, name: str, number: int) -> Iterator[dict[str, Any]]:
    """Yield a variant's band over its seeds, where it has one, and its line."""
    x, colour = [*line.index], _COLOURS[number % len(_COLOURS)]
    if (line["low"] != line["high"]).any():
        band = {"x": [*x, *x[::-1]], "y": [*line["high"], *line["low"][::-1]], "mode": "none"}
        look = {"fill": "toself", "fillcolor": colour, "opacity": 0.18, "hoverinfo": "skip"}
        yield band | look | {"name": name, "legendgroup": name, "showlegend": False}
    dash = ("solid", "dash", "dot", "dashdot")[number // len(_COLOURS) % 4]
    look = {"mode": "lines", "line": {"color": colour, "dash": dash}}
    yield look | {"x": x, "y": [*line["y"]], "name": name, "legendgroup": name}


def _prompts(run: Run, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the newest prompts of a run, and those with texts, which are half of them at most."""
    samples = {_key(row): row for row in deque(run.samples(), maxlen=limit // 2)}
    chosen: deque[dict[str, Any]] = deque(maxlen=max(0, limit - len(samples)))
    with_texts = []
    for record in run.records() if limit else ():
        (with_texts if _key(record) in samples else chosen).append(record)
    for record in [*with_texts, *chosen]:
        try:
            yield _prompt(record, samples.get(_key(record))) | {"run": run.name}
        except (LookupError, TypeError, ValueError, AttributeError):
            run.damaged["records.jsonl"] += 1


def _key(row: Mapping[str, Any]) -> tuple[int, str]:
    return row["step"], str(row.get("problem_id"))


def _prompt(record: Mapping[str, Any], sample: Any) -> dict[str, Any]:
    """Return what the page shows of a prompt."""
    trained = {int(at) for at, _ in record["rows"]}
    rounds = []
    for number, each in enumerate(record["rounds"]):
        marks = "".join({1: "✓", 0: "✗"}.get(accuracy, "?") for accuracy in each["accuracies"])
        where = f"level {each['level']}" if each.get("role", "solver") == "solver" else each["role"]
        told = f"{where} {marks or each['hint_status']}"
        rounds.append(f"{told}, {int(each['tokens'])} tokens{', trains' * (number in trained)}")
    rewards, is_dropped = record["rewards"], record.get("is_dropped")
    is_informative = not is_dropped and has_signal(rewards, record.get("groups", ()))
    tags = {
        "informative" if is_informative else "not informative": True,
        "dropped": is_dropped,
        "off_schedule": record.get("is_off_schedule"),
        "a hint holds the answer": record.get("leaked_levels"),
    }
    return {
        "step": record["step"],
        "problem": _text(record["problem_id"])[:200],
        "rounds": rounds,
        "reward": sum(rewards) / len(rewards) if rewards else 0.0,
        "reasons": ", ".join(f"{count} × {name}" for name, count in record["reasons"].items()),
        "tags": [name for name, is_so in tags.items() if is_so],
        "texts": sample
        and {
            "problem": _text(sample["problem"]),
            "answer": _text(sample["answer"]),
            "hints": [(e["level"], _text(e["hint"])) for e in sample["rounds"] if e.get("hint")],
            "responses": [
                {**each, "response": _text(each.get("response", ""))}
                for each in sample["responses"][:_MAX_RESPONSES]
            ],
        },
    }


def _text(value: Any) -> str:
    text = str(value)
    if len(text) > _TEXT_CHARS:
        text = f"{text[: _TEXT_CHARS // 4]} [...] {text[-3 * _TEXT_CHARS // 4 :]}"
    return text


def _leaves(node: Any, prefix: str = "") -> dict[str, str]:
    """Return ``dotted name -> value`` of a tree of settings."""
    if not isinstance(node, Mapping) or (not node and prefix):
        shown = json.dumps(node) if isinstance(node, bool) or node is None else str(node)
        return {prefix.removesuffix("."): shown[:300]}
    found = {}
    for key, value in node.items():
        found |= _leaves(value, f"{prefix}{key}.")
    return found


def _settings(runs: Sequence[Run]) -> list[tuple[str, str, list[str], bool]]:
    """Return name, default, values of settings that differ between runs, then of changed ones.

    What follows from another setting by default is listed where the runs differ in it.
    """
    set_config_paths()
    usual = _leaves(OmegaConf.to_container(primary_config(), resolve=False))
    given, rows = [_leaves(run.config) for run in runs], []
    for name in sorted(set().union(*given) - {*_PLACES, ""}):
        values = [each.get(name, "-") for each in given]
        default, is_mixed = usual.get(name, "-"), len({*values}) > 1
        if is_mixed or (name in usual and "${" not in default and values[0] != default):
            rows.append((name, default, values, is_mixed))
    return sorted(rows, key=lambda row: not row[3])

"""One HTML file that shows runs: the numbers that matter, curves, prompts with texts, settings.

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
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from omegaconf import OmegaConf
from plotly.offline import get_plotlyjs

from recipe.hint.command.compose import primary_config, set_config_paths
from recipe.hint.credit.rows import has_signal
from recipe.run.rows import accuracies
from recipe.study.estimators import t_quantile, wilson_interval
from recipe.study.runs import SECONDS, TOKENS, VLLM_DIFFERENCE, Run, level_share, num_problems
from recipe.study.tables import percent

_FILES = Path(__file__).parent / "page_files"
# After Okabe and Ito, told apart by most people; in tones that show on white and on black.
_COLOURS = ("#2f86cf", "#de6b1f", "#12a37f", "#cc79a7", "#d99a00", "#8c76c9", "#5fb4e0", "#888888")
_DASHES = ("solid", "dash", "dot", "dashdot")
_MAX_POINTS, _MAX_STACKED = 400, 8
_TEXT_CHARS, _MAX_RESPONSES = 6000, 8  # of a prompt's texts
_PLACES = ("hint.run_dir", "trainer.default_local_dir", "trainer.experiment_name")
# Controls, and marks that would hide or reorder text.
_HIDDEN = [*range(9), *range(11, 32), *range(127, 160), 0x61C, *range(0x200B, 0x2010)]
_HIDDEN += [*range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF, *range(0xD800, 0xE000)]
_VISIBLE = {code: f"⟨U+{code:04X}⟩" for code in _HIDDEN}

Row = Mapping[str, float]
Runs = Mapping[str, Sequence[Run]]  # a variant's, its seeds
_INFORMATIVE, _HINTED = "Informative groups, share", "Prompts trained under a hint, share"
CURVES: dict[str, Callable[[Row], float]] = {
    "Mean reward of what trains": lambda row: row["critic/score/mean"],
    _INFORMATIVE: lambda row: 1 - row["hint/zero_signal_after"],
    _HINTED: lambda row: row["hint/prompts_with_hint"] / row["hint/prompts"],
    "Problems never solved, hints included, %": lambda row: row["reward_tracking/pct_never_solved"],
    "Tokens sampled per step": lambda row: sum(row[name] for name in TOKENS),
    "Seconds per step": lambda row: row[SECONDS],
    "Entropy, nats": lambda row: row["actor/entropy"],
    "Response length, tokens": lambda row: row["response_length/mean"],
    "Gradient norm": lambda row: row["actor/grad_norm"],
    "Hints that hold the answer, share": lambda row: row["hint/leaked"] / row["hint/prompts"],
    "First turn correct, share": lambda row: row["turns/acc_t1"],
    "Last turn correct, share": lambda row: row["turns/acc_t2"],
    "Wrong at first and correct at last, share": lambda row: row["turns/wrong_to_right"],
    "Correct at first and wrong at last, share": lambda row: row["turns/right_to_wrong"],
    "Same answer in both turns, share": lambda row: row["turns/unchanged"],
    "Feedback that holds the answer, share": lambda row: row["turns/leaks"],
    "Verdicts not graded, share": lambda row: row["verify/ungraded"],
    "Trainer against vLLM, difference of a token's probability": lambda row: row[VLLM_DIFFERENCE],
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


class Number(NamedTuple):
    """A number as it is shown; ``trend``: ``right`` for a change to the better, else ``wrong``."""

    title: str
    value: str = "-"
    change: str = ""
    note: str = ""
    trend: str = ""


class Line(NamedTuple):
    """Means over seeds with a 95 % interval, at steps that all of them have."""

    x: list[int]
    y: list[float]
    low: list[float]
    high: list[float]


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
    charts = [each for each in _charts(variants, sources) if each["data"]]
    code = (_FILES / "page.js").read_text("utf-8")
    plotly = base64.b64encode(zlib.compress(get_plotlyjs().encode(), 9)).decode()
    prompts = [each for run in runs for each in _prompts(run, max_prompts // len(runs))]
    environment = Environment(
        loader=FileSystemLoader(_FILES), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
        finalize=lambda each: each.translate(_VISIBLE) if type(each) is str else each,
    )  # fmt: skip
    return environment.get_template("page.html").render(
        title=", ".join([*variants][:3]) + (" ..." if len(variants) > 3 else ""),
        css=(_FILES / "page.css").read_text("utf-8"),
        code=code,
        nonce=hashlib.sha256(code.encode()).hexdigest()[:32],
        plotly=plotly,
        charts=charts,
        data=json.dumps(charts, allow_nan=False).replace("<", "\\u003c"),
        runs=runs,
        numbers={name: _numbers(group, sources) for name, group in variants.items()},
        variants=variants,
        styles=[_style(number) for number in range(len(variants))],
        prompts=sorted(prompts, key=lambda each: -each["step"]),
        settings=_settings([group[0] for group in variants.values()]),
        machines=_machines(runs),
    )


# ---- numbers over seeds -------------------------------------------------------------------------


def _points(run: Run, value: Callable[[Row], float]) -> dict[int, float]:
    """Return step -> value; steps without the metric are left out."""
    points = {}
    for row in run.training:
        try:
            points[row["step"]] = value(row)
        except (KeyError, ZeroDivisionError):
            continue
    return points


def _line(seeds: Sequence[Mapping[int, float]], num_problems: int | None = None) -> Line:
    """Average over the seeds; the interval is Student's.

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
    rounded = ([float(f"{each:.5g}") for each in lines[name]] for name in lines)
    return Line([*lines.index], *rounded)


def _accuracy(runs: Sequence[Run], source: str) -> Line:
    return _line([run.curve(source) for run in runs], num_problems(runs[0], source))


def _numbers(runs: Sequence[Run], sources: Sequence[str]) -> list[Number]:
    """Return the same numbers of each variant, means over its seeds; ``-`` where it has none."""
    found = []
    for source in sources:
        title, line = f"Accuracy, {source}", _accuracy(runs, source)
        change = line.y[-1] - line.y[0] if line.y else 0.0
        trend = "" if abs(change) < 0.0005 else "right" if change > 0 else "wrong"
        shown = f"{percent(change, sign=True)} points" if len(line.y) > 1 else ""
        value = f"{percent(line.y[-1])} %" if line.y else "-"
        note = f"since step {line.x[0]}" if shown else ""
        found.append(Number(title, value, shown, note, trend))
    for title in (_INFORMATIVE, _HINTED):
        ends: tuple[list[float], list[float]] = ([], [])
        for run in runs:
            values = [*_points(run, CURVES[title]).values()]
            size = max(1, len(values) // 4)
            ends[0].extend(values[:size])
            ends[1].extend(values[-size:])
        value = "-"
        if any(ends[0] + ends[1]):
            value = " → ".join(f"{100 * sum(each) / len(each):.0f}" for each in ends) + " %"
        found.append(Number(title.partition(",")[0], value, note="first → last quarter"))
    tokens = sum(run.tokens() for run in runs)
    lost = sum(row.get("hint/rollout_tokens_discarded", 0) for run in runs for row in run.training)
    note = f"{100 * lost / tokens:.0f} % not trained on" if tokens else ""
    value = f"{tokens / len(runs) / 1000:.0f} k" if tokens else "-"
    seconds = [row[SECONDS] for run in runs for row in run.training if SECONDS in row]
    minutes = f"{sum(seconds) / 60 / len(runs):.1f}" if seconds else "-"
    each = f"{sum(seconds) / len(seconds):.1f} s a step" if seconds else ""
    return [
        *found,
        Number("Tokens sampled", value, note=note),
        Number("Minutes of steps", minutes, note=each),
    ]


# ---- charts -------------------------------------------------------------------------------------


def _charts(variants: Runs, sources: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield every chart that some run has numbers for, other than zero throughout."""
    curves = {f"Accuracy, {source}": partial(_accuracy, source=source) for source in sources}
    for title, value in CURVES.items():
        curves[title] = partial(_curve, value=value, share=0 if title.endswith(", share") else None)
    for title, of in curves.items():
        found = [
            trace
            for number, (name, group) in enumerate(variants.items())
            for trace in _traces(of(group), group, name, number, len(variants))
        ]
        look = {"range": [-0.02, 1.02], "tickformat": ".0%"} if title[:8] == "Accuracy" else {}
        if any(any(trace["y"]) for trace in found):
            yield {"title": title, "data": found, "yaxis": look, "legend": False}
    for name, group in variants.items() if len(variants) <= _MAX_STACKED else ():
        more = "" if len(variants) == 1 else f": {name}"
        phases = {label: partial(_seconds, phase=phase) for label, phase in _PHASES.items()}
        levels = sorted({level for run in group for level in run.levels})
        shares = {f"level {level}": partial(level_share, level=level) for level in levels}
        if {*levels} - {0}:
            yield _stack(f"Prompts by the hint level that trains, share{more}", group, shares)
        yield _stack(f"Seconds of a step{more}", group, phases)


def _curve(runs: Sequence[Run], value: Callable[[Row], float], share: int | None = None) -> Line:
    return _line([_points(run, value) for run in runs], share)


def _seconds(row: Row, phase: str) -> float:
    return row.get(f"timing_s/{phase}", 0.0)


def _traces(
    line: Line, runs: Sequence[Run], name: str, number: int, num_variants: int
) -> Iterator[dict[str, Any]]:
    """Yield a variant's band over its seeds and its line; ``meta`` has x for each axis."""
    places: dict[str, list[Any]] = {"step": line.x}
    for axis, names, factor in (
        ("tokens sampled", TOKENS, 1.0), ("minutes of steps", (SECONDS,), 1 / 60)
    ):  # fmt: skip
        steps = [
            {row["step"]: sum(row.get(each, 0.0) for each in names) for row in run.training}
            for run in runs
        ]
        total = pd.DataFrame(steps).T.sort_index().sum(axis=1).cumsum() * factor / len(runs)
        places[axis] = total.reindex(line.x, fill_value=0.0).tolist()
    colour, dash = _style(number)
    trace = {"type": "scatter", "legendgroup": str(number), "name": name}
    if line.low != line.high and num_variants <= _MAX_STACKED:
        edges = {"x": [*line.x, *line.x[::-1]], "y": line.high + line.low[::-1]}
        edges["meta"] = {axis: [*x, *x[::-1]] for axis, x in places.items()}
        look = {"fill": "toself", "fillcolor": colour, "opacity": 0.18, "mode": "none"}
        yield trace | edges | look | {"hoverinfo": "skip"}
    mode = "lines+markers" if len(line.x) < 40 else "lines"
    look = {"mode": mode, "line": {"width": 2, "color": colour, "dash": dash}}
    yield trace | look | {"x": line.x, "y": line.y, "meta": places, "marker": {"size": 5}}


def _stack(
    title: str, runs: Sequence[Run], parts: Mapping[str, Callable[[Row], float]]
) -> dict[str, Any]:
    """Return stacked areas over the steps, the mean over the seeds."""
    data = []
    for number, (name, value) in enumerate(parts.items()):
        line = _curve(runs, value)
        look = {"width": 0.5, "color": _style(number)[0]}
        area = {"type": "scatter", "stackgroup": "all", "mode": "lines", "line": look}
        if any(line.y):
            data.append(area | {"x": line.x, "y": line.y, "name": name})
    return {"title": title, "data": data, "yaxis": {}, "legend": True}


def _style(number: int) -> tuple[str, str]:
    """Return the colour and dash of a variant's lines."""
    return _COLOURS[number % len(_COLOURS)], _DASHES[number // len(_COLOURS) % len(_DASHES)]


# ---- prompts, settings, machines ----------------------------------------------------------------


def _prompts(run: Run, limit: int) -> Iterator[dict[str, Any]]:
    """Yield the newest prompts of a run, and those with texts, which are half of them at most."""
    samples = {_key(row): row for row in deque(run.samples(), maxlen=limit // 2)}
    chosen: deque[dict[str, Any]] = deque(maxlen=max(0, limit - len(samples)))
    with_texts = []
    for record in run.records() if limit else ():
        (with_texts if _key(record) in samples else chosen).append(record)
    for record in [*with_texts, *chosen]:
        try:
            yield _prompt(run, record, samples.get(_key(record)))
        except (LookupError, TypeError, ValueError, AttributeError):
            run.damaged["records.jsonl"] += 1


def _key(row: Mapping[str, Any]) -> tuple[int, str]:
    return row["step"], str(row.get("problem_id"))


def _prompt(run: Run, record: Mapping[str, Any], sample: Any) -> dict[str, Any]:
    """Return what the page shows of a prompt; ``path`` says in short what was tried."""
    trained = {int(at) for at, _ in record["rows"]}
    rounds = []
    for number, each in enumerate(record["rounds"]):
        marks = "".join({1: "✓", 0: "✗"}.get(accuracy, "?") for accuracy in each["accuracies"])
        who = each.get("role", "solver")
        where = f"level {each['level']}" if who == "solver" else who
        count = f"{marks.count('✓')}/{len(marks)}" if marks else each["hint_status"]
        told = {"short": f"{where} {count}", "marks": marks, "trains": number in trained}
        rounds.append(told | {"tokens": int(each["tokens"]), "prompt": each["prompt"]})
    rewards, reasons = record["rewards"], record["reasons"]
    flags = [name for name in ("off_schedule", "dropped") if record.get(f"is_{name}")]
    flags += ["a hint holds the answer"] if record.get("leaked_levels") else []
    is_informative = "dropped" not in flags and has_signal(rewards, record.get("groups", ()))
    texts = None
    if sample:
        texts = {
            "problem": _text(sample["problem"]),
            "answer": _text(sample["answer"]),
            "hints": [(e["level"], _text(e["hint"])) for e in sample["rounds"] if e.get("hint")],
            "responses": [
                {**each, "count": len(each["rows"]), "response": _text(each.get("response", ""))}
                for each in sample["responses"][:_MAX_RESPONSES]
            ],
        }
    return {
        "run": run.name,
        "step": record["step"],
        "problem": _text(record["problem_id"])[:200],
        "path": " → ".join(each["short"] for each in rounds),
        "rounds": rounds,
        "reward": sum(rewards) / len(rewards) if rewards else 0.0,
        "reasons": ", ".join(f"{count} × {name}" for name, count in reasons.items()),
        "tags": ["informative" if is_informative else "not informative", *flags],
        "texts": texts,
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


def _machines(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return machine and versions; of several runs each value once."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, value in _leaves(run.machine).items():
            found.setdefault(name, {})[value] = None
    return [(name, " | ".join(values)) for name, values in found.items() if name]

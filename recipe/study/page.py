"""One HTML file that shows runs: the numbers that matter, curves, prompts with texts, settings.

It asks no network for anything.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import json
import math
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from omegaconf import OmegaConf
from plotly.offline import get_plotlyjs

from recipe.hint.command.compose import CONFIG_DIR, primary_config, set_config_paths
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
    charts = [*_charts(variants, sources)]
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
    there = [set(each) for each in seeds if each]
    steps = sorted(set.intersection(*there)) if there else []
    stride = -(-len(steps) // _MAX_POINTS) or 1
    line = Line([], [], [], [])
    for step in [*steps[:-1:stride], *steps[-1:]]:
        values = [each[step] for each in seeds if each]
        mean, half = sum(values) / len(values), 0.0
        if len(values) > 1:
            variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
            half = t_quantile(len(values) - 1) * math.sqrt(variance / len(values))
        low, high = mean - half, mean + half
        if num_problems is not None:
            share = min(max(mean, 0.0), 1.0)
            ends = wilson_interval(share, num_problems) if num_problems else (share, share)
            low, high = max(0.0, min(low, ends[0])), min(1.0, max(high, ends[1]))
        for column, each in zip(line, (step, *(mean, low, high)), strict=True):
            column.append(float(f"{each:.5g}") if column is not line.x else step)
    return line


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
    everything = [run for group in variants.values() for run in group]
    levels = sorted({level for run in everything for level in run.levels})
    lines = {
        f"Accuracy, {source}": functools.partial(_accuracy, source=source) for source in sources
    }
    for title, value in CURVES.items():
        share = 0 if title.endswith(", share") else None
        lines[title] = lambda group, value=value, share=share: _line(
            [_points(run, value) for run in group], share
        )
    for title, of in lines.items():
        found = {name: of(group) for name, group in variants.items()}
        if any(any(line.high) for line in found.values()):
            yield _line_chart(title, found, variants)
    for name, group in variants.items() if len(variants) <= _MAX_STACKED else ():
        more = "" if len(variants) == 1 else f": {name}"
        if {*levels} - {0}:
            shares = {
                f"level {level}" if level else "no hint": functools.partial(
                    level_share, level=level
                )
                for level in levels
            }
            yield from _stack(f"Prompts by the hint level that trains, share{more}", group, shares)
        phases = {
            label: lambda row, key=key: row.get(f"timing_s/{key}", 0.0)
            for label, key in _PHASES.items()
        }
        yield from _stack(f"Seconds of a step{more}", group, phases)


def _line_chart(title: str, lines: Mapping[str, Line], variants: Runs) -> dict[str, Any]:
    """Draw a line per variant with a band over its seeds; the page has one legend for all."""
    data, axes = [], {name: [] for name in ("step", "tokens sampled", "minutes of steps")}
    for number, (name, line) in enumerate(lines.items()):
        colour, dash = _style(number)
        spent = _spent(variants[name], line.x)
        places = dict(zip(axes, (line.x, *spent), strict=True))
        shared = {"type": "scatter", "x": line.x, "legendgroup": str(number), "name": name}
        if line.low != line.high and len(lines) <= _MAX_STACKED:
            band = {"x": [*line.x, *line.x[::-1]], "y": line.high + line.low[::-1]}
            look = {"fill": "toself", "fillcolor": colour, "opacity": 0.18, "mode": "none"}
            data.append(shared | band | look | {"hoverinfo": "skip"})
            for axis, at in places.items():
                axes[axis].append([*at, *at[::-1]])
        look = {"width": 2, "color": colour, "dash": dash}
        mode = "lines+markers" if len(line.x) < 40 else "lines"
        data.append(shared | {"y": line.y, "mode": mode, "line": look, "marker": {"size": 5}})
        for axis, at in places.items():
            axes[axis].append(at)
    layout: dict[str, Any] = {"showlegend": False}
    if "ccuracy" in title:
        layout["yaxis"] = {"range": [-0.02, 1.02], "tickformat": ".0%"}
    return {"section": "curves", "title": title, "data": data, "layout": layout, "axes": axes}


def _spent(runs: Sequence[Run], steps: Sequence[int]) -> list[list[float]]:
    """Return the tokens and the minutes up to each step, means over the seeds."""
    found = []
    for names, factor in ((TOKENS, 1.0), ((SECONDS,), 1 / 60)):
        total: Counter[int] = Counter()
        for row in (row for run in runs for row in run.training):
            total[row["step"]] += sum(row.get(name, 0.0) for name in names) / len(runs)
        sums = dict(
            zip(sorted(total), itertools.accumulate(total[x] for x in sorted(total)), strict=True)
        )
        found.append([factor * sums.get(step, 0.0) for step in steps])
    return found


def _stack(
    title: str, runs: Sequence[Run], parts: Mapping[str, Callable[[Row], float]]
) -> Iterator[dict[str, Any]]:
    """Yield stacked areas over the steps, the mean over the seeds; none without data."""
    data = []
    for number, (name, value) in enumerate(parts.items()):
        line = _line([_points(run, value) for run in runs])
        if any(line.y):
            look = {"width": 0.5, "color": _COLOURS[number % len(_COLOURS)]}
            area = {"type": "scatter", "stackgroup": "all", "mode": "lines", "line": look}
            data.append(area | {"x": line.x, "y": line.y, "name": name})
    if data:
        yield {"section": "parts", "title": title, "data": data, "layout": {}, "axes": {}}


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
    usual = _leaves(OmegaConf.to_container(primary_config(CONFIG_DIR), resolve=False))
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

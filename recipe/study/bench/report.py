"""From the steps of a benchmark to its tables: pure arithmetic on the rows it wrote."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from recipe.hint.methods import BASELINE

Row = Mapping[str, Any]
_PROCESSES = ("server", "worker", "driver")
_MEANS = (
    *("step_s", "rollout_s", "update_s", "other_s", "before_s", "after_s"),
    *("accepted_tokens", "discarded_tokens", "hint_tokens", "level0", "unresolved"),
    *("prompt_tokens", "cached_tokens"),
    *(f"{part}_cpu_s" for part in _PROCESSES),
)
# Column of the table -> the number's name and form.
_COLUMNS = {
    "step s": ("step_s", ".2f"),
    "rollout": ("rollout_s", ".2f"),
    "update": ("update_s", ".2f"),
    "other": ("other_s", ".2f"),
    "accepted": ("accepted_tokens", ".0f"),
    "discarded": ("discarded_tokens", ".0f"),
    "hint tok": ("hint_tokens", ".0f"),
    "tok/s": ("tokens_per_s", ".0f"),
    "cached": ("cached_share", ".1%"),
    "unresolved": ("unresolved_share", ".0%"),
    **{f"{part} cpu s": (f"{part}_cpu_s", ".2f") for part in _PROCESSES},
}


def summary_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Return means per arm, and ratios to the baseline paired by round.

    Args:
        rows: One per step, as ``bench.jsonl`` holds them; those not counted are left out.

    Returns:
        ``arms`` (name to numbers), ``alone`` (where it was measured) and ``rounds``.
    """
    by_arm: dict[str, dict[int, Row]] = {}
    for row in rows:
        if row["is_counted"]:
            by_arm.setdefault(row["arm"], {})[row["round"]] = row
    base = by_arm[BASELINE]
    arms = {name: _arm(steps, base) for name, steps in by_arm.items()}
    return {"rounds": len(base), "arms": arms, "alone": _alone(base)}


def _arm(steps: Mapping[int, Row], base: Mapping[int, Row]) -> dict[str, Any]:
    result: dict[str, Any] = {
        name: statistics.fmean(step[name] for step in steps.values()) for name in _MEANS
    }
    pairs = [(step, base[number]) for number, step in steps.items()]
    measures = {
        "rollout_ratio": [_ratio(one["rollout_s"], two["rollout_s"]) for one, two in pairs],
        "step_ratio": [_ratio(one["step_s"], two["step_s"]) for one, two in pairs],
        "token_ratio": [_ratio(_tokens(one), _tokens(two)) for one, two in pairs],
    }
    return result | {
        "tokens_per_s": _tokens(result) / result["rollout_s"],
        "cached_share": _ratio(result["cached_tokens"], result["prompt_tokens"]),
        "unresolved_share": _ratio(result["unresolved"], result["level0"]),
        **{name: spread(values) for name, values in measures.items()},
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return middle, mean, smallest and largest, and the standard error of the mean."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {
        "median": statistics.median(values),
        "mean": statistics.fmean(values),
        "min": min(values),
        "max": max(values),
        "error": deviation / len(values) ** 0.5,
    }


def lines_of(summary: Mapping[str, Any]) -> list[str]:
    """Return the tables for the console."""
    arms = summary["arms"]
    table = [["arm", *_COLUMNS]]
    table += [
        [name, *(format(arm[key], form) for key, form in _COLUMNS.values())]
        for name, arm in arms.items()
    ]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [f"{summary['rounds']} rounds, means per step"]
    for head, *cells in table:
        shown = (f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        lines.append("  ".join([f"{head:{widths[0]}}", *shown]))
    lines += ["", f"to {BASELINE}: median [min, max]"]
    for name, arm in arms.items():
        if name != BASELINE:
            ratios = (f"{what} {_shown(arm[f'{what}_ratio'])}" for what in _RATIOS)
            lines.append("   ".join([f"{name:{widths[0]}}", *ratios]))
    if alone := summary["alone"]:
        share = arms[BASELINE]["tokens_per_s"] / alone["tokens_per_s"]
        lines += [
            "",
            f"vLLM alone, the same requests: {alone['tokens_per_s']:.0f} tokens/s; {BASELINE} "
            f"reaches {share:.2f} of it",
        ]
    return lines


_RATIOS = ("rollout", "token", "step")


def _alone(base: Mapping[int, Row]) -> dict[str, float]:
    rows = [row for row in base.values() if "alone_s" in row]
    if not rows:
        return {}
    tokens, seconds = (sum(row[name] for row in rows) for name in ("alone_tokens", "alone_s"))
    return {"tokens_per_s": tokens / seconds, "seconds": seconds / len(rows)}


def _tokens(row: Row) -> float:
    return row["accepted_tokens"] + row["discarded_tokens"] + row["hint_tokens"]


def _ratio(value: float, other: float) -> float:
    return value / other if other else 0.0


def _shown(ratio: Mapping[str, float]) -> str:
    return f"{ratio['median']:.2f} [{ratio['min']:.2f}, {ratio['max']:.2f}]"

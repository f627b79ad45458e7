"""From the steps of a benchmark to its tables: pure arithmetic on the rows it wrote."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from recipe.hint.methods import BASELINE, RELEASED
from recipe.study.bench.settings import RELEASE, method_of

Row = Mapping[str, Any]
_PROCESSES = ("server", "worker", "driver")
_MEANS = (
    *("step_s", "rollout_s", "update_s", "other_s", "before_s", "after_s"),
    *("accepted_tokens", "discarded_tokens", "hint_tokens", "level0", "unresolved"),
    *("prompt_tokens", "cached_tokens"),
    *(f"{part}_cpu_s" for part in _PROCESSES),
)
_PHASES = ("rollout_s", "step_s")
_SHARES = (0.1, 0.2, 0.3)


def summary_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Return means per arm, and ratios to the baseline paired by round.

    Args:
        rows: One per step, as ``bench.jsonl`` holds them; those not counted are left out.

    Returns:
        ``arms`` (name to numbers), ``alone`` (where it was measured) and ``rounds``.
    """
    counted = [row for row in rows if row["is_counted"]]
    by_arm: dict[str, dict[int, Row]] = {}
    for row in counted:
        by_arm.setdefault(row["arm"], {})[row["round"]] = row
    base = by_arm[BASELINE]
    arms = {name: _arm(steps, base) for name, steps in by_arm.items()}
    return {"rounds": len(base), "arms": arms, "alone": _alone(base)}


def _arm(steps: Mapping[int, Row], base: Mapping[int, Row]) -> dict[str, Any]:
    result: dict[str, Any] = {
        name: statistics.fmean(step[name] for step in steps.values()) for name in _MEANS
    }
    tokens = result["accepted_tokens"] + result["discarded_tokens"] + result["hint_tokens"]
    generated = [_ratio(_tokens(step), _tokens(base[turn])) for turn, step in steps.items()]
    return result | {
        "tokens_per_s": tokens / result["rollout_s"],
        "cached_share": _ratio(result["cached_tokens"], result["prompt_tokens"]),
        "unresolved_share": _ratio(result["unresolved"], result["level0"]),
        **{
            f"{what}_ratio": spread(
                [_ratio(step[f"{what}_s"], base[turn][f"{what}_s"]) for turn, step in steps.items()]
            )
            for what in ("rollout", "step")
        },
        "token_ratio": spread(generated),
        "rollout_fastest_s": min(step["rollout_s"] for step in steps.values()),
        "step_fastest_s": min(step["step_s"] for step in steps.values()),
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


def predicted(arm: Mapping[str, Any], base: Mapping[str, Any], share: float) -> dict[str, float]:
    """Return what the cost model says at another share of unresolved prompts.

    What an arm costs beyond the baseline is taken to grow in proportion to that share, in the
    rollout and in the rest of the step alike (docs/lab/performance.md).

    Args:
        arm: Numbers of an arm, from :func:`summary_of`.
        base: Those of the baseline.
        share: Of prompts that level 0 leaves unresolved, in [0, 1].
    """
    scale = _ratio(share, base["unresolved_share"])
    return {
        name: 1 + (_ratio(arm[key], base[key]) - 1) * scale
        for name, key in (("rollout", "rollout_s"), ("step", "step_s"))
    }


def lines_of(summary: Mapping[str, Any]) -> list[str]:
    """Return the tables for the console."""
    arms = summary["arms"]
    width = max(len(name) for name in arms)
    head = (
        f"{'arm':{width}}  step s  rollout  update  other  accepted  discarded  hint tok  "
        f"tok/s  cached  unresolved"
    )
    lines = [f"{summary['rounds']} rounds, means per step", head]
    for name, arm in arms.items():
        lines.append(
            f"{name:{width}}  {arm['step_s']:6.2f}  {arm['rollout_s']:7.2f}  "
            f"{arm['update_s']:6.2f}  {arm['other_s']:5.2f}  {arm['accepted_tokens']:8.0f}  "
            f"{arm['discarded_tokens']:9.0f}  {arm['hint_tokens']:8.0f}  "
            f"{arm['tokens_per_s']:5.0f}  {arm['cached_share']:6.1%}  "
            f"{arm['unresolved_share']:10.0%}"
        )
    lines += ["", f"{f'to {BASELINE}: median [min, max]; fastest rollout / step':{width}}"]
    for name, arm in arms.items():
        if name != BASELINE:
            parts = (
                f"{what} {_shown(arm[f'{what}_ratio'])}" for what in ("rollout", "token", "step")
            )
            fastest = (
                _ratio(arm[f"{what}_fastest_s"], arms[BASELINE][f"{what}_fastest_s"])
                for what in ("rollout", "step")
            )
            shown = " / ".join(f"{ratio:.2f}" for ratio in fastest)
            lines.append(f"{name:{width}}  {'   '.join(parts)}   fastest {shown}")
    lines += ["", *_processors(arms, width), "", *_comparison(arms), *_predictions(arms)]
    if alone := summary["alone"]:
        share = arms[BASELINE]["tokens_per_s"] / alone["tokens_per_s"]
        lines.append(
            f"vLLM alone, the same requests: {alone['tokens_per_s']:.0f} tokens/s; {BASELINE} "
            f"reaches {share:.2f} of it"
        )
    return lines


def _processors(arms: Mapping[str, Any], width: int) -> list[str]:
    """Return processor time, which other work stretches less than wall-clock time."""
    head = f"{'processor s':{width}}  server  worker  driver"
    lines = [f"{head}   to {BASELINE}   before / after generation"]
    whole = sum(arms[BASELINE][f"{part}_cpu_s"] for part in _PROCESSES)
    for name, arm in arms.items():
        parts = [arm[f"{part}_cpu_s"] for part in _PROCESSES]
        shown = "  ".join(f"{part:6.2f}" for part in parts)
        lines.append(
            f"{name:{width}}  {shown}   {_ratio(sum(parts), whole):7.2f}   "
            f"{arm['before_s']:.2f} / {arm['after_s']:.2f} s"
        )
    return lines


def _comparison(arms: Mapping[str, Any]) -> list[str]:
    same = method_of(RELEASE)
    if not {RELEASE, same} <= arms.keys():
        return []
    rollout, step = (_ratio(arms[RELEASE][key], arms[same][key]) for key in _PHASES)
    return [f"{RELEASE} / {same}: rollout {rollout:.2f}, step {step:.2f}"]


def _predictions(arms: Mapping[str, Any]) -> list[str]:
    lines = []
    for name in RELEASED:
        if name not in arms:
            continue
        parts = []
        for share in _SHARES:
            ratios = predicted(arms[name], arms[BASELINE], share)
            parts.append(f"{share:.0%}: {ratios['rollout']:.2f} / {ratios['step']:.2f}")
        lines.append(f"{name} by the cost model, rollout / step: {', '.join(parts)} unresolved")
    return lines


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

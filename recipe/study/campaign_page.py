"""The page of results: every number from the runs of one or more campaigns, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np
import pandas as pd

from recipe.study.campaign import MEASURES, Budget, Claim
from recipe.study.campaign_results import CampaignResult, Finished, shown
from recipe.study.estimators import holm
from recipe.study.runs import VLLM_DIFFERENCE, level_share
from recipe.study.tables import markdown, percent

_ABOUT = """\
# Results

Written by `python recipe/hint/main_report.py campaign DIR ... -o FILE` from the runs of the
[campaigns](../campaigns.md); no number here is typed by hand. Accuracies are per cent of held-out
problems after the last step, with 95 % intervals in brackets, over seeds and problems (with one
seed over problems alone); differences are paired by seed and problem. Arms are compared after equal
numbers of **steps**, in the column "at X's tokens" after equal tokens. "50 % at" is the first
validation that reaches a half, of the seeds that got there. A number in brackets after a mean
counts its seeds, where others have no value. Tokens are those sampled in training, hints included.

A claim holds or fails if its whole interval lies on one side of the bound, and is undecided if the
interval contains the bound. Each is judged alone; beside it stands p, and in brackets p corrected
(Holm) for all {compared} claims of this page that one arm is above another: **from 0.05 on, a
verdict does not survive the correction.** [What intervals and claims
cover](../campaigns.md#the-page).
"""
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def results_page(results: Sequence[CampaignResult]) -> str:
    """Return the whole page."""
    known = {
        (place, claim): p
        for place, result in enumerate(results)
        for claim in result.campaign.claims
        if (p := result.p_value(claim)) is not None
    }
    corrected = dict(zip(known, holm([*known.values()]), strict=True))
    lines = [_ABOUT.format(compared=len(known))]
    for place, result in enumerate(results):
        p_values = {
            claim: f"{_probability(p)} ({_probability(corrected[at, claim])})"
            for (at, claim), p in known.items()
            if at == place
        }
        lines += [f"## {result.campaign.title}", "", *_conditions(result), ""]
        for title, (head, rows) in _tables(result, p_values):
            if rows:
                lines += [f"### {title}", "", *markdown(head, rows), ""]
    return "\n".join(lines)


def _probability(p: float) -> str:
    """Write a p value so that it is on the side of 0.05 that it is on."""
    if p < 0.001:
        return "< 0.001"
    text = f"{p:.2g}"
    return text if (float(text) < 0.05) == (p < 0.05) else f"{p:.4f}"


def _tables(result: CampaignResult, p_values: Mapping[Claim, str]) -> Iterator[tuple[str, Table]]:
    yield "Claims", _claims(result, p_values)
    for source in result.sources:
        yield f"Held-out problems, {source}", _held_out(result, source)
        reference = result.campaign.compared_with
        yield f"Less {reference}, {source}", _held_out(result, source, reference)
        yield f"By seed, {source}", _by_seed(result, source)
        yield f"Accuracy in training's own validations, {source}", _learning(result, source)
    yield "Cost", _cost(result)
    yield "Levels over the quarters of training, % of prompts", _levels(result)


def _conditions(result: CampaignResult) -> list[str]:
    """Return what was run, on what, and what is missing."""
    runs, lines = result.runs, []
    sizes = [f"{len(runs[0].problems(each))} problems of {each}" for each in runs[0].kept["means"]]
    facts: dict[str, Callable[[Finished], Any]] = {
        "Training steps": lambda run: run.last_step,
        "Drawn": lambda run: {"K": run.kept["num_responses"], **run.kept["sampling"], "seed": ""},
        "Machine": lambda run: run.machine.get("machine", {}).get("driver", ""),
        "Versions": lambda run: run.machine.get("version", {}) | {"commit": ""},
        "Commit": lambda run: run.machine.get("version", {}).get("commit", ""),
    }
    for title, fact in facts.items():
        found: dict[str, list[str]] = {}
        for run in runs:
            text = value = fact(run)
            if isinstance(value, dict):
                text = ", ".join(f"{name} {each}" for name, each in value.items() if each != "")
            found.setdefault(str(text), []).append(run.name)
        for text, names in found.items():
            of = f" of {', '.join(names)}" if len(found) > 1 else ""
            lines.append(f"- {title}{of}: {text}")
    notes = {
        "Damaged lines, left out": [
            f"{run.name} {n} of {name}" for run in runs for name, n in run.damaged.items()
        ],
        "Steps or tokens missing in the metrics": [run.name for run in runs if not run.num_whole],
        "The verifier failed on responses, which count as wrong in an accuracy": [
            f"{run.name} {sum(counts.values())} of {source}"
            for run in runs
            for source, counts in run.kept["ungraded"].items()
        ],
        "Not finished": [f"{name} {why}" for name, why in result.missing.items()],
    }
    return [
        f"- {len(runs)} of {len(result.campaign.plans())} runs: "
        f"`{' '.join(result.campaign.settings)}`",
        f"- Evaluated: the weights of the last step, {' and '.join(sizes)}",
        *lines,
        *(f"- **{title}**: {', '.join(each)}" for title, each in notes.items() if each),
    ]


def _claims(result: CampaignResult, p_values: Mapping[Claim, str]) -> Table:
    rows = []
    for each in (*result.campaign.claims, *result.campaign.budgets):
        if isinstance(each, Budget):
            said = f"{each.arm}: at most {each.at_most:g} times the tokens of {each.tokens_of}"
            other, (text, verdict), p = each.tokens_of, result.cost(each), "-"
        else:
            said, other = _said(each), each.more_than or each.arm
            (text, verdict), p = result.verdict(each), p_values.get(each, "-")
        a, b = {"fails": ("**", "**"), "undecided": ("", "**")}.get(verdict, ("", ""))
        seeds = str(len(result.common_seeds(each.arm, other)))
        rows.append([f"{a}{said}{a}", seeds, text, p, f"{b}{verdict}{b}"])
    return ["claim", "seeds", "measured", "p (corrected)", "verdict"], rows


def _said(claim: Claim) -> str:
    """Return a claim as a sentence."""
    about = f"{claim.arm}: {MEASURES[claim.measure]} on {claim.source}"
    if claim.more_than is not None:
        by = f" {'less' if claim.by < 0 else 'and'} {percent(abs(claim.by))}" if claim.by else ""
        return f"{about} above that of {claim.more_than}{by}"
    if claim.at_least is not None:
        return f"{about} at least {percent(claim.at_least)}, every seed"
    return f"{about} below {percent(claim.below or 0.0)}, every seed"


def _held_out(result: CampaignResult, source: str, minus: str | None = None) -> Table:
    """Return the measures of each arm, or what they have more than those of the reference."""
    names, rows = result.measures(source), []
    if minus:
        names = [each for each in names if each in ("acc_t1", "acc_t2", "delta", "accuracy")]
    for arm in result.seeds:
        if arm != minus:
            found = {name: result.estimate(arm, source, name, minus) for name in names}
            cells = [
                shown(each, sign=bool(minus) or name == "delta") if each else "-"
                for name, each in found.items()
            ]
            rows.append([arm, str(len(result.common_seeds(arm, minus or arm))), *cells])
    return ["arm", "seeds", *(MEASURES[name] for name in names)], rows


def _by_seed(result: CampaignResult, source: str) -> Table:
    numbers = sorted({seed for by_seed in result.seeds.values() for seed in by_seed})
    rows = []
    for arm, seeds in result.seeds.items():
        cells = []
        for seed in numbers:
            have = seeds[seed].kept["means"].get(source, {}) if seed in seeds else {}
            names = [each for each in ("acc_t1", "acc_t2", "accuracy") if each in have]
            cells.append(" > ".join(percent(fmean(have[name].values())) for name in names) or "-")
        rows.append([arm, *cells])
    return ["arm", *(f"seed {seed}" for seed in numbers)], rows


def _learning(result: CampaignResult, source: str) -> Table:
    """Return the mean over seeds at each validation, at equal tokens, and when it was a half."""
    reference = result.campaign.compared_with
    references = result.seeds.get(reference, {})
    steps = sorted({step for run in result.runs for step in run.curve(source)})
    rows = []
    for arm, runs in result.seeds.items():
        columns = [[run.curve(source).get(step) for run in runs.values()] for step in steps]
        equal = [_at_tokens(run, references.get(seed), source) for seed, run in runs.items()]
        first = [
            (run, min(at))
            for run in runs.values()
            if (at := [step for step, value in run.curve(source).items() if value >= 0.5])
        ]
        half = []
        if first:
            half = [f"step {fmean(step for _, step in first):.0f}"]
            if all(run.num_whole for run in runs.values()):
                half.append(f"{fmean(run.tokens(step) for run, step in first) / 1000:.0f}k tokens")
                half.append(f"{_mean([run.minutes(step) for run, step in first], '{:.1f}')} min")
            half[-1] += f" ({len(first)} of {len(runs)})"
        rows.append([arm, *map(_mean, [*columns, equal]), ", ".join(half) or "-"])
    head = ["arm", *(f"step {step}" for step in steps), f"at {reference}'s tokens"]
    return [*head, "50 % at (seeds)"], rows


def _mean(values: Sequence[float | None], form: str = "") -> str:
    """Return the mean of what is known, with the number of seeds where some are not."""
    known = [each for each in values if each is not None]
    if not known:
        return "-"
    part = f" ({len(known)})" if len(known) < len(values) else ""
    return f"{form.format(fmean(known)) if form else percent(fmean(known))}{part}"


def _at_tokens(run: Finished, other: Finished | None, source: str) -> float | None:
    """Return the accuracy when as many tokens were sampled as by another run; if that is known."""
    points = [(run.tokens(step), value) for step, value in run.curve(source).items()]
    if other is None or not (points and run.num_whole and other.num_whole):
        return None
    tokens = min(other.tokens(), run.tokens())
    tokens_V, accuracies_V = zip(*points, strict=True)
    is_covered = tokens_V[0] <= tokens <= tokens_V[-1]
    return float(np.interp(tokens, tokens_V, accuracies_V)) if is_covered else None


def _cost(result: CampaignResult) -> Table:
    """Return means over seeds, and the ratio over those that both have; ``-`` where lines lack."""
    rows, reference = [], result.campaign.compared_with
    whole = {
        arm: all(run.num_whole for run in seeds.values()) for arm, seeds in result.seeds.items()
    }
    for arm, seeds in result.seeds.items():
        runs, cells = [*seeds.values()], ["-"] * 3
        if whole[arm]:
            ratios = result.token_ratios(arm, reference) if whole.get(reference) else []
            cells = [
                f"{fmean(run.tokens() for run in runs) / 1000:.0f}k",
                f"{geometric_mean(ratios):.2f}" if ratios else "-",
                _mean([run.minutes() for run in runs], "{:.1f}"),
            ]
        late = [_late(run) for run in runs]
        gaps = [row[VLLM_DIFFERENCE] for r in runs for row in r.training if VLLM_DIFFERENCE in row]
        rows.append([arm, *cells, _mean(late), f"{max(gaps):.1e}" if gaps else "-"])
    head = ["arm", "tokens a run", f"times {reference}'s", "minutes of steps"]
    late_title = "informative groups in the last quarter, %"
    return [*head, late_title, "trainer against vLLM, worst step's mean"], rows


def _late(run: Finished) -> float | None:
    """Return the share of informative groups in the last quarter of the steps."""
    name, after = "hint/zero_signal_after", 0.75 * run.last_step
    late = [1 - row[name] for row in run.training if row["step"] > after and name in row]
    return fmean(late) if late else None


def _levels(result: CampaignResult) -> Table:
    """Return the shares of the levels in each quarter of training, of the arms that use hints."""
    highest = max((level for run in result.runs for level in run.levels), default=0)
    rows = [
        {"arm": arm, "quarter": math.ceil(4 * row["step"] / run.last_step)}
        | {level: 100 * level_share(row, level) for level in range(highest + 1)}
        for arm, seeds in result.seeds.items()
        if max(level for run in seeds.values() for level in run.levels | {0})
        for run in seeds.values()
        for row in run.training
    ]
    if not rows:
        return [], []
    shares = pd.DataFrame(rows).groupby(["arm", "quarter"], sort=False).mean()
    cells: dict[str, list[str]] = {}
    for (arm, _), of_levels in shares.iterrows():
        own = max(level for run in result.seeds[arm].values() for level in run.levels)
        text = " / ".join(f"{share:.0f}" for share in of_levels[: own + 1])
        cells.setdefault(arm, [arm]).append(text)
    levels = " / ".join(["none", *map(str, range(1, highest + 1))])
    head = ["arm", f"quarter 1: {levels}", *(f"quarter {each}" for each in range(2, 5))]
    return head, [*cells.values()]

"""The page of results: every number from the runs of one or more campaigns, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np

from recipe.study.campaign import MEASURES, Budget, Claim
from recipe.study.campaign_results import NOT_RUN, CampaignResult, Finished, shown
from recipe.study.estimators import holm
from recipe.study.runs import VLLM_DIFFERENCE, level_share
from recipe.study.tables import markdown, percent

# Metrics of training steps: title, name, and what makes the shown number of it.
_LATE: Sequence[tuple[str, str, Callable[[float], float]]] = (
    ("prompts with signal, %", "hint/zero_signal_after", lambda share: 100 * (1 - share)),
    ("never solved, hints included, %", "reward_tracking/pct_never_solved", float),
    ("never solved without a hint, %", "reward_tracking/pct_never_solved_unhinted", float),
    ("never gave signal, %", "reward_tracking/pct_never_mixed", float),
    ("prompts with a hint", "hint/prompts_with_hint", float),
    ("hints that leak", "hint/leaked", float),
    ("feedback that leaks, %", "turns/leaks", lambda share: 100 * share),
    ("unchanged, %", "turns/unchanged", lambda share: 100 * share),
    ("entropy", "actor/entropy", float),
    ("response tokens", "response_length/mean", float),
)
_LATE_SHARE = 0.25  # of the steps
_LEVEL = 0.05  # of p, as intervals are at 95 %
_QUARTERS = 4

_ABOUT = """\
# Results

Written by `python recipe/hint/main_report.py campaign DIR ... -o FILE` from the runs of the
[campaigns](../campaigns.md); no number here is typed by hand. Accuracies are per cent of held-out
problems after the last step, with 95 % intervals in brackets. For an arm with several seeds the
interval is over seeds and problems. With one seed it is over problems alone and says nothing about
other seeds. Differences are paired by seed and problem.

Held-out accuracies and claims compare arms after equal numbers of **steps**, in which arms sample
different numbers of tokens. The column "at X's tokens" compares after equal tokens: it reads an
arm's validations during training, joined by straight lines, at the total tokens of X's run with the
same seed (or takes the last validation if the arm sampled fewer). These validations play as many
turns as the arm trains. "50 % at" is the first validation that reaches a half; it averages only the
seeds that got there, which favours arms with slow seeds. A number in brackets after a mean counts
its seeds, where others have no value.

Tokens are those sampled in training, hints included. Prompts, reference solutions and hints written
beforehand count nothing. Minutes were often taken beside other work on the same machine and say
little.

A claim holds or fails if its whole interval lies on one side of the bound, and is undecided if the
interval contains the bound. A comparison needs three seeds; with fewer its verdict is "not known".
Each claim is judged alone. Beside it stands p, the probability of such a difference or a larger
one, to either side, if there were none, and in brackets p corrected (Holm) for all {compared}
claims of this page that one arm is above another: **from 0.05 on, a verdict does not survive the
correction.** Claims with a margin have no p: one that allows for a loss may hold without a
difference. Where seeds either learn or do not, an interval of a few seeds is too narrow
([campaigns](../campaigns.md#the-page)).
"""


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
        for title, table in _tables(result, p_values):
            lines += [f"### {title}", "", *table, ""]
    return "\n".join(lines)


def _probability(p: float) -> str:
    """Write a p value so that it is on the side of 0.05 that it is on."""
    if p < 0.001:
        return "< 0.001"
    text = f"{p:.2g}"
    return text if (float(text) < _LEVEL) == (p < _LEVEL) else f"{p:.4f}"


def _tables(
    result: CampaignResult, p_values: Mapping[Claim, str]
) -> Iterator[tuple[str, list[str]]]:
    if result.campaign.claims or result.campaign.budgets:
        yield "Claims", _claims(result, p_values)
    for source in result.sources():
        yield f"Held-out problems, {source}", _held_out(result, source)
        if len(result.seeds) > 1:
            reference = result.campaign.compared_with
            yield f"Less {reference}, {source}", _held_out(result, source, reference)
        yield f"By seed, {source}", _by_seed(result, source)
        yield f"Accuracy in training's own validations, {source}", _learning(result, source)
    yield "Cost", _cost(result)
    yield f"Training, mean of the last {_LATE_SHARE:.0%} of the steps", _late(result)
    if levels := _levels(result):
        yield "Levels over the quarters of training, % of prompts", levels
    yield "What sets the arms apart", _settings(result)


def _conditions(result: CampaignResult) -> list[str]:
    """Return what was run, on what, and what is missing."""
    runs, first = result.runs, result.runs[0].held_out
    sizes = [f"{len(first.problems(source))} problems of {source}" for source in first.means]
    lines = [
        f"- {len(runs)} of {len(result.campaign.plans())} runs",
        *_told("Training steps", runs, lambda run: str(run.last_step)),
        f"- Evaluated: the weights of the last step, {' and '.join(sizes)}",
        *_told("Drawn", runs, _drawn),
        f"- Settings of all: `{' '.join(result.campaign.settings)}`",
        *_told("Machine", runs, lambda run: run.machine.get("machine", {}).get("driver", "")),
        *_told("Versions", runs, lambda run: _listed(run.machine.get("version", {}), "commit")),
        *_told("Commit", runs, lambda run: run.machine.get("version", {}).get("commit", "")),
    ]
    damaged = [f"{run.name} {n} of {name}" for run in runs for name, n in run.damaged.items()]
    if damaged:
        lines.append(f"- **Damaged lines, left out**: {', '.join(damaged)}")
    if partial := [run.name for run in runs if not run.steps_with_tokens()]:
        lines.append(f"- **Steps or tokens missing in the metrics**: {', '.join(partial)}")
    ungraded = [
        f"{run.name} {sum(counts.values())} of "
        f"{run.held_out.num_responses * len(run.held_out.problems(source))} of {source}"
        for run in runs
        for source, counts in run.held_out.ungraded.items()
    ]
    if ungraded:
        what = "wrong in an accuracy, left out where turns are compared"
        lines.append(f"- **The verifier failed on responses** ({what}): {', '.join(ungraded)}")
    seeds: dict[str, list[str]] = {}
    for plan, what in result.missing:
        if what == NOT_RUN:
            seeds.setdefault(plan.arm, []).append(str(plan.seed))
        else:
            lines.append(f"- **Not finished**: {plan.name} {what}")
    return [*lines, f"- **Not run** (seeds): {_by_arm(seeds)}"] if seeds else lines


def _by_arm(seeds: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{arm} ({', '.join(each)})" for arm, each in seeds.items())


def _told(title: str, runs: Sequence[Finished], about: Callable[[Finished], str]) -> list[str]:
    """Return a line of what all runs share; where they differ, one for each, with its runs."""
    found: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        arm, _, seed = run.name.partition("/seed-")
        found.setdefault(about(run), {}).setdefault(arm, []).append(seed)
    if len(found) == 1:
        return [f"- {title}: {text}" for text in found if text]
    return [f"- {title} of {_by_arm(seeds)}: {text or 'not kept'}" for text, seeds in found.items()]


def _drawn(run: Finished) -> str:
    sampling = dict(sorted(run.held_out.sampling.items()))
    return f"K = {run.held_out.num_responses} each ({_listed(sampling, 'seed')})"


def _listed(facts: Mapping[str, Any], left_out: str) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items() if name != left_out)


def _claims(result: CampaignResult, p_values: Mapping[Claim, str]) -> list[str]:
    measured, waiting = [], []
    for each in (*result.campaign.claims, *result.campaign.budgets):
        if isinstance(each, Budget):
            said = f"{each.arm}: at most {each.at_most:g} times the tokens of {each.tokens_of}"
            other, (text, verdict), p = each.tokens_of, result.cost(each), "-"
        else:
            said, other = _said(each), each.more_than or each.arm
            (text, verdict), p = result.verdict(each), p_values.get(each, "-")
        if text == "-":
            waiting.append(f"- {said}")
            continue
        marks = {"fails": ("**", "**"), "undecided": ("", "**")}
        a, b = marks.get(verdict, ("", ""))
        seeds = str(len(result.common_seeds(each.arm, other)))
        measured.append([f"{a}{said}{a}", seeds, text, p, f"{b}{verdict}{b}"])
    head = ["claim", "seeds", "measured", "p (corrected)", "verdict"]
    table = markdown(head, measured) if measured else []
    return [*table, "", "Stated, and nothing measured yet:", "", *waiting] if waiting else table


def _said(claim: Claim) -> str:
    """Return a claim as a sentence."""
    about = f"{claim.arm}: {MEASURES[claim.measure]} on {claim.source}"
    if claim.more_than is not None:
        by = f" {'less' if claim.by < 0 else 'and'} {percent(abs(claim.by))}" if claim.by else ""
        return f"{about} above that of {claim.more_than}{by}"
    if claim.at_least is not None:
        return f"{about} at least {percent(claim.at_least)}, every seed"
    return f"{about} below {percent(claim.below or 0.0)}, every seed"


def _held_out(result: CampaignResult, source: str, minus: str | None = None) -> list[str]:
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
    return markdown(["arm", "seeds", *(MEASURES[name] for name in names)], rows)


def _by_seed(result: CampaignResult, source: str) -> list[str]:
    numbers = sorted({seed for by_seed in result.seeds.values() for seed in by_seed})
    rows = []
    for arm, seeds in result.seeds.items():
        cells = []
        for seed in numbers:
            have = seeds[seed].held_out.means.get(source, {}) if seed in seeds else {}
            names = [each for each in ("acc_t1", "acc_t2", "accuracy") if each in have]
            cells.append(" > ".join(percent(fmean(have[name].values())) for name in names) or "-")
        rows.append([arm, *cells])
    return markdown(["arm", *(f"seed {seed}" for seed in numbers)], rows)


def _learning(result: CampaignResult, source: str) -> list[str]:
    """Return the mean over seeds at each validation, at equal tokens, and when it was a half."""
    reference = result.campaign.compared_with
    references = result.seeds.get(reference, {})
    steps = sorted({step for run in result.runs for step in run.curve(source)})
    rows = []
    for arm, runs in result.seeds.items():
        columns = [[run.curve(source).get(step) for run in runs.values()] for step in steps]
        equal = [_at_tokens(run, references.get(seed), source) for seed, run in runs.items()]
        half, reached = "-", []
        for run in runs.values():
            at = [step for step, value in run.curve(source).items() if value >= 0.5]
            reached += [(run, at[0])] if at else []
        if reached:
            half = f"step {fmean(step for _, step in reached):.0f}"
            if all(run.steps_with_tokens() for run in runs.values()):
                tokens = fmean(run.tokens(step) for run, step in reached)
                half += f", {tokens / 1000:.0f}k tokens"
                minutes = [run.minutes(step) for run, step in reached]
                half += f", {_mean(minutes, '{:.1f}'.format)} min" if None not in minutes else ""
            half += f" ({len(reached)} of {len(runs)})"
        rows.append([arm, *map(_mean, [*columns, equal]), half])
    head = ["arm", *(f"step {step}" for step in steps), f"at {reference}'s tokens"]
    return markdown([*head, "50 % at (seeds)"], rows)


def _mean(values: Sequence[float | None], shown: Callable[[float], str] = percent) -> str:
    """Return the mean of what is known, with the number of seeds where some are not."""
    known = [each for each in values if each is not None]
    part = f" ({len(known)})" if len(known) < len(values) else ""
    return f"{shown(fmean(known))}{part}" if known else "-"


def _at_tokens(run: Finished, other: Finished | None, source: str) -> float | None:
    """Return the accuracy when as many tokens were sampled as by another run; if that is known."""
    points = [(run.tokens(step), value) for step, value in run.curve(source).items()]
    if other is None or not (points and run.steps_with_tokens() and other.steps_with_tokens()):
        return None
    tokens = min(other.tokens(), run.tokens())
    tokens_V, accuracies_V = zip(*points, strict=True)
    is_covered = tokens_V[0] <= tokens <= tokens_V[-1]
    return float(np.interp(tokens, tokens_V, accuracies_V)) if is_covered else None


def _cost(result: CampaignResult) -> list[str]:
    """Return means over seeds, and the ratio over those that both have; ``-`` where lines lack."""
    rows, reference = [], result.campaign.compared_with
    whole = {
        arm: all(run.steps_with_tokens() for run in seeds.values())
        for arm, seeds in result.seeds.items()
    }
    for arm, seeds in result.seeds.items():
        runs, cells = [*seeds.values()], ["-"] * 3
        if whole[arm]:
            ratios = result.token_ratios(arm, reference) if whole.get(reference) else []
            cells = [
                f"{fmean(run.tokens() for run in runs) / 1000:.0f}k",
                f"{geometric_mean(ratios):.2f}" if ratios else "-",
                _mean([run.minutes() for run in runs], "{:.1f}".format),
            ]
        gaps = [row[VLLM_DIFFERENCE] for r in runs for row in r.training if VLLM_DIFFERENCE in row]
        rows.append([arm, *cells, f"{max(gaps):.1e}" if gaps else "-"])
    head = ["arm", "tokens a run", f"times {reference}'s", "minutes of steps"]
    return markdown([*head, "trainer against vLLM, worst step's mean"], rows)


def _late(result: CampaignResult) -> list[str]:
    columns = []
    for title, name, number in _LATE:
        column = []
        for seeds in result.seeds.values():
            means = []
            for run in seeds.values():
                first = (1 - _LATE_SHARE) * run.last_step
                late = [r[name] for r in run.training if r["step"] > first and name in r]
                means += [number(sum(late) / len(late))] if late else []
            column.append(f"{sum(means) / len(means):.3g}" if means else "-")
        if not {*column} <= {"-", "0"}:
            columns.append((title, column))
    rows = [[arm, *(cells[at] for _, cells in columns)] for at, arm in enumerate(result.seeds)]
    return markdown(["arm", *(title for title, _ in columns)], rows)


def _levels(result: CampaignResult) -> list[str]:
    """Return the shares of the levels in each quarter of training, of the arms that use hints."""
    rows = []
    for arm, seeds in result.seeds.items():
        own = max((max(run.levels, default=0) for run in seeds.values()), default=0)
        if not own:
            continue
        cells = []
        for quarter in range(_QUARTERS):
            steps = [
                row
                for run in seeds.values()
                for row in run.training
                if quarter < _QUARTERS * row["step"] / run.last_step <= quarter + 1
            ]
            shares = [[level_share(row, level) for row in steps] for level in range(own + 1)]
            cells.append(" / ".join(f"{100 * sum(each) / (len(each) or 1):.0f}" for each in shares))
        rows.append([arm, *cells])
    highest = max((max(run.levels, default=0) for run in result.runs), default=0)
    levels = " / ".join(["none", *map(str, range(1, highest + 1))])
    head = ["arm", f"quarter 1: {levels}", *(f"quarter {each}" for each in range(2, _QUARTERS + 1))]
    return markdown(head, rows) if rows else []


def _settings(result: CampaignResult) -> list[str]:
    lines = []
    for name, arm in result.campaign.arms.items():
        settings = [f"`{each}`" for each in arm.settings] or ["nothing"]
        evaluated = [f"`{each}`" for each in arm.evaluation]
        more = f"; evaluated with {', '.join(evaluated)}" if evaluated else ""
        lines.append(f"- {name}: {', '.join(settings)}{more}")
    return lines

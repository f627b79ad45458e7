"""The page of results: every number from the runs of one or more campaigns, as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from recipe.study.campaign import DIFFERENCES, MEASURES, Claim
from recipe.study.estimators import Estimate, holm
from recipe.study.report.campaign import CampaignResult, shown
from recipe.study.report.campaign_learning import learning_table, mean_cell
from recipe.study.report.campaign_run import SeedResult
from recipe.study.report.page.folder import PageRun, level_share
from recipe.study.report.runs import VLLM_DIFFERENCE
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
_OF_UNGRADED = (
    "wrong in an accuracy, left out where turns are compared; a verdict that they could change is "
    "not known"
)


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
        by_claim = {
            claim: f"{_probability(p)} ({_probability(corrected[at, claim])})"
            for (at, claim), p in known.items()
            if at == place
        }
        lines += [f"## {result.campaign.title}", "", *_conditions(result), ""]
        for title, table in _tables(result, by_claim):
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
            yield f"Less {result.campaign.compared_with}, {source}", _differences(result, source)
        yield f"By seed, {source}", _by_seed(result, source)
        yield f"Accuracy in training's own validations, {source}", learning_table(result, source)
    yield "Cost", _cost(result)
    yield f"Training, mean of the last {_LATE_SHARE:.0%} of the steps", _late(result)
    if levels := _levels(result):
        yield "Levels over the quarters of training, % of prompts", levels
    yield "What sets the arms apart", _settings(result)


def _conditions(result: CampaignResult) -> list[str]:
    """Return what was run, on what, and what is missing."""
    runs = result.runs
    sizes = [
        f"{len(answered)} problems of {source}"
        for source in runs[0].means
        if (answered := runs[0].problems(source))
    ]
    lines = [
        f"- {len(runs)} of {len(result.campaign.runs())} runs",
        *_told("Training steps", runs, lambda run: str(run.training.last_step)),
        f"- Evaluated: the weights of the last step, {' and '.join(sizes)}",
        *_told("Drawn", runs, _drawn),
        f"- Settings of all: `{' '.join(result.campaign.settings)}`",
        *_told("Machine", runs, lambda run: str(_of_machine(run, "machine").get("driver", ""))),
        *_told("Versions", runs, lambda run: _listed(_versions(run))),
        *_told("Commit", runs, lambda run: str(_of_machine(run, "version").get("commit", ""))),
    ]
    damaged = [
        f"{run.training.name} {count} of {name}"
        for run in runs
        for name, count in run.training.damaged.items()
    ]
    if damaged:
        lines.append(f"- **Damaged lines, left out**: {', '.join(damaged)}")
    if partial := [run.training.name for run in runs if not run.steps_with_tokens()]:
        lines.append(f"- **Steps or tokens missing in the metrics**: {', '.join(partial)}")
    ungraded = [
        f"{run.training.name} {sum(counts.values())} of "
        f"{run.num_responses * len(run.problems(source))} of {source}"
        for run in runs
        for source, counts in run.ungraded.items()
    ]
    if ungraded:
        lines.append(
            f"- **The verifier failed on responses** ({_OF_UNGRADED}): {', '.join(ungraded)}"
        )
    seeds: dict[str, list[str]] = {}
    for run, what in result.missing:
        if what == "not run":
            seeds.setdefault(run.arm, []).append(str(run.seed))
        else:
            lines.append(f"- **Not finished**: {run.name} {what}")
    if seeds:
        lines.append(f"- **Not run** (seeds): {_by_arm(seeds)}")
    return lines


def _by_arm(seeds: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{arm} ({', '.join(each)})" for arm, each in seeds.items())


def _told(title: str, runs: Sequence[SeedResult], about: Callable[[SeedResult], str]) -> list[str]:
    """Return a line of what all runs share; where they differ, one for each, with its runs."""
    found: dict[str, dict[str, list[str]]] = {}
    for run in runs:
        arm, _, seed = run.training.name.partition("/seed-")
        found.setdefault(about(run), {}).setdefault(arm, []).append(seed)
    if len(found) == 1:
        return [f"- {title}: {text}" for text in found if text]
    return [f"- {title} of {_by_arm(seeds)}: {text or 'not kept'}" for text, seeds in found.items()]


def _drawn(run: SeedResult) -> str:
    sampling = {name: value for name, value in sorted(run.sampling.items()) if name != "seed"}
    return f"K = {run.num_responses} each ({_listed(sampling)})"


def _versions(run: SeedResult) -> Mapping[str, Any]:
    """Return those of packages; the commit has a line of its own."""
    found = _of_machine(run, "version")
    return {name: value for name, value in found.items() if name != "commit"}


def _of_machine(run: SeedResult, part: str) -> Mapping[str, Any]:
    found = run.training.machine.get(part)
    return found if isinstance(found, dict) else {}


def _listed(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items())


def _claims(result: CampaignResult, p_values: Mapping[Claim, str]) -> list[str]:
    said = [
        (
            _said(each),
            (each.arm, each.more_than or each.arm),
            *result.verdict(each),
            p_values.get(each, "-"),
        )
        for each in result.campaign.claims
    ]
    said += [
        (
            f"{each.arm}: at most {each.at_most:g} times the tokens of {each.tokens_of}",
            (each.arm, each.tokens_of),
            *result.cost(each),
            "-",
        )
        for each in result.campaign.budgets
    ]
    measured = [
        _judged(claim, str(len(result.common_seeds(*arms))), text, p, verdict)
        for claim, arms, text, verdict, p in said
        if text != "-"
    ]
    waiting = [f"- {claim}" for claim, _, text, *_ in said if text == "-"]
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


def _judged(said: str, seeds: str, text: str, p: str, verdict: str) -> list[str]:
    marks = {"fails": ("**", "**"), "undecided": ("", "**")}
    of_said, of_verdict = marks.get(verdict, ("", ""))
    return [f"{of_said}{said}{of_said}", seeds, text, p, f"{of_verdict}{verdict}{of_verdict}"]


def _held_out(result: CampaignResult, source: str) -> list[str]:
    names = result.measures(source)
    rows = [
        [arm, str(len(seeds)), *(_cell(result.estimate(arm, source, name), name) for name in names)]
        for arm, seeds in result.seeds.items()
    ]
    return markdown(["arm", "seeds", *(MEASURES[name] for name in names)], rows)


def _differences(result: CampaignResult, source: str) -> list[str]:
    reference = result.campaign.compared_with
    names = [
        each
        for each in result.measures(source)
        if each in ("acc_t1", "acc_t2", "delta", "accuracy")
    ]
    rows = []
    for arm in result.seeds:
        if arm != reference:
            common = len(result.common_seeds(arm, reference))
            found = [result.difference(arm, reference, source, name) for name in names]
            cells = [shown(each, sign=True) if each else "-" for each in found]
            rows.append([arm, str(common), *cells])
    return markdown(["arm", "seeds", *(MEASURES[name] for name in names)], rows)


def _by_seed(result: CampaignResult, source: str) -> list[str]:
    numbers = sorted({seed for by_seed in result.seeds.values() for seed in by_seed})
    rows = []
    for arm, seeds in result.seeds.items():
        cells = []
        for seed in numbers:
            have = seeds[seed].means.get(source, {}) if seed in seeds else {}
            parts = [
                percent(statistics.fmean(have[name].values()))
                for name in ("acc_t1", "acc_t2", "accuracy")
                if name in have
            ]
            cells.append(" > ".join(parts) or "-")
        rows.append([arm, *cells])
    return markdown(["arm", *(f"seed {seed}" for seed in numbers)], rows)


def _cost(result: CampaignResult) -> list[str]:
    """Return means over seeds, and the ratio over those that both have; ``-`` where lines lack."""
    rows, reference = [], result.campaign.compared_with
    whole = {
        arm: all(run.steps_with_tokens() for run in seeds.values())
        for arm, seeds in result.seeds.items()
    }
    for arm, seeds in result.seeds.items():
        runs = list(seeds.values())
        ratios = result.token_ratios(arm, reference) if whole.get(reference) else []
        spent = [
            f"{statistics.fmean(run.tokens() for run in runs) / 1000:.0f}k",
            f"{statistics.geometric_mean(ratios):.2f}" if ratios else "-",
            mean_cell([run.minutes() for run in runs], "{:.1f}".format),
        ]
        differences = [
            row[VLLM_DIFFERENCE]
            for run in runs
            for row in run.training.training
            if VLLM_DIFFERENCE in row
        ]
        worst = f"{max(differences):.1e}" if differences else "-"
        rows.append([arm, *(spent if whole[arm] else ["-"] * len(spent)), worst])
    head = ["arm", "tokens a run", f"times {reference}'s", "minutes of steps"]
    return markdown([*head, "trainer against vLLM, worst step's mean"], rows)


def _late(result: CampaignResult) -> list[str]:
    rows, columns = [], []
    for title, name, number in _LATE:
        values = [
            [_mean_of_late(run.training, name) for run in seeds.values()]
            for seeds in result.seeds.values()
        ]
        shown_column = []
        for group in values:
            known = [number(each) for each in group if each is not None]
            shown_column.append(f"{sum(known) / len(known):.3g}" if known else "-")
        if not set(shown_column) <= {"-", "0"}:
            columns.append((title, shown_column))
    for place, arm in enumerate(result.seeds):
        rows.append([arm, *(cells[place] for _, cells in columns)])
    return markdown(["arm", *(title for title, _ in columns)], rows)


def _levels(result: CampaignResult) -> list[str]:
    """Return the shares of the levels in each quarter of training, of the arms that use hints."""
    highest = max((max(run.training.levels, default=0) for run in result.runs), default=0)
    rows = []
    for arm, seeds in result.seeds.items():
        if not any(run.training.levels - {0} for run in seeds.values()):
            continue
        cells, own = [], max(level for run in seeds.values() for level in run.training.levels)
        for quarter in range(_QUARTERS):
            steps = [
                row
                for run in seeds.values()
                for row in run.training.training
                if quarter < _QUARTERS * row["step"] / run.training.last_step <= quarter + 1
            ]
            shares = [
                sum(level_share(row, level) for row in steps) / len(steps) if steps else 0.0
                for level in range(own + 1)
            ]
            cells.append(" / ".join(f"{100 * each:.0f}" for each in shares))
        rows.append([arm, *cells])
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


def _mean_of_late(run: PageRun, name: str) -> float | None:
    first = (1 - _LATE_SHARE) * run.last_step
    values = [row[name] for row in run.training if row["step"] > first and name in row]
    return sum(values) / len(values) if values else None


def _cell(estimate: Estimate | None, measure: str) -> str:
    return shown(estimate, sign=measure in DIFFERENCES) if estimate else "-"

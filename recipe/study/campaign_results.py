"""What a campaign found: its runs' held-out measures, verdicts on its claims, and the page of both.

A campaign's folder has runs, or what was kept of them: all that this page reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np
import pandas as pd

from recipe.hint.estimators import Estimate, crossed_difference, crossed_p, crossed_share, holm
from recipe.run.errors import DataError, reading
from recipe.run.whole_file import write_whole
from recipe.study.campaign import (
    CAMPAIGN_FILE,
    MEASURES,
    RESULTS,
    Campaign,
    Claim,
    Plan,
    read_campaign,
)
from recipe.study.results import Groups, read_evaluation
from recipe.study.runs import SECONDS, TOKENS, TRAINED, Run, read_run
from recipe.study.tables import markdown, percent
from recipe.verify.schema import UNGRADED

_MIN_SEEDS = 3  # of fewer, an interval over seeds and problems is too narrow
# Beginnings of the metrics' names that a kept file holds: those that a page shows.
_KEPT = (
    *("step", "hint/prompts", "hint/used_", "hint/zero_signal_after", "val-core/", SECONDS),
    *TOKENS,
    TRAINED,
)
_ABOUT = """\
# Results

Written by `python recipe/hint/main_report.py campaign DIR ... -o FILE` from the runs of the
[campaigns](../campaigns.md); no number here is typed by hand. Accuracies are per cent of held-out
problems after the last step, with 95 % intervals in brackets, over seeds and problems (with one
seed over problems alone); differences are paired by seed and problem. Arms are compared after equal
numbers of **steps**, in the column "at X's tokens" after equal tokens. A number in
brackets after a mean counts its seeds, where others have no value. Tokens are those sampled in
training, hints included.

A claim holds or fails if its whole interval lies on one side of the bound, and is undecided if the
interval contains the bound. Each is judged alone; beside it stands p, and in brackets p corrected
(Holm) for all {compared} claims of this page that one arm is above another: **from 0.05 on, a
verdict does not survive the correction.** [What intervals and claims
cover](../campaigns.md#the-page).
"""
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


@dataclass
class CampaignResult:
    """The finished runs of a campaign by arm and seed, and what became of the others.

    A run's ``kept`` is what its kept file holds: ``means`` has data source -> measure -> problem ->
    mean over its K responses (of conversations over those that the verifier could compare),
    ``ungraded`` how many of them it failed on.
    """

    campaign: Campaign
    seeds: dict[str, dict[int, Run]]
    missing: dict[str, str]

    def __post_init__(self) -> None:
        self.runs = [run for by_seed in self.seeds.values() for run in by_seed.values()]
        found = {
            (arm, source, measure, seed, problem): value
            for arm, by_seed in self.seeds.items()
            for seed, run in by_seed.items()
            for source, by_measure in run.kept["means"].items()
            for measure, by_problem in by_measure.items()
            for problem, value in by_problem.items()
        }
        self.sources = [*dict.fromkeys(source for _, source, *_ in found)]
        self._means: Any = pd.Series(found).sort_index()

    def measures(self, source: str) -> list[str]:
        """Return the measures that some run has on a data source, in the order of a table."""
        have = {name for run in self.runs for name in run.kept["means"].get(source, {})}
        return [name for name in MEASURES if name in have]

    def common_seeds(self, arm: str, other: str) -> list[int]:
        """Return the seeds of which both arms have a finished run."""
        return sorted(self.seeds.get(arm, {}).keys() & self.seeds.get(other, {}).keys())

    def table(self, arm: str, source: str, measure: str, minus: str | None = None) -> pd.DataFrame:
        """Return a measure as seeds x problems, less that of another arm where one is given.

        It is empty where a seed has none.
        """
        try:
            found = self._means[arm, source, measure].unstack()
            if minus:
                found -= self._means[minus, source, measure].unstack()
        except KeyError:
            return pd.DataFrame()
        found = found.dropna(axis=0, how="all")
        is_whole = [*found.index] == self.common_seeds(arm, minus or arm)
        return found.dropna(axis=1) if is_whole else pd.DataFrame()

    def estimate(
        self,
        arm: str,
        source: str,
        measure: str,
        minus: str | None = None,
        seeds: Sequence[int] = (),
    ) -> Estimate | None:
        """Return a measure with its interval over seeds and problems; ``None`` where unknown."""
        found = self.table(arm, source, measure, minus)
        if found.empty:
            return None
        values_SP = found.loc[[*(seeds or found.index)]].to_numpy()
        if minus or measure == "delta":
            return crossed_difference(values_SP)
        least = min(run.kept["num_responses"] for run in self.seeds[arm].values())
        return crossed_share(values_SP, least)

    def verdict(self, claim: Claim) -> tuple[str, str]:
        """Return what was measured for a claim, in percent, and what it says of the claim.

        A bound holds where the interval of every seed is on its side, and fails where that of some
        seed is wholly on the other. ``more_than`` goes by the interval of the paired difference
        over seeds and problems, of at least three seeds. What is missing leaves a claim unknown,
        unless a seed has already broken a bound; so do runs of different numbers of steps or
        sampling.
        """
        arm, other = claim.arm, claim.more_than
        seeds = self.common_seeds(arm, other or arm)
        is_known = self._is_complete(arm)
        if other:
            is_known = is_known and self._is_complete(arm, other) and len(seeds) >= _MIN_SEEDS
        asked = arm, claim.source, claim.measure, other
        groups = [seeds] if other else [[seed] for seed in seeds]
        known = [each for group in groups if (each := self.estimate(*asked, group))]
        is_signed = other is not None or claim.measure == "delta"
        text = "; ".join(_shown(each, sign=is_signed) for each in known) or "-"
        sides = {_side(claim, each) for each in known}
        if "fails" in sides and (is_known or other is None):
            return text, "fails"
        if not (known and is_known):
            return text, "not known"
        return text, "holds" if sides == {"holds"} else "undecided"

    def _is_complete(self, *arms: str) -> bool:
        """Return whether all seeds are there, trained equal steps, and two arms are drawn alike."""
        facts = [
            (run.last_step, len(arms) > 1 and _drawn(run))
            for arm in arms
            for run in self.seeds.get(arm, {}).values()
        ]
        has_all = all({*self.campaign.seeds_of(a)} <= self.seeds.get(a, {}).keys() for a in arms)
        return has_all and all(each == facts[0] for each in facts)


def _drawn(run: Run) -> dict[str, Any]:
    """Return what an evaluation drew with, but for its seed."""
    sampling = {name: each for name, each in run.kept["sampling"].items() if name != "seed"}
    return {"K": run.kept["num_responses"], **sampling}


def _shown(estimate: Estimate, *, sign: bool = False) -> str:
    """Write an estimate in percent, ``94.1 (91.0 - 96.2)``, with signs where they can differ."""
    value, low, high = (percent(each, sign=sign) for each in estimate)
    return f"{value} ({low} {'to' if sign else '-'} {high})"


def _side(claim: Claim, found: Estimate) -> str:
    """Return on which side of a claim's bound an interval is, as it is shown."""
    bound = (
        claim.by if claim.more_than else claim.below if claim.at_least is None else claim.at_least
    )
    low, high, bound = (float(percent(each)) for each in (found.low, found.high, bound or 0.0))
    if claim.below is not None:
        return "holds" if high < bound else "fails" if low >= bound else "undecided"
    is_above = low > bound if claim.more_than else low >= bound
    return "holds" if is_above else "fails" if high < bound else "undecided"


# -- reading and keeping


def runs_of(folder: str | Path) -> Iterator[Run]:
    """Yield the run of a folder, or those that a campaign's has: finished, kept or begun."""
    root = Path(folder)
    if not (root / CAMPAIGN_FILE).is_file():
        yield read_run(root)
        return
    for plan in read_campaign(root / CAMPAIGN_FILE).plans():
        plan.check_made(root)
        place, kept = root / plan.name, root / f"{plan.name}.json"
        is_finished = (place / RESULTS).is_file()
        if kept.is_file() and not is_finished:
            with reading(kept):
                run = _kept_run(plan, place, json.loads(kept.read_text("utf-8")))
            yield run
        elif (place / "metrics.jsonl").is_file():
            run = read_run(place)
            run.name = plan.name
            if is_finished:
                run.kept = _evaluated(run, plan)
            yield run


def read_results_of(root: str | Path) -> CampaignResult:
    """Read the finished runs of a campaign's folder, and what was kept of others.

    Raises:
        DataError: If none is finished, or their problems differ.
        ConfigError: If a run is not of the campaign.
    """
    campaign = read_campaign(Path(root) / CAMPAIGN_FILE)
    runs = {run.name: run for run in runs_of(root)}
    seeds: dict[str, dict[int, Run]] = {}
    missing = {}
    for arm in campaign.arms:
        for seed in sorted(campaign.seeds_of(arm)):
            name = f"{arm}/seed-{seed}"
            if not (run := runs.get(name)):
                missing[name] = "not run"
            elif run.kept:
                seeds.setdefault(arm, {})[seed] = run
            else:
                told = f"at step {run.last_step} {' '.join(run.failure.split())[:200]}"
                missing[name] = told.rstrip()
    if not seeds:
        raise DataError(f"{root} has no finished run; make them with `hint campaign`")
    result = CampaignResult(campaign, seeds, missing)
    for run in result.runs:
        steps = [row["step"] for row in run.training if all(name in row for name in TOKENS)]
        if steps != [*range(1, len(run.training) + 1)]:
            raise DataError(
                f"{root}: {run.name} lacks steps or tokens in its metrics; make it again"
            )
    for source in result.sources:
        if len({_problems(run, source) for run in result.runs} - {frozenset()}) > 1:
            raise DataError(f"{root}: runs were evaluated on different problems of {source}")
    return result


def keep_results(root: str | Path, output: Path) -> int:
    """Write what the page reads of each run to another folder; return the number of runs.

    ``output`` holds ``campaign.yaml`` and ``ARM/seed-N.json`` afterwards. A campaign that is there
    stays: it may have more arms.
    """
    result, there = read_results_of(root), output / CAMPAIGN_FILE
    for run in result.runs:
        lines = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in run.kept.items())
        path = output / f"{run.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n")
    if not there.exists():
        write_whole(there, (Path(root) / CAMPAIGN_FILE).read_text(encoding="utf-8"))
    return len(result.runs)


def _problems(run: Run, source: str) -> frozenset[str]:
    """Return the problems of a data source that were answered, whatever the grades."""
    means = run.kept["means"].get(source, {})
    return frozenset(run.kept["ungraded"].get(source, {})).union(*means.values())


def _kept_run(plan: Plan, place: Path, kept: dict[str, Any]) -> Run:
    rows = [
        {name: each for name, each in zip(kept["metrics"], row, strict=True) if each is not None}
        for row in zip(*kept["metrics"].values(), strict=True)
    ]
    pairs = [setting.lstrip("+").partition("=") for setting in plan.settings]
    return Run(
        plan.name,
        place,
        rows=[{**row, "step": int(row["step"])} for row in rows],
        config={name: value for name, _, value in pairs},
        machine=kept["machine"],
        kept={"ungraded": {}} | kept,
    )


def _evaluated(run: Run, plan: Plan) -> dict[str, Any]:
    """Return what is kept of a run's folder with a finished evaluation."""
    stored, by_source = read_evaluation(run.folder / "evaluation")
    found = {source: _means_of(groups) for source, groups in by_source.items()}
    names = sorted({name for row in run.rows for name in row if name.startswith(_KEPT)})
    return {
        "made": plan.as_json(),
        "num_responses": stored["num_samples"],
        "sampling": stored["sampling"],
        "machine": run.machine,
        "ungraded": {source: failed for source, (_, failed) in found.items() if failed},
        "means": {source: means for source, (means, _) in found.items()},
        "metrics": {name: [row.get(name) for row in run.rows] for name in names},
    }


def _means_of(groups: Groups) -> tuple[dict[str, dict[str, float]], dict[str, int]]:
    """Return measure -> problem -> mean over its graded responses, and problem -> the others."""
    is_multi_turn = any(each.facts for found in groups.values() for each in found)
    means: dict[str, dict[str, float]] = {}
    ungraded = {}
    for problem, responses in groups.items():
        facts = [each.facts if is_multi_turn else {"accuracy": each.score} for each in responses]
        for name in MEASURES:
            if values := [each[name] for each in facts if each and name in each]:
                means.setdefault(name, {})[problem] = fmean(values)
        failed = [
            not each.facts if is_multi_turn else each.reason in UNGRADED for each in responses
        ]
        if any(failed):
            ungraded[problem] = sum(failed)
    return means, ungraded


# -- the page


def results_page(results: Sequence[CampaignResult]) -> str:
    """Return the page of some campaigns as Markdown."""
    claims = [(at, each) for at, of in enumerate(results) for each in of.campaign.claims]
    known: dict[tuple[int, Claim], float] = {}
    for at, claim in claims:  # that one arm is above another
        is_known = results[at].verdict(claim)[1] != "not known"
        if claim.more_than is not None and not claim.by and is_known:
            asked = claim.arm, claim.source, claim.measure, claim.more_than
            found = results[at].table(*asked)
            if min(found.shape) > 1:
                known[at, claim] = crossed_p(found.to_numpy())
    corrected = dict(zip(known, holm([*known.values()]), strict=True))
    told = {key: f"{_probability(p)} ({_probability(corrected[key])})" for key, p in known.items()}
    lines = [_ABOUT.format(compared=len(known))]
    for place, result in enumerate(results):
        p_values = {claim: text for (at, claim), text in told.items() if at == place}
        lines += [f"## {result.campaign.title}", "", *_conditions(result), ""]
        tables, reference = {"Claims": _claims(result, p_values)}, result.campaign.compared_with
        for source in result.sources:
            tables[f"Held-out problems, {source}"] = _held_out(result, source)
            tables[f"Less {reference}, {source}"] = _held_out(result, source, reference)
            tables[f"By seed, {source}"] = _by_seed(result, source)
            title = f"Accuracy in training's own validations, {source}"
            tables[title] = _learning(result, source)
        tables["Cost"] = _cost(result)
        for title, (head, rows) in tables.items():
            if rows:
                lines += [f"### {title}", "", *markdown(head, rows), ""]
    return "\n".join(lines)


def _probability(p: float) -> str:
    """Write a p value so that it is on the side of 0.05 that it is on."""
    if p < 0.001:
        return "< 0.001"
    text = f"{p:.2g}"
    return text if (float(text) < 0.05) == (p < 0.05) else f"{p:.4f}"


def _conditions(result: CampaignResult) -> list[str]:
    """Return what was run, on what, and what is missing."""
    runs = result.runs
    first = runs[0]
    missing: dict[tuple[str, str], list[str]] = {}
    for name, why in result.missing.items():
        run, _, seed = name.rpartition("-")
        missing.setdefault((run, why), []).append(seed)
    sizes = [f"{len(_problems(first, each))} problems of {each}" for each in first.kept["means"]]
    facts: dict[str, Callable[[Run], str]] = {
        "Training steps": lambda run: str(run.last_step),
        "Drawn": lambda run: _told(_drawn(run)),
        "Machine": lambda run: run.machine.get("machine", {}).get("driver", ""),
        "Versions": lambda run: _told(run.machine.get("version", {}), without="commit"),
        "Commit": lambda run: run.machine.get("version", {}).get("commit", ""),
    }
    notes = {
        "The verifier failed on responses, which count as wrong in an accuracy": [
            f"{run.name} {sum(counts.values())} of {source}"
            for run in runs
            for source, counts in run.kept["ungraded"].items()
        ],
        "Not finished": [f"{run}-{','.join(n)} {why}" for (run, why), n in missing.items()],
    }
    return [
        f"- {len(runs)} of {len(result.campaign.plans())} runs: "
        f"`{' '.join(result.campaign.settings)}`",
        f"- Evaluated: the weights of the last step, {' and '.join(sizes)}",
        *(
            f"- {title}: {'; '.join(filter(None, dict.fromkeys(map(of, runs))))}"
            for title, of in facts.items()
        ),
        *(f"- **{title}**: {', '.join(each)}" for title, each in notes.items() if each),
    ]


def _told(values: Mapping[str, Any], without: str = "") -> str:
    return ", ".join(f"{name} {each}" for name, each in values.items() if name != without)


def _claims(result: CampaignResult, p_values: Mapping[Claim, str]) -> Table:
    rows = []
    for each in result.campaign.claims:
        text, verdict = result.verdict(each)
        a, b = {"fails": ("**", "**"), "undecided": ("", "**")}.get(verdict, ("", ""))
        seeds = str(len(result.common_seeds(each.arm, each.more_than or each.arm)))
        p = p_values.get(each, "-")
        rows.append([f"{a}{_said(each)}{a}", seeds, text, p, f"{b}{verdict}{b}"])
    return ["claim", "seeds", "measured", "p (corrected)", "verdict"], rows


def _said(claim: Claim) -> str:
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
                _shown(each, sign=bool(minus) or name == "delta") if each else "-"
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
    """Return the mean over seeds at each validation, at equal tokens, and under the curve."""
    reference = result.campaign.compared_with
    references = result.seeds.get(reference, {})
    steps = sorted({step for run in result.runs for step in run.curve(source)})
    rows = []
    for arm, runs in result.seeds.items():
        curves = [run.curve(source) for run in runs.values()]
        columns = [[curve.get(step) for curve in curves] for step in steps]
        equal = [
            [_at_tokens(run, references.get(seed), source, names) for seed, run in runs.items()]
            for names in (TOKENS, (*TOKENS, TRAINED))
        ]
        areas = [area for run in runs.values() if (area := run.area(source)) is not None]
        span = f" ({percent(min(areas))} - {percent(max(areas))})" if areas else ""
        rows.append([arm, *map(_mean, [*columns, *equal]), _mean(areas) + span])
    head = [*(f"step {step}" for step in steps), f"at {reference}'s tokens"]
    return ["arm", *head, "sampled and trained", "area (seeds)"], rows


def _mean(values: Sequence[float | None], form: str = "") -> str:
    """Return the mean of what is known, with the number of seeds where some are not."""
    known = [each for each in values if each is not None]
    if not known:
        return "-"
    part = f" ({len(known)})" if len(known) < len(values) else ""
    return f"{form.format(fmean(known)) if form else percent(fmean(known))}{part}"


def _at_tokens(run: Run, other: Run | None, source: str, names: Sequence[str]) -> float | None:
    """Return the accuracy after as many tokens, of ``names``, as another run's; if known."""
    points = [(run.tokens(step, names), value) for step, value in run.curve(source).items()]
    if other is None or not points:
        return None
    tokens = min(other.tokens(names=names), run.tokens(names=names))
    tokens_V, accuracies_V = zip(*points, strict=True)
    is_covered = tokens_V[0] <= tokens <= tokens_V[-1]
    return float(np.interp(tokens, tokens_V, accuracies_V)) if is_covered else None


def _cost(result: CampaignResult) -> Table:
    """Return means over seeds, and the ratio over those that both have."""
    rows, reference = [], result.campaign.compared_with
    for arm, seeds in result.seeds.items():
        runs, others = [*seeds.values()], result.seeds.get(reference, {})
        pairs = [(run.tokens(), others[n].tokens()) for n, run in seeds.items() if n in others]
        ratios = [mine / theirs for mine, theirs in pairs if mine and theirs]
        rows.append(
            [
                arm,
                f"{fmean(run.tokens() for run in runs) / 1000:.0f}k",
                f"{geometric_mean(ratios):.2f}" if ratios else "-",
                _mean([run.minutes() for run in runs], "{:.1f}"),
            ]
        )
    return ["arm", "tokens a run", f"times {reference}'s", "minutes of steps"], rows

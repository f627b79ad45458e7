"""A campaign's finished runs as numbers: held-out measures by arm, seed and problem; its claims."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pandas as pd
from omegaconf import OmegaConf

from recipe.run.errors import DataError
from recipe.run.whole_file import write_whole
from recipe.study.campaign import (
    CAMPAIGN_FILE,
    MEASURES,
    RESULTS,
    Budget,
    Campaign,
    Claim,
    Plan,
    read_campaign,
)
from recipe.study.estimators import (
    Estimate,
    crossed_difference,
    crossed_p,
    crossed_share,
    mean_ratio,
)
from recipe.study.responses import Groups, read_kept
from recipe.study.results import read_evaluation
from recipe.study.runs import SECONDS, TOKENS, VLLM_DIFFERENCE, Run, read_run
from recipe.study.tables import percent
from recipe.verify.schema import UNGRADED

_MIN_SEEDS = 3  # of fewer, an interval over seeds and problems is too narrow
# Beginnings of the metrics' names that a kept file holds.
_KEPT = (
    "step", "hint/prompts", "hint/used_", "hint/zero_signal_after", "hint/leaked",
    "reward_tracking/pct_never_", "turns/", "actor/entropy", "response_length/mean", "val-core/",
    SECONDS, VLLM_DIFFERENCE, *TOKENS,
)  # fmt: skip


@dataclass
class Finished(Run):
    """A run with its evaluation.

    ``kept`` is what its kept file holds, all that the page reads: ``means`` has data source ->
    measure -> problem -> mean over its K responses (of conversations over those that the verifier
    could compare), ``ungraded`` how many of them it failed on.
    """

    kept: dict[str, Any] = field(kw_only=True)

    def problems(self, source: str) -> set[str]:
        """Return the problems of a data source that were answered, whatever the grades."""
        means = self.kept["means"].get(source, {})
        return set(self.kept["ungraded"].get(source, {})).union(*means.values())

    @property
    def num_whole(self) -> int:
        """The number of training steps, 0 where a part of their tokens is not known."""
        steps = [row["step"] for row in self.training if all(name in row for name in TOKENS)]
        is_whole = steps == [*range(1, len(self.training) + 1)] and not self.damaged
        return len(steps) if is_whole else 0


@dataclass
class CampaignResult:
    """The finished runs of a campaign by arm and seed, and what became of the others."""

    campaign: Campaign
    seeds: dict[str, dict[int, Finished]]
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
        self._means = pd.Series(found).sort_index()

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
        seeds = self.common_seeds(arm, minus or arm)
        try:
            found = self._means[arm, source, measure].unstack()
            if minus:
                found -= self._means[minus, source, measure].unstack()
        except KeyError:
            return pd.DataFrame()
        found = found.dropna(axis=0, how="all")
        return found.dropna(axis=1) if [*found.index] == seeds else pd.DataFrame()

    def estimate(
        self, arm: str, source: str, measure: str, minus: str | None = None
    ) -> Estimate | None:
        """Return a measure with its interval over seeds and problems; ``None`` where unknown."""
        is_signed = minus is not None or measure == "delta"
        return self._estimate(arm, self.table(arm, source, measure, minus), is_signed=is_signed)

    def _estimate(self, arm: str, found: pd.DataFrame, *, is_signed: bool) -> Estimate | None:
        if found.empty:
            return None
        least = min(run.kept["num_responses"] for run in self.seeds[arm].values())
        values_SP = found.to_numpy()
        return crossed_difference(values_SP) if is_signed else crossed_share(values_SP, least)

    def p_value(self, claim: Claim) -> float | None:
        """Return the p value of a claim that one arm is above another; ``None`` for others."""
        if claim.more_than is None or claim.by or self.verdict(claim)[1] == "not known":
            return None
        found = self.table(claim.arm, claim.source, claim.measure, claim.more_than)
        return crossed_p(found.to_numpy()) if min(found.shape) > 1 else None

    def verdict(self, claim: Claim) -> tuple[str, str]:
        """Return what was measured for a claim, in percent, and what it says of the claim.

        A bound holds where the interval of every seed is on its side, and fails where that of some
        seed is wholly on the other. ``more_than`` goes by the interval of the paired difference
        over seeds and problems, of at least three seeds. What is missing leaves a claim unknown,
        unless a seed has already broken a bound; so do runs of different numbers of steps or
        sampling.
        """
        arm, other = claim.arm, claim.more_than
        table = self.table(arm, claim.source, claim.measure, other)
        tables, is_known = [table.loc[[seed]] for seed in table.index], self._is_complete(arm)
        if other is not None:
            tables, is_known = [table], is_known and self._is_complete(arm, other)
            is_known &= len(table) >= _MIN_SEEDS
        is_signed = other is not None or claim.measure == "delta"
        estimates = [self._estimate(arm, each, is_signed=is_signed) for each in tables]
        known = [each for each in estimates if each]
        text = "; ".join(shown(each, sign=is_signed) for each in known) or "-"
        sides = {_side(claim, each) for each in known}
        if "fails" in sides and (is_known or other is None):
            return text, "fails"
        if not (known and is_known):
            return text, "not known"
        return text, "holds" if sides == {"holds"} else "undecided"

    def cost(self, budget: Budget) -> tuple[str, str]:
        """Return how many times the other's tokens an arm took, and what that says of a budget."""
        arms, at_most = (budget.arm, budget.tokens_of), budget.at_most
        ratios_S = self.token_ratios(*arms)
        if len(ratios_S) < _MIN_SEEDS:
            return "; ".join(f"{each:.2f}" for each in ratios_S) or "-", "not known"
        value, low, high = (round(each, 2) for each in mean_ratio(ratios_S))
        text = f"{value:.2f} ({low:.2f} - {high:.2f})"
        runs = [self.seeds[arm][seed] for arm in arms for seed in self.common_seeds(*arms)]
        steps = {run.num_whole for run in runs}
        if not all(map(self._is_complete, arms)) or len(steps) > 1 or 0 in steps:
            return text, "not known"  # a run without a part of its lines cost more than they say
        return text, "holds" if high <= at_most else "fails" if low > at_most else "undecided"

    def token_ratios(self, arm: str, other: str) -> list[float]:
        """Return the tokens of an arm as multiples of another's, for each seed that both have."""
        seeds = self.common_seeds(arm, other)
        pairs = [[self.seeds[each][seed].tokens() for each in (arm, other)] for seed in seeds]
        return [mine / theirs for mine, theirs in pairs if mine and theirs]

    def _is_complete(self, *arms: str) -> bool:
        """Return whether all seeds are there and trained equal steps; two arms: drawn alike too."""
        runs = [run for arm in arms for run in self.seeds.get(arm, {}).values()]
        facts = [(run.last_step, len(arms) > 1 and _drawn(run.kept)) for run in runs]
        has_all = all({*self.campaign.seeds_of(a)} <= self.seeds.get(a, {}).keys() for a in arms)
        return has_all and all(each == facts[0] for each in facts)


def _drawn(kept: dict[str, Any]) -> Any:
    return kept["num_responses"], kept["sampling"] | {"seed": 0}


def shown(estimate: Estimate, *, sign: bool = False) -> str:
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


def runs_of(folder: str | Path) -> Iterator[Run]:
    """Yield the run of a folder, or those that a campaign's has: finished, kept or begun."""
    root = Path(folder)
    if not (root / CAMPAIGN_FILE).is_file():
        yield read_run(root)
        return
    for plan in read_campaign(root / CAMPAIGN_FILE).plans():
        plan.check_made(root)
        if (root / f"{plan.name}.json").is_file() and not (root / plan.name / RESULTS).is_file():
            yield _read_kept(root, plan)
        elif (root / plan.name / "metrics.jsonl").is_file():
            run = read_run(root / plan.name)
            run.name = plan.name
            is_finished = (root / plan.name / RESULTS).is_file()
            yield Finished(**vars(run), kept=_evaluated(run, plan)) if is_finished else run


def read_results_of(root: str | Path) -> CampaignResult:
    """Read the finished runs of a campaign's folder, and what was kept of others.

    Raises:
        DataError: If none is finished, or their problems differ.
        ConfigError: If a run is not of the campaign.
    """
    root = Path(root)
    campaign = read_campaign(root / CAMPAIGN_FILE)
    runs = {run.name: run for run in runs_of(root)}
    seeds: dict[str, dict[int, Finished]] = {}
    for arm in campaign.arms:
        for seed in sorted(campaign.seeds_of(arm)):
            if isinstance(run := runs.get(f"{arm}/seed-{seed}"), Finished):
                seeds.setdefault(arm, {})[seed] = run
    if not seeds:
        raise DataError(f"{root} has no finished run; make them with main_campaign.py")
    missing = {plan.name: "not run" for plan in campaign.plans() if plan.name not in runs}
    missing |= {
        name: f"at step {run.last_step} {' '.join(run.failure.split())[:200]}".rstrip()
        for name, run in runs.items()
        if not isinstance(run, Finished)
    }
    result = CampaignResult(campaign, seeds, missing)
    for source in result.sources:
        answered = {frozenset(run.problems(source)) for run in result.runs}
        if len(answered - {frozenset()}) > 1:
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


def _read_kept(root: Path, plan: Plan) -> Finished:
    kept = json.loads((root / f"{plan.name}.json").read_text("utf-8"))
    kept.setdefault("ungraded", {})
    rows = [
        {name: each for name, each in zip(kept["metrics"], row, strict=True) if each is not None}
        for row in zip(*kept["metrics"].values(), strict=True)
    ]
    config = OmegaConf.create({})
    for setting in plan.settings:
        name, _, value = setting.lstrip("+").partition("=")
        OmegaConf.update(config, name, value)
    return Finished(
        plan.name,
        root / plan.name,
        rows=[{**row, "step": int(row["step"])} for row in rows],
        config=cast("dict[str, Any]", OmegaConf.to_container(config)),
        machine=kept["machine"],
        damaged=Counter(kept["damaged"]),
        kept=kept,
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
        "files": read_kept(run.folder / "evaluation").get("files", {}),
        "machine": run.machine,
        "damaged": dict(run.damaged),
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
        known = [each for each in facts if each]
        for name in MEASURES:
            if known and all(name in each for each in known):
                means.setdefault(name, {})[problem] = sum(each[name] for each in known) / len(known)
        failed = sum(
            not each.facts if is_multi_turn else each.reason in UNGRADED for each in responses
        )
        if failed:
            ungraded[problem] = failed
    return means, ungraded

"""A campaign's finished runs as numbers: held-out measures by arm, seed and problem; its claims."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import pandas as pd
from omegaconf import OmegaConf
from pydantic import BaseModel, ValidationError

from recipe.run.errors import ConfigError, DataError, one_line
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
from recipe.study.responses import Groups, problem_digests
from recipe.study.results import read_evaluation
from recipe.study.runs import SECONDS, TOKENS, VLLM_DIFFERENCE, Run, read_run
from recipe.study.tables import percent
from recipe.verify.schema import UNGRADED

Verdict = Literal["holds", "fails", "undecided", "not known"]
NOT_RUN = "not run"
_LOST = ".lost"  # ending of a file beside the kept ones
_MIN_SEEDS = 3  # of fewer, an interval over seeds and problems is too narrow
# Beginnings of the metrics' names that a kept file holds.
_KEPT = (
    "step", "hint/prompts", "hint/used_", "hint/zero_signal_after", "hint/leaked",
    "reward_tracking/pct_never_", "turns/", "actor/entropy", "response_length/mean", "val-core/",
    SECONDS, VLLM_DIFFERENCE, *TOKENS,
)  # fmt: skip


class Kept(BaseModel):
    """What is kept of a run: all that the page reads.

    ``means`` has data source -> measure -> problem -> mean over its K responses (of conversations
    over those that the verifier could compare), ``ungraded`` how many of them it failed on.
    """

    made: dict[str, list[str]]
    num_responses: int
    sampling: dict[str, Any]
    files: dict[str, str] = {}
    machine: dict[str, Any]
    damaged: dict[str, int]
    ungraded: dict[str, dict[str, int]] = {}
    means: dict[str, dict[str, dict[str, float]]]
    metrics: dict[str, list[float | None]]

    def problems(self, source: str) -> set[str]:
        """Return the problems of a data source that were answered, whatever the grades."""
        return set(self.ungraded.get(source, {})).union(*self.means.get(source, {}).values())


@dataclass
class Finished(Run):
    """A run with its evaluation."""

    held_out: Kept = field(kw_only=True)

    def steps_with_tokens(self) -> int:
        """Return the number of training steps, 0 where a part of their tokens is not known."""
        steps = [row["step"] for row in self.training if all(name in row for name in TOKENS)]
        is_whole = steps == [*range(1, len(self.training) + 1)] and not self.damaged
        return len(steps) if is_whole else 0


@dataclass
class CampaignResult:
    """The finished runs of a campaign by arm and seed, and what became of the others."""

    campaign: Campaign
    seeds: dict[str, dict[int, Finished]] = field(default_factory=dict)
    missing: list[tuple[Plan, str]] = field(default_factory=list)

    @property
    def runs(self) -> list[Finished]:
        """The finished runs, arm by arm."""
        return [run for by_seed in self.seeds.values() for run in by_seed.values()]

    def sources(self) -> list[str]:
        """Return the data sources that runs were evaluated on, in the order of the first."""
        return list(dict.fromkeys(source for run in self.runs for source in run.held_out.means))

    def measures(self, source: str) -> list[str]:
        """Return the measures that some run has on a data source, in the order of a table."""
        have = {name for run in self.runs for name in run.held_out.means.get(source, {})}
        return [name for name in MEASURES if name in have]

    def common_seeds(self, arm: str, other: str) -> list[int]:
        """Return the seeds of which both arms have a finished run."""
        return sorted(self.seeds.get(arm, {}).keys() & self.seeds.get(other, {}).keys())

    def estimate(
        self,
        arm: str,
        source: str,
        measure: str,
        minus: str | None = None,
        seeds: Sequence[int] | None = None,
    ) -> Estimate | None:
        """Return a measure with its interval over seeds and problems; ``None`` where unknown.

        With ``minus`` less that of another arm, paired by seed and problem.
        """
        found = self._table(arm, source, measure, minus, seeds)
        if found is None:
            return None
        if minus is not None or measure == "delta":
            return crossed_difference(found.to_numpy())
        least = min(run.held_out.num_responses for run in self.seeds[arm].values())
        return crossed_share(found.to_numpy(), least)

    def p_value(self, claim: Claim) -> float | None:
        """Return the p value of a claim that one arm is above another; ``None`` for others."""
        if claim.more_than is None or claim.by or self.verdict(claim)[1] == "not known":
            return None
        found = self._table(claim.arm, claim.source, claim.measure, claim.more_than)
        return None if found is None or min(found.shape) < 2 else crossed_p(found.to_numpy())

    def verdict(self, claim: Claim) -> tuple[str, Verdict]:
        """Return what was measured for a claim, in percent, and what it says of the claim.

        A bound holds where the interval of every seed is on its side, and fails where that of some
        seed is wholly on the other. ``more_than`` goes by the interval of the paired difference
        over seeds and problems, of at least three seeds. Intervals are taken as they are shown.
        What is missing leaves a claim unknown, unless a seed has already broken a bound; so do runs
        of different numbers of steps or sampling.
        """
        arm, other, source, measure = claim.arm, claim.more_than, claim.source, claim.measure
        is_complete = self._is_complete(arm)
        if other is None:
            seeds = self.common_seeds(arm, arm)
            found = [self.estimate(arm, source, measure, seeds=[seed]) for seed in seeds]
        else:
            found = [self.estimate(arm, source, measure, other)]
            is_complete &= self._is_complete(other) and self._are_alike(arm, other)
            is_complete &= len(self.common_seeds(arm, other)) >= _MIN_SEEDS
        known = [each for each in found if each is not None]
        is_complete &= len(known) == len(found)
        is_signed = other is not None or measure == "delta"
        text = "; ".join(shown(each, sign=is_signed) for each in known) or "-"
        verdicts = {_side(claim, each) for each in known}
        if "fails" in verdicts and (is_complete or other is None):
            return text, "fails"
        if not is_complete or not known:
            return text, "not known"
        return text, "holds" if verdicts == {"holds"} else "undecided"

    def cost(self, budget: Budget) -> tuple[str, Verdict]:
        """Return how many times the other's tokens an arm took, and what that says of a budget."""
        arms = (budget.arm, budget.tokens_of)
        ratios_S = self.token_ratios(*arms)
        if len(ratios_S) < _MIN_SEEDS:
            return "; ".join(f"{each:.2f}" for each in ratios_S) or "-", "not known"
        value, low, high = (round(each, 2) for each in mean_ratio(ratios_S))
        text = f"{value:.2f} ({low:.2f} - {high:.2f})"
        seeds = self.common_seeds(*arms)
        steps = {self.seeds[arm][seed].steps_with_tokens() for arm in arms for seed in seeds}
        if not all(map(self._is_complete, arms)) or len(steps) > 1 or 0 in steps:
            return text, "not known"  # a run without a part of its lines cost more than they say
        at_most = budget.at_most
        return text, "holds" if high <= at_most else "fails" if low > at_most else "undecided"

    def token_ratios(self, arm: str, other: str) -> list[float]:
        """Return the tokens of an arm as multiples of another's, for each seed that both have."""
        seeds = self.common_seeds(arm, other)
        pairs = [[self.seeds[each][seed].tokens() for each in (arm, other)] for seed in seeds]
        return [mine / theirs for mine, theirs in pairs if mine and theirs]

    def _table(
        self,
        arm: str,
        source: str,
        measure: str,
        minus: str | None = None,
        seeds: Sequence[int] | None = None,
    ) -> pd.DataFrame | None:
        """Return seeds x problems that all of them have; ``None`` where a seed has none."""
        seeds, tables = seeds or self.common_seeds(arm, minus or arm), []
        for name in (arm, minus) if minus else (arm,):
            runs = {seed: self.seeds[name][seed].held_out for seed in seeds}
            rows = {seed: run.means.get(source, {}).get(measure) for seed, run in runs.items()}
            if not rows or not all(rows.values()):
                return None
            tables.append(pd.DataFrame(rows).T.sort_index(axis=1))
        found = (tables[0] - tables[1] if minus else tables[0]).dropna(axis=1)
        return None if found.empty else found

    def _are_alike(self, *arms: str) -> bool:
        """Return whether all runs trained for equal steps and drew their responses alike."""
        runs = [run for arm in arms for run in self.seeds.get(arm, {}).values()]
        facts = [
            {**run.held_out.sampling, "seed": 0, "K": run.held_out.num_responses, "": run.last_step}
            for run in runs
        ]
        return all(each == facts[0] for each in facts)

    def _is_complete(self, arm: str) -> bool:
        have = self.seeds.get(arm, {})
        lengths = {run.last_step for run in have.values()}
        return {*self.campaign.seeds_of(arm)} <= have.keys() and len(lengths) == 1


def shown(estimate: Estimate, *, sign: bool = False) -> str:
    """Write an estimate in percent, ``94.1 (91.0 - 96.2)``, with signs where they can differ."""
    value, low, high = (percent(each, sign=sign) for each in estimate)
    return f"{value} ({low} - {high})" if not sign else f"{value} ({low} to {high})"


def _side(claim: Claim, found: Estimate) -> Verdict:
    """Return on which side of a claim's bound an interval is, as it is shown."""
    low, high = (float(percent(each)) for each in (found.low, found.high))
    if claim.more_than is not None:
        bound = float(percent(claim.by))
        return "holds" if low > bound else "fails" if high < bound else "undecided"
    if claim.at_least is not None:
        bound = float(percent(claim.at_least))
        return "holds" if low >= bound else "fails" if high < bound else "undecided"
    bound = float(percent(claim.below or 0.0))
    return "holds" if high < bound else "fails" if low >= bound else "undecided"


def read_results_of(root: str | Path) -> CampaignResult:
    """Read the finished runs of a campaign's folder, and what was kept of others.

    Raises:
        DataError: If none is finished, one cannot be read, or their problems differ.
        ConfigError: If a run is not of the campaign.
    """
    root = Path(root)
    result = CampaignResult(read_campaign(root / CAMPAIGN_FILE))
    plans = result.campaign.plans()
    there = [each.with_suffix("") for each in root.glob("*/seed-*.json")]
    there += [each.parents[1] for each in root.glob(f"*/seed-*/{RESULTS}")]
    if unknown := {str(each.relative_to(root)) for each in there} - {each.name for each in plans}:
        raise ConfigError(f"{root} has results of {unknown}, no run of {CAMPAIGN_FILE}; name it")
    found = {}
    for plan in plans:
        plan.check_made(root)
        folder = root / plan.name
        if (folder / RESULTS).is_file():
            run = read_run(folder)
            found[plan.arm, plan.seed] = Finished(**vars(run), held_out=_evaluated(run, plan))
        elif plan.kept(root).is_file():
            found[plan.arm, plan.seed] = _read_kept(plan.kept(root), plan)
        else:
            result.missing.append((plan, _unfinished(folder)))
    if not found:
        raise DataError(f"{root} has no finished run; make them with main_campaign.py")
    for source in {source for run in found.values() for source in run.held_out.means}:
        answered = {frozenset(run.held_out.problems(source)) for run in found.values()}
        if len(answered - {frozenset()}) > 1:
            raise DataError(f"{root}: runs were evaluated on different problems of {source}")
    # In the order of the file, whichever was finished first.
    for arm, seed in sorted(found, key=lambda key: ([*result.campaign.arms].index(key[0]), key[1])):
        result.seeds.setdefault(arm, {})[seed] = found[arm, seed]
    return result


def runs_of(folder: str | Path) -> Iterator[Run]:
    """Yield the run of a folder, or those that a campaign's has: begun, finished or kept."""
    root = Path(folder)
    if not (root / CAMPAIGN_FILE).is_file():
        yield read_run(root)
        return
    for plan in read_campaign(root / CAMPAIGN_FILE).plans():
        if (root / plan.name / "metrics.jsonl").is_file():
            yield read_run(root / plan.name)
        elif plan.kept(root).is_file():
            yield _read_kept(plan.kept(root), plan)


def keep_results(root: str | Path, output: Path, *, should_replace: bool = False) -> int:
    """Write what the page reads of each run to another folder; return the number of runs.

    ``output`` holds ``campaign.yaml`` and ``ARM/seed-N.json`` afterwards, or ``ARM/seed-N.lost``:
    what became of a run that did not finish. A campaign that is there stays: it may have more arms.

    Raises:
        DataError: If a run was kept with other numbers and ``should_replace`` is not set.
    """
    result, there = read_results_of(root), output / CAMPAIGN_FILE
    plans = {each.name: each for each in result.campaign.plans()}
    known = read_campaign(there).plans() if there.exists() else [*plans.values()]
    for run in result.runs:
        if (plan := plans[run.name]) not in known:
            raise ConfigError(f"{there} has no run {run.name} with its settings; change it first")
        kept = run.held_out.model_dump().items()
        lines = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in kept)
        path, text = plan.kept(output), "{\n" + ",\n".join(lines) + "\n}\n"
        if path.exists() and not should_replace and path.read_text(encoding="utf-8") != text:
            raise DataError(f"{path} was kept with other numbers than {root} has; give --replace")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
        path.with_suffix(_LOST).unlink(missing_ok=True)
    for plan, why in result.missing:
        path = plan.kept(output).with_suffix(_LOST)
        if why != NOT_RUN and not plan.kept(output).exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, why)
    if not there.exists():
        write_whole(there, (Path(root) / CAMPAIGN_FILE).read_text(encoding="utf-8"))
    return len(result.runs)


def _unfinished(folder: Path) -> str:
    """Return what became of a run that is not finished."""
    if not (folder / "metrics.jsonl").is_file():
        lost = folder.with_suffix(_LOST)
        return lost.read_text(encoding="utf-8") if lost.is_file() else NOT_RUN
    run = read_run(folder)
    why = " ".join(run.failure.split())[:200]
    return f"at step {run.last_step}{f', ended by: {why}' if why else ''}"


def _read_kept(path: Path, plan: Plan) -> Finished:
    try:
        kept = Kept.model_validate_json(path.read_bytes(), strict=True)
    except (OSError, ValidationError) as error:
        raise DataError(f"{path} is damaged: {one_line(error, 200)}; keep the run again") from error
    rows = [
        {name: each for name, each in zip(kept.metrics, row, strict=True) if each is not None}
        for row in zip(*kept.metrics.values(), strict=True)
    ]
    config = OmegaConf.create({})
    for setting in plan.settings:
        name, _, value = setting.lstrip("+").partition("=")
        OmegaConf.update(config, name, value)
    return Finished(
        plan.name,
        rows=[{**row, "step": int(row["step"])} for row in rows],
        config=cast("dict[str, Any]", OmegaConf.to_container(config)),
        machine=kept.machine,
        damaged=Counter(kept.damaged),
        held_out=kept,
    )


def _evaluated(run: Run, plan: Plan) -> Kept:
    """Return what is kept of a run's folder with a finished evaluation."""
    evaluation = (run.folder or Path()) / "evaluation"
    stored, by_source = read_evaluation(evaluation)
    means, ungraded = {}, {}
    for source, groups in by_source.items():
        means[source], failed = _means_of(groups)
        if failed:
            ungraded[source] = failed
    names = sorted({name for row in run.rows for name in row if name.startswith(_KEPT)})
    return Kept(
        made=plan.as_json(),
        num_responses=stored["num_samples"],
        sampling=stored["sampling"],
        files=problem_digests(evaluation),
        machine=run.machine,
        damaged=run.damaged,
        ungraded=ungraded,
        means=means,
        metrics={name: [row.get(name) for row in run.rows] for name in names},
    )


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

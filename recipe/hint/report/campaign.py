"""A campaign's finished runs as numbers: held-out measures by arm, seed and problem; its claims."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from recipe.hint.campaign import (
    CAMPAIGN_FILE,
    DIFFERENCES,
    MEASURES,
    RESULTS,
    Budget,
    Campaign,
    Claim,
    Run,
    kept_file,
    read_campaign,
)
from recipe.hint.errors import ConfigError, DataError
from recipe.hint.evaluation.crossed import crossed_difference, crossed_share, mean_ratio
from recipe.hint.evaluation.estimators import Estimate
from recipe.hint.evaluation.results import percent
from recipe.hint.report.campaign_run import SeedResult, kept_text, read_kept, read_seed
from recipe.hint.report.page.folder import read_folder
from recipe.hint.whole_file import write_whole

Verdict = Literal["holds", "fails", "undecided", "not known"]
_LOST_FILE = "lost.json"  # run -> what became of it, of those that did not finish
_NOT_RUN = "not run"
MIN_SEEDS = 3  # of fewer, an interval over seeds and problems is too narrow


@dataclass
class CampaignResult:
    """The finished runs of a campaign.

    Attributes:
        campaign: What was asked.
        seeds: Arm -> seed -> its result; arms and seeds without one are left out.
        missing: Runs that are not finished, each with what became of it.
    """

    campaign: Campaign
    seeds: dict[str, dict[int, SeedResult]] = field(default_factory=dict)
    missing: list[tuple[Run, str]] = field(default_factory=list)

    @property
    def runs(self) -> list[SeedResult]:
        """The finished runs, arm by arm."""
        return [run for by_seed in self.seeds.values() for run in by_seed.values()]

    def sources(self) -> list[str]:
        """Return the data sources that runs were evaluated on, in the order of the first."""
        return list(dict.fromkeys(source for run in self.runs for source in run.means))

    def measures(self, source: str) -> list[str]:
        """Return the measures that some run has on a data source, in the order of a table."""
        have = {name for run in self.runs for name in run.means.get(source, {})}
        return [name for name in MEASURES if name in have]

    def check_problems(self) -> None:
        """Refuse runs that were evaluated on different files of one name.

        Raises:
            DataError: Naming two of them.
        """
        seen: dict[str, tuple[str, str]] = {}
        for run in self.runs:
            for name, digest in run.files.items():
                first, theirs = seen.setdefault(name, (run.training.name, digest))
                if digest != theirs:
                    raise DataError(
                        f"{first} and {run.training.name} were evaluated on different files "
                        f"{name}; evaluate both on the same"
                    )

    def check_claims(self) -> None:
        """Refuse a claim that no run can ever decide, once all of its arm's runs are there.

        Raises:
            ConfigError: Naming the sources or measures that there are.
        """
        for claim in self.campaign.claims:
            if not self._is_whole(claim.arm):
                continue
            means = [run.means for run in self.seeds[claim.arm].values()]
            if all(claim.source not in each for each in means):
                known = ", ".join(sorted({name for each in means for name in each}))
                raise ConfigError(
                    f"a claim about {claim.arm} is of {claim.source}, on which none of its runs "
                    f"was evaluated; choose from {known}"
                )
            if all(claim.measure not in each.get(claim.source, {}) for each in means):
                raise ConfigError(
                    f"a claim about {claim.arm} is of {claim.measure} on {claim.source}, which has "
                    f"{', '.join(self.measures(claim.source))}"
                )

    def estimate(
        self, arm: str, source: str, measure: str, seeds: Sequence[int] | None = None
    ) -> Estimate | None:
        """Return a measure with its interval over seeds and problems; ``None`` where unknown."""
        table = self._table(arm, source, measure, seeds)
        if table is None:
            return None
        if measure in DIFFERENCES:
            return crossed_difference(table[1])
        return crossed_share(table[1], min(run.num_responses for run in self.seeds[arm].values()))

    def difference(self, arm: str, other: str, source: str, measure: str) -> Estimate | None:
        """Return ``arm`` minus ``other``, paired by seed and problem; ``None`` where unknown.

        Raises:
            DataError: If the two answered different problems.
        """
        seeds = self.common_seeds(arm, other)
        mine, theirs = (self._table(name, source, measure, seeds) for name in (arm, other))
        if mine is None or theirs is None:
            return None
        if mine[0] != theirs[0]:
            raise DataError(
                f"{arm} and {other} were evaluated on different problems of {source}; evaluate "
                f"both on the same files"
            )
        return crossed_difference(mine[1] - theirs[1])

    def common_seeds(self, arm: str, other: str) -> list[int]:
        """Return the seeds of which both arms have a finished run."""
        return sorted(self.seeds.get(arm, {}).keys() & self.seeds.get(other, {}).keys())

    def verdict(self, claim: Claim) -> tuple[str, Verdict]:
        """Return what was measured for a claim, in percent, and what it says of the claim.

        A bound holds where the interval of every seed is on its side, and fails where that of some
        seed is wholly on the other. ``more_than`` goes by the interval of the paired difference
        over seeds and problems, of at least ``MIN_SEEDS`` seeds. Intervals are taken as they are
        shown. What is missing leaves a claim unknown, unless a seed has already broken a bound; so
        do seeds, or arms, that trained for different numbers of steps, and a comparison of
        responses that were drawn with different settings.
        """
        seeds = sorted(self.seeds.get(claim.arm, {}))
        if claim.more_than is not None:
            seeds = self.common_seeds(claim.arm, claim.more_than)
            found = [self.difference(claim.arm, claim.more_than, claim.source, claim.measure)]
            is_whole = self._is_whole(claim.more_than) and len(seeds) >= MIN_SEEDS
        else:
            found = [
                self.estimate(claim.arm, claim.source, claim.measure, [seed]) for seed in seeds
            ]
            is_whole = True
        known = [each for each in found if each is not None]
        is_whole &= self._is_whole(claim.arm) and len(known) == len(found)
        is_whole &= claim.more_than is None or self._are_alike(claim.arm, claim.more_than)
        is_signed = claim.more_than is not None or claim.measure in DIFFERENCES
        text = "; ".join(shown(each, sign=is_signed) for each in known) or "-"
        verdicts = {side_of(claim, each) for each in known}
        if "fails" in verdicts and (is_whole or claim.more_than is None):
            return text, "fails"
        if not is_whole or not known:
            return text, "not known"
        return text, "holds" if verdicts == {"holds"} else "undecided"

    def cost(self, budget: Budget) -> tuple[str, Verdict]:
        """Return how many times the other's tokens an arm took, and what that says of a budget.

        The interval is Student's, of the mean over seeds of the logarithm of the ratio: one
        ratio for each seed that both arms have.
        """
        runs = self._pairs(budget.arm, budget.tokens_of)
        ratios_S = self.token_ratios(budget.arm, budget.tokens_of)
        if len(ratios_S) < MIN_SEEDS:
            return "; ".join(f"{each:.2f}" for each in ratios_S) or "-", "not known"
        value, low, high = (round(each, 2) for each in mean_ratio(ratios_S))
        text = f"{value:.2f} ({low:.2f} - {high:.2f})"
        is_whole = self._is_whole(budget.arm) and self._is_whole(budget.tokens_of)
        steps = {each.steps_with_tokens() for pair in runs for each in pair}
        if not is_whole or len(steps) > 1 or 0 in steps:
            return text, "not known"  # a run without a part of its lines cost more than they say
        at_most = budget.at_most
        return text, "holds" if high <= at_most else "fails" if low > at_most else "undecided"

    def token_ratios(self, arm: str, other: str) -> list[float]:
        """Return the tokens of an arm as multiples of another's, for each seed that both have."""
        tokens = [[each.tokens() for each in pair] for pair in self._pairs(arm, other)]
        return [mine / theirs for mine, theirs in tokens if mine and theirs]

    def _pairs(self, *arms: str) -> list[list[SeedResult]]:
        return [[self.seeds[arm][seed] for arm in arms] for seed in self.common_seeds(*arms)]

    def _are_alike(self, *arms: str) -> bool:
        """Return whether all runs trained for equal steps and drew their responses alike."""
        runs = [run for arm in arms for run in self.seeds.get(arm, {}).values()]
        facts = [
            {**run.sampling, "K": run.num_responses, "seed": 0, "steps": run.training.last_step}
            for run in runs
        ]
        return all(each == facts[0] for each in facts)

    def _is_whole(self, arm: str) -> bool:
        wanted, have = self.campaign.arms[arm].seeds or self.campaign.seeds, self.seeds.get(arm, {})
        lengths = {run.training.last_step for run in have.values()}
        return set(wanted) <= have.keys() and len(lengths) == 1

    def _table(
        self, arm: str, source: str, measure: str, seeds: Sequence[int] | None
    ) -> tuple[list[str], npt.NDArray[np.float64]] | None:
        """Return problems and the means of (seed, problem); ``None`` where a run lacks them.

        Raises:
            DataError: If the runs answered different problems.
        """
        by_seed = self.seeds.get(arm, {})
        names = sorted(by_seed) if seeds is None else seeds
        rows = [by_seed[seed].means.get(source, {}).get(measure, {}) for seed in names]
        if not rows or not all(rows):
            return None
        ids = sorted(rows[0])
        for seed, row in zip(names, rows, strict=True):
            if row.keys() != rows[0].keys():
                raise DataError(
                    f"{arm}: seeds {names[0]} and {seed} were evaluated on different problems of "
                    f"{source}; evaluate both on the same files"
                )
        return ids, np.array([[row[each] for each in ids] for row in rows])


def read_results_of(folder: str | Path) -> CampaignResult:
    """Read the finished runs of a campaign's folder.

    Raises:
        DataError: If a finished run cannot be read, or what was kept of one, or none is finished,
            or two were evaluated on different files of one name.
        ConfigError: If the folder has no campaign's file, a damaged one, or a run that is none of
            the campaign's; or if a claim is about a source or measure that no run has.
    """
    folder = Path(folder)
    result = CampaignResult(read_campaign(folder / CAMPAIGN_FILE))
    lost = _read_lost(folder)
    _check_known(folder, {run.name for run in result.campaign.runs()})
    for run in result.campaign.runs():
        place = folder / run.name
        run.check_made(place)
        if (place / RESULTS).is_file():
            found = read_seed(place, run)
        elif kept_file(place).is_file():
            found = read_kept(kept_file(place), run)
        else:
            result.missing.append((run, lost.get(run.name) or _unfinished(place)))
            continue
        if found.sampling.get("seed") not in (None, run.seed):
            raise DataError(
                f"{place} was evaluated with seed {found.sampling['seed']}, expected its own, "
                f"{run.seed}; evaluate it again"
            )
        result.seeds.setdefault(run.arm, {})[run.seed] = found
    result.check_problems()
    result.check_claims()
    if not result.seeds:
        raise DataError(f"{folder} has no finished run; make them with main_campaign.py")
    # In the order of the file, whichever was finished first.
    order = [name for name in result.campaign.arms if name in result.seeds]
    result.seeds = {name: dict(sorted(result.seeds[name].items())) for name in order}
    return result


def keep_results(
    folder: str | Path, output: Path, *, should_replace: bool = False
) -> CampaignResult:
    """Write what the page reads of each finished run to a file of its own in another folder.

    The page of that folder is the same, and a campaign there goes on with what is missing. What
    became of runs that did not finish is kept too, so that nobody takes them for never begun.

    Args:
        folder: A campaign's.
        output: Holds ``campaign.yaml``, ``ARM/seed-N.json`` and ``lost.json`` afterwards. A
            campaign that is there stays: it may have more arms.
        should_replace: Whether a run that was kept with other numbers gives way.

    Raises:
        DataError: As :func:`read_results_of`, or if a run was kept with other numbers.
        ConfigError: As :func:`read_results_of`, or if ``output`` has a campaign without a finished
            run, or the file of another run.
        OSError: If the disk refuses.
    """
    result, there = read_results_of(folder), output / CAMPAIGN_FILE
    wanted = (read_campaign(there) if there.exists() else result.campaign).runs()
    for run in result.campaign.runs():
        if found := result.seeds.get(run.arm, {}).get(run.seed):
            if run not in wanted:
                raise ConfigError(
                    f"{there} has no run {run.name} with its settings; change it first"
                )
            run.check_made(output / run.name)
            path = kept_file(output / run.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = kept_text(found, run)
            is_other = path.exists() and read_kept(path, run).numbers() != found.numbers()
            if is_other and not should_replace:
                raise DataError(
                    f"{path} was kept with other numbers than {folder} has; give --replace if "
                    f"these are to take their place"
                )
            write_whole(path, text)
    lost = {run.name: what for run, what in result.missing if what != _NOT_RUN}
    lost = {
        name: what
        for name, what in (_read_lost(output) | lost).items()
        if not kept_file(output / name).is_file()
    }
    (output / _LOST_FILE).unlink(missing_ok=True)
    if lost:
        write_whole(output / _LOST_FILE, json.dumps(lost, indent=1) + "\n")
    if not there.exists():
        write_whole(there, (Path(folder) / CAMPAIGN_FILE).read_text(encoding="utf-8"))
    return result


def shown(estimate: Estimate, *, sign: bool = False) -> str:
    """Write an estimate in percent, ``94.1 (91.0 - 96.2)``, with signs where they can differ."""
    value, low, high = (percent(each, sign=sign) for each in estimate)
    return f"{value} ({low} - {high})" if not sign else f"{value} ({low} to {high})"


def side_of(claim: Claim, found: Estimate) -> Verdict:
    """Return on which side of a claim's bound an interval is, as it is shown."""
    low, high = (float(percent(each)) for each in (found.low, found.high))
    if claim.more_than is not None:
        bound = float(percent(claim.by))
        return "holds" if low > bound else "fails" if high < bound else "undecided"
    if claim.at_least is not None:
        bound = float(percent(claim.at_least))
        return "holds" if low >= bound else "fails" if high < bound else "undecided"
    assert claim.below is not None, "a claim has exactly one bound"
    bound = float(percent(claim.below))
    return "holds" if high < bound else "fails" if low >= bound else "undecided"


def _check_known(folder: Path, names: set[str]) -> None:
    """Refuse results of a seed or an arm that the campaign does not name: none is left out."""
    found = [*folder.glob("*/seed-*.json")]
    found += [path.parents[1] for path in folder.glob(f"*/seed-*/{RESULTS}")]
    for path in sorted(found):
        if (name := f"{path.parent.name}/{path.name.removesuffix('.json')}") not in names:
            raise ConfigError(
                f"{path} is the result of {name}, no run of the campaign; name its arm and seed "
                f"in {CAMPAIGN_FILE}, or move it away"
            )


def _read_lost(folder: Path) -> dict[str, str]:
    """Return what was kept of runs that did not finish.

    Raises:
        DataError: If that file is damaged.
    """
    path = folder / _LOST_FILE
    if not path.exists():
        return {}
    try:
        return TypeAdapter(dict[str, str]).validate_json(path.read_bytes(), strict=True)
    except ValidationError as error:
        raise DataError(f"{path} must hold texts by the names of runs: {error}") from error


def _unfinished(place: Path) -> str:
    """Return what became of a run that is not finished."""
    if not (place / "metrics.jsonl").is_file():
        return _NOT_RUN
    training = read_folder(place, with_visits=False)
    why = " ".join(training.failure.split())[:200]
    end = f", ended by: {why}" if why else ""
    return f"at step {training.last_step}{end}"

"""A campaign's finished runs as numbers: held-out measures by arm, seed and problem; its claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from recipe.run.errors import ConfigError, DataError
from recipe.study.campaign import (
    DIFFERENCES,
    MEASURES,
    Budget,
    Campaign,
    Claim,
    Run,
)
from recipe.study.estimators import (
    Estimate,
    crossed_difference,
    crossed_p,
    crossed_share,
    mean_ratio,
)
from recipe.study.report.campaign_run import SeedResult
from recipe.study.tables import percent

ClaimVerdict = Literal["holds", "fails", "undecided", "not known"]
MIN_SEEDS = 3  # of fewer, an interval over seeds and problems is too narrow


class _Table(NamedTuple):
    """The means of (seed, problem); ``answered`` are all problems, also those without a grade."""

    answered: set[str]
    ids: list[str]
    means_SP: npt.NDArray[np.float64]

    def of(self, ids: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the columns of some problems."""
        place = {name: at for at, name in enumerate(self.ids)}
        return self.means_SP[:, [place[name] for name in ids]]


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
            if not self._is_complete(claim.arm):
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
        self,
        arm: str,
        source: str,
        measure: str,
        seeds: Sequence[int] | None = None,
        end: int | None = None,
    ) -> Estimate | None:
        """Return a measure with its interval over seeds and problems; ``None`` where unknown.

        ``end`` is that of :meth:`SeedResult.values`.
        """
        table = self._table(arm, source, measure, seeds, end)
        if table is None:
            return None
        if measure in DIFFERENCES:
            return crossed_difference(table.means_SP)
        return crossed_share(
            table.means_SP, min(run.num_responses for run in self.seeds[arm].values())
        )

    def difference(
        self, arm: str, other: str, source: str, measure: str, end: int | None = None
    ) -> Estimate | None:
        """Return ``arm`` minus ``other``, paired by seed and problem; ``None`` where unknown.

        ``end`` is that of :meth:`SeedResult.values` for ``arm``; ``other`` has the opposite one.

        Raises:
            DataError: If the two answered different problems.
        """
        differences_SP = self._differences(arm, other, source, measure, end)
        return None if differences_SP is None else crossed_difference(differences_SP)

    def p_value(self, claim: Claim) -> float | None:
        """Return the p value of a claim that one arm is above another; ``None`` without one.

        A claim with a margin, one with another kind of bound, one without a verdict, and one of a
        single problem have none.
        """
        if claim.more_than is None or claim.by or self.verdict(claim)[1] == "not known":
            return None
        found = self._differences(claim.arm, claim.more_than, claim.source, claim.measure)
        return None if found is None or min(found.shape) < 2 else crossed_p(found)

    def _differences(
        self, arm: str, other: str, source: str, measure: str, end: int | None = None
    ) -> npt.NDArray[np.float64] | None:
        seeds = self.common_seeds(arm, other)
        mine = self._table(arm, source, measure, seeds, end)
        theirs = self._table(other, source, measure, seeds, None if end is None else 1 - end)
        if mine is None or theirs is None:
            return None
        if mine.answered != theirs.answered:
            raise DataError(
                f"{arm} and {other} were evaluated on different problems of {source}; evaluate "
                f"both on the same files"
            )
        common = sorted(set(mine.ids) & set(theirs.ids))
        return mine.of(common) - theirs.of(common) if common else None

    def common_seeds(self, arm: str, other: str) -> list[int]:
        """Return the seeds of which both arms have a finished run."""
        return sorted(self.seeds.get(arm, {}).keys() & self.seeds.get(other, {}).keys())

    def verdict(self, claim: Claim) -> tuple[str, ClaimVerdict]:
        """Return what was measured for a claim, in percent, and what it says of the claim.

        A bound holds where the interval of every seed is on its side, and fails where that of some
        seed is wholly on the other. ``more_than`` goes by the interval of the paired difference
        over seeds and problems, of at least ``MIN_SEEDS`` seeds. Intervals are taken as they are
        shown. What is missing leaves a claim unknown, unless a seed has already broken a bound; so
        do seeds, or arms, that trained for different numbers of steps, a comparison of responses
        that were drawn with different settings, and responses that the verifier failed on, if
        their grades could give another verdict.
        """
        text, verdict = self._judged(claim)
        arms = {claim.arm, claim.more_than or claim.arm}
        runs = [run for arm in arms for run in self.seeds.get(arm, {}).values()]
        if any(run.ungraded.get(claim.source) for run in runs):
            ends = {self._judged(claim, end)[1] for end in (0, 1)}
            verdict = verdict if ends == {verdict} else "not known"
        return text, verdict

    def _judged(self, claim: Claim, end: int | None = None) -> tuple[str, ClaimVerdict]:
        seeds = sorted(self.seeds.get(claim.arm, {}))
        if claim.more_than is not None:
            seeds = self.common_seeds(claim.arm, claim.more_than)
            found = [self.difference(claim.arm, claim.more_than, claim.source, claim.measure, end)]
            is_complete = self._is_complete(claim.more_than) and len(seeds) >= MIN_SEEDS
        else:
            found = [
                self.estimate(claim.arm, claim.source, claim.measure, [seed], end) for seed in seeds
            ]
            is_complete = True
        known = [each for each in found if each is not None]
        is_complete &= self._is_complete(claim.arm) and len(known) == len(found)
        is_complete &= claim.more_than is None or self._are_alike(claim.arm, claim.more_than)
        is_signed = claim.more_than is not None or claim.measure in DIFFERENCES
        text = "; ".join(shown(each, sign=is_signed) for each in known) or "-"
        verdicts = {side_of(claim, each) for each in known}
        if "fails" in verdicts and (is_complete or claim.more_than is None):
            return text, "fails"
        if not is_complete or not known:
            return text, "not known"
        return text, "holds" if verdicts == {"holds"} else "undecided"

    def cost(self, budget: Budget) -> tuple[str, ClaimVerdict]:
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
        is_complete = self._is_complete(budget.arm) and self._is_complete(budget.tokens_of)
        steps = {each.steps_with_tokens() for pair in runs for each in pair}
        if not is_complete or len(steps) > 1 or 0 in steps:
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

    def _is_complete(self, arm: str) -> bool:
        wanted, have = self.campaign.arms[arm].seeds or self.campaign.seeds, self.seeds.get(arm, {})
        lengths = {run.training.last_step for run in have.values()}
        return set(wanted) <= have.keys() and len(lengths) == 1

    def _table(
        self,
        arm: str,
        source: str,
        measure: str,
        seeds: Sequence[int] | None,
        end: int | None,
    ) -> _Table | None:
        """Return the means of the problems that every run has some of; ``None`` without any.

        Raises:
            DataError: If the runs answered different problems.
        """
        by_seed = self.seeds.get(arm, {})
        names = sorted(by_seed) if seeds is None else seeds
        rows = [by_seed[seed].values(source, measure, end) for seed in names]
        if not rows or not all(rows):
            return None
        answered = by_seed[names[0]].problems(source)
        for seed in names:
            if by_seed[seed].problems(source) != answered:
                raise DataError(
                    f"{arm}: seeds {names[0]} and {seed} were evaluated on different problems of "
                    f"{source}; evaluate both on the same files"
                )
        ids = sorted(set.intersection(*map(set, rows)))
        means_SP = np.array([[row[each] for each in ids] for row in rows])
        return _Table(answered, ids, means_SP) if ids else None


def shown(estimate: Estimate, *, sign: bool = False) -> str:
    """Write an estimate in percent, ``94.1 (91.0 - 96.2)``, with signs where they can differ."""
    value, low, high = (percent(each, sign=sign) for each in estimate)
    return f"{value} ({low} - {high})" if not sign else f"{value} ({low} to {high})"


def side_of(claim: Claim, found: Estimate) -> ClaimVerdict:
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

"""A campaign's finished runs as numbers: held-out measures by arm, seed and problem; its claims."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from recipe.hint.campaign import CAMPAIGN_FILE, Campaign, Claim, Run, read_campaign
from recipe.hint.errors import DataError
from recipe.hint.evaluation.crossed import crossed_difference, crossed_share
from recipe.hint.evaluation.estimators import Estimate
from recipe.hint.evaluation.responses import GradedResponse, Groups, response_path
from recipe.hint.evaluation.results import read_groups, read_results
from recipe.hint.problems.columns import read_problems
from recipe.hint.report.page.folder import PageRun, read_folder
from recipe.hint.tiny.two_turn.task import worked_digit

# Of a response, by its name in ``Conversation.facts``; the last three are not facts of it.
MEASURES = {
    "acc_t1": "turn 1",
    "acc_t2": "last turn",
    "delta": "delta",
    "wrong_to_right": "wrong > right",
    "right_to_wrong": "right > wrong",
    "unchanged": "unchanged",
    "accuracy": "accuracy",
    "work": "work right",
}
_DIFFERENCES = {"delta"}
Verdict = Literal["holds", "fails", "not known"]


@dataclass
class SeedResult:
    """What one run came to.

    Attributes:
        training: Its metrics and settings.
        means: Data source -> measure -> problem -> mean over the K responses.
        num_responses: K.
        sampling: What the responses were drawn with.
    """

    training: PageRun
    means: Mapping[str, Mapping[str, Mapping[str, float]]]
    num_responses: int
    sampling: Mapping[str, Any]


@dataclass
class CampaignResult:
    """The finished runs of a campaign.

    Attributes:
        campaign: What was asked.
        seeds: Arm -> seed -> its result; arms and seeds without one are left out.
        missing: Runs that are not finished.
    """

    campaign: Campaign
    seeds: dict[str, dict[int, SeedResult]] = field(default_factory=dict)
    missing: list[Run] = field(default_factory=list)

    def sources(self) -> list[str]:
        """Return the data sources that runs were evaluated on, in the order of the first."""
        runs = [run for by_seed in self.seeds.values() for run in by_seed.values()]
        return list(dict.fromkeys(source for run in runs for source in run.means))

    def measures(self, source: str) -> list[str]:
        """Return the measures that some run has on a data source, in the order of a table."""
        runs = [run for by_seed in self.seeds.values() for run in by_seed.values()]
        have = {name for run in runs for name in run.means.get(source, {})}
        return [name for name in MEASURES if name in have]

    def estimate(
        self, arm: str, source: str, measure: str, seeds: Sequence[int] | None = None
    ) -> Estimate | None:
        """Return a measure with its interval over seeds and problems; ``None`` where unknown."""
        found = self._table(arm, source, measure, seeds)
        if found is None:
            return None
        if measure in _DIFFERENCES:
            return crossed_difference(found)
        return crossed_share(found, min(run.num_responses for run in self.seeds[arm].values()))

    def difference(self, arm: str, other: str, source: str, measure: str) -> Estimate | None:
        """Return ``arm`` minus ``other``, paired by seed and problem; ``None`` where unknown."""
        seeds = sorted(self.seeds.get(arm, {}).keys() & self.seeds.get(other, {}).keys())
        mine, theirs = (self._table(name, source, measure, seeds) for name in (arm, other))
        if mine is None or theirs is None or mine.shape != theirs.shape:
            return None
        return crossed_difference(mine - theirs)

    def verdict(self, claim: Claim) -> tuple[str, Verdict]:
        """Return what was measured for a claim, in percent, and whether it holds.

        A bound holds where the whole interval of every seed is on its side; ``more_than`` where the
        interval of the paired difference over seeds and problems is above 0. Runs of the claim's
        arms that are missing leave it unknown, unless a seed has already broken a bound.
        """
        if claim.more_than is not None:
            found = self.difference(claim.arm, claim.more_than, claim.source, claim.measure)
            if found is None:
                return "-", "not known"
            is_whole = self._is_whole(claim.arm) and self._is_whole(claim.more_than)
            holds: Verdict = "holds" if found.low > 0 else "fails"
            return shown(found, sign=True), holds if is_whole else "not known"
        seeds = sorted(self.seeds.get(claim.arm, {}))
        by_seed = [self.estimate(claim.arm, claim.source, claim.measure, [each]) for each in seeds]
        known = [each for each in by_seed if each is not None]
        if not known:
            return "-", "not known"
        broken = any(not _is_within(claim, each) for each in known)
        text = "; ".join(shown(each, sign=claim.measure in _DIFFERENCES) for each in known)
        if broken:
            return text, "fails"
        return text, "holds" if self._is_whole(claim.arm) else "not known"

    def _is_whole(self, arm: str) -> bool:
        wanted = self.campaign.arms[arm].seeds or self.campaign.seeds
        return set(wanted) <= self.seeds.get(arm, {}).keys()

    def _table(
        self, arm: str, source: str, measure: str, seeds: Sequence[int] | None
    ) -> npt.NDArray[np.float64] | None:
        """Return the means of (seed, problem); ``None`` where a run lacks the measure.

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
        return np.array([[row[each] for each in ids] for row in rows])


def read_results_of(folder: str | Path) -> CampaignResult:
    """Read the finished runs of a campaign's folder.

    Raises:
        DataError: If a finished run cannot be read, or none is finished.
        ConfigError: If the folder has no campaign's file, or a damaged one.
    """
    folder = Path(folder)
    result = CampaignResult(read_campaign(folder / CAMPAIGN_FILE))
    for run in result.campaign.runs():
        place = folder / run.name
        if (place / "evaluation" / "results.json").is_file():
            result.seeds.setdefault(run.arm, {})[run.seed] = _read_seed(place, run)
        else:
            result.missing.append(run)
    if not result.seeds:
        raise DataError(f"{folder} has no finished run; make them with main_campaign.py")
    # In the order of the file, whichever was finished first.
    order = [name for name in result.campaign.arms if name in result.seeds]
    result.seeds = {name: dict(sorted(result.seeds[name].items())) for name in order}
    return result


def shown(estimate: Estimate, *, sign: bool = False) -> str:
    """Write an estimate in percent, ``94.1 (91.0 - 96.2)``, with signs where they can differ."""
    style = "+.1f" if sign else ".1f"
    value, low, high = (f"{round(100 * each, 1) + 0.0:{style}}" for each in estimate)
    return f"{value} ({low} - {high})" if not sign else f"{value} ({low} to {high})"


def _is_within(claim: Claim, found: Estimate) -> bool:
    if claim.at_least is not None:
        return found.low >= claim.at_least
    assert claim.below is not None, "a claim has exactly one bound"
    return found.high < claim.below


def _read_seed(place: Path, run: Run) -> SeedResult:
    evaluation = place / "evaluation"
    stored = read_results(evaluation)
    groups = read_groups(evaluation, stored["num_samples"])
    training = read_folder(place, with_visits=False)
    training.name = run.name
    means = {source: _means(of_source) for source, of_source in groups.items()}
    for source in means:
        if source.startswith("two_turn/") and (work := _work(evaluation, source, training)):
            means[source]["work"] = work
    return SeedResult(training, means, stored["num_samples"], stored["sampling"])


def _means(groups: Groups) -> dict[str, dict[str, float]]:
    """Return measure -> problem -> mean over its responses."""
    found: dict[str, dict[str, float]] = {}
    for problem, responses in groups.items():
        facts = [_facts(each) for each in responses]
        for name in MEASURES:
            if all(name in each for each in facts):
                found.setdefault(name, {})[problem] = sum(each[name] for each in facts) / len(facts)
    return found


def _facts(response: GradedResponse) -> Mapping[str, float]:
    return response.facts or {"accuracy": response.score}


def _work(evaluation: Path, source: str, training: PageRun) -> dict[str, float]:
    """Return each problem's share of first responses whose work ends in the answer.

    Empty where the problems' files are not at hand any more, or responses hold no conversation.
    """
    files = [Path(each) for each in training.setting("data.val_files") or []]
    if not all(each.is_file() for each in files):
        return {}
    answers = {
        each.id: each.answer
        for path in files
        for each in read_problems(path)
        if each.data_source == source
    }
    right: dict[str, list[bool]] = {}
    for row in _rows(response_path(evaluation, source)):
        first = next(
            (m["content"] for m in row.get("conversation", ()) if m["role"] == "assistant"), None
        )
        if first is not None and row["id"] in answers:
            is_right = str(worked_digit(first)) == answers[row["id"]]
            right.setdefault(row["id"], []).append(is_right)
    return {name: sum(each) / len(each) for name, each in right.items()}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with open(path, "rb") as lines:
        yield from map(json.loads, lines)

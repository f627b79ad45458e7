"""Estimators and 95 % intervals for P problems with K responses each, and for S training seeds.

The K responses to one problem are a cluster (Miller 2024, arXiv:2411.00640). Not covered: the
prompt, the verifier, and with one run the training.

Where S runs answer the same problems, the variance is Vs + Vp - Vsp, where Vs and Vp are those of
the mean over seeds and over problems, and Vsp what both count (the variance of the residuals over
S P); never below any of the three. The interval has Satterthwaite's degrees of freedom. Sources:
Cameron, Gelbach and Miller 2011, J. Bus. Econ. Stat. 29; Satterthwaite 1946, Biometrics 2.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import mpmath
import numpy as np
import numpy.typing as npt

from recipe.hint.conversations import TURN_FACTS

_LEVEL = 0.95
_SAME = 1e-12  # numbers in [-1, 1] that are no further apart differ in how they were added up


class Estimate(NamedTuple):
    """A value and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@functools.lru_cache(maxsize=4096)
def pass_at_k(num_responses: int, num_correct: int, k: int) -> float:
    """Return the unbiased chance that at least one of ``k`` responses is correct.

    It does not exist for k > ``num_responses``: an error, not 1.0. Source: Chen et al. 2021,
    arXiv:2107.03374.
    """
    if not 1 <= k <= num_responses or not 0 <= num_correct <= num_responses:
        raise ValueError(f"no pass@{k} of {num_responses} responses, {num_correct} correct")
    return 1.0 - math.comb(num_responses - num_correct, k) / math.comb(num_responses, k)


def majority_score(keys_K: Sequence[str], scores_K: Sequence[float]) -> float:
    """Return the expected score of the answer that most responses to one problem give.

    Equal answers share a key; the empty one stands for "no graded answer": these responses vote
    together, and their class is wrong. The score of a class is the mean of its members; that of
    several largest classes the mean of theirs (a tie broken by lot).
    """
    classes: defaultdict[str, list[float]] = defaultdict(list)
    for key, score in zip(keys_K, scores_K, strict=True):
        classes[key].append(score if key else 0.0)
    largest = max(Counter(keys_K).values())
    winners = [sum(group) / largest for group in classes.values() if len(group) == largest]
    return sum(winners) / len(winners)


@functools.lru_cache(maxsize=256)
def t_quantile(degrees: int) -> float:
    """Return Student's t for a two-sided 95 % interval."""

    def excess(t: Any) -> Any:
        return _t_outside(t, degrees) - (1 - _LEVEL)

    return float(mpmath.findroot(excess, (1.9, 13), solver="anderson"))


def _t_outside(t: Any, degrees: int) -> Any:
    """Return the probability that Student's t is beyond ``t`` on either side, an mpmath number."""
    return mpmath.betainc(degrees / 2, 0.5, 0, degrees / (degrees + t * t), regularized=True)


def holm(probabilities: Sequence[float]) -> list[float]:
    """Return p values corrected for how many were looked at, in their order.

    Source: Holm 1979, Scand. J. Stat. 6.
    """
    corrected, last, count = [0.0] * len(probabilities), 0.0, len(probabilities)
    for rank, place in enumerate(sorted(range(count), key=probabilities.__getitem__)):
        last = max(last, min(1.0, (count - rank) * probabilities[place]))
        corrected[place] = last
    return corrected


def _missed_p(share: float, num_problems: int) -> float:
    """Return the two-sided p value of no draw finding this share of problems of another kind."""
    return min(1.0, 2 * (1 - min(share, 1.0)) ** num_problems)


def turn_metrics(facts_P: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, float]:
    """Return what a further turn changes: means over problems with their 95 % intervals.

    Args:
        facts_P: Problem -> the facts of its conversations (``Conversation.facts``); where first
            turns branch, those of its first turns (``mean_facts``).

    Returns:
        ``acc_t1`` and ``acc_t2`` (the last turn), ``delta``, ``wrong_to_right``,
        ``right_to_wrong``, ``unchanged``, each with ``_low`` and ``_high``; and ``conversations``,
        the number of those that are known (not NaN). Empty without any.
    """
    known_P = [
        [each for each in found if not math.isnan(each["delta"])] for found in facts_P.values()
    ]
    groups = [found for found in known_P if found]
    if not groups:
        return {}
    most = max(map(len, groups))
    metrics: dict[str, float] = {"conversations": float(sum(map(len, groups)))}
    for name in TURN_FACTS:
        means_P = [fmean(each[name] for each in found) for found in groups]
        of = crossed_difference(means_P) if name == "delta" else crossed_share(means_P, most)
        metrics |= {name: of.value, f"{name}_low": of.low, f"{name}_high": of.high}
    return metrics


def crossed_share(means_SP: npt.ArrayLike, num_responses: int) -> Estimate:
    """Estimate a share over seeds and problems, or with one row or ``P`` values over problems.

    Values are in [0, 1], each the mean of K responses. The clustered variance says how many
    independent draws they are worth, at most S * P * K; Wilson's interval is taken at that number,
    with Student's t. Unlike mean +- t * error it stays in [0, 1], is not of width zero when all
    problems have one score, and holds its level with few or very hard problems. It is all of [0, 1]
    for a single problem.

    Source: Wilson's interval at the effective sample size, Dean and Pagano 2015, J. Surv. Stat.
    Methodol. 3.
    """
    means_SP = np.atleast_2d(np.asarray(means_SP, dtype=np.float64))
    mean, num_problems = float(means_SP.mean()), means_SP.shape[1]
    if num_problems == 1:
        return Estimate(mean, 0.0, 1.0)
    # Equal everywhere: worth no more than the problems.
    count, degrees = float(num_problems), num_problems - 1
    if np.ptp(means_SP) > _SAME:
        variance, degrees = _variance(means_SP)
        count = min(mean * (1 - mean) / variance, means_SP.size * num_responses)
    # Not above 0 where the mean is 0 or 1 but for rounding.
    weight = t_quantile(degrees) ** 2 / (count if count > 0 else num_problems)
    centre = (mean + weight / 2) / (1 + weight)
    half = math.sqrt(weight * (mean * (1 - mean) + weight / 4)) / (1 + weight)
    return Estimate(mean, max(0.0, min(centre - half, mean)), min(1.0, max(centre + half, mean)))


def crossed_difference(differences_SP: npt.ArrayLike) -> Estimate:
    """Estimate a mean difference over seeds and problems, or with one row over problems.

    Differences are in [-1, 1]; the interval is mean +- t * error (Miller 2024). Where only some
    problems have another difference than most, it allows for the share of such problems that P
    draws can miss, in proportion to those that have none; where all have the same, for that share
    (Clopper and Pearson 1934, Biometrika 26).
    """
    differences_SP = np.atleast_2d(np.asarray(differences_SP, dtype=np.float64))
    mean = float(differences_SP.mean())
    unseen = 1 - ((1 - _LEVEL) / 2) ** (1 / differences_SP.shape[1])
    if differences_SP.shape[1] == 1 or np.ptp(differences_SP) <= _SAME:
        return Estimate(mean, mean - unseen * (mean + 1), mean + unseen * (1 - mean))
    variance, degrees = _variance(differences_SP)
    half = max(t_quantile(degrees) * math.sqrt(variance), unseen * _same_share(differences_SP))
    return Estimate(mean, max(-1.0, mean - half), min(1.0, mean + half))


def crossed_p(differences_SP: npt.ArrayLike) -> float:
    """Return the two-sided p value of a mean difference against 0, of two seeds or more.

    It is below 0.05 where the interval of :func:`crossed_difference` leaves 0 out: the larger p
    value of Student's t and of problems that were not drawn and could make the mean 0.
    """
    differences_SP = np.asarray(differences_SP, dtype=np.float64)
    distance, num_problems = abs(float(differences_SP.mean())), differences_SP.shape[1]
    if np.ptp(differences_SP) <= _SAME:  # unseen problems differ by 1 the other way: d / (1 + d)
        return _missed_p(distance / (1 + distance), num_problems)
    share = _same_share(differences_SP)
    variance, degrees = _variance(differences_SP)
    return max(
        _missed_p(distance / share, num_problems) if share else 0.0,
        float(_t_outside(distance / math.sqrt(variance), degrees)),
    )


def _same_share(differences_SP: npt.NDArray[np.float64]) -> float:
    """Return the share of problems with the commonest difference, equal in all seeds."""
    same_in_all_P = np.ptp(differences_SP, axis=0) <= _SAME
    _, counts = np.unique(differences_SP[0, same_in_all_P].round(9), return_counts=True)
    return counts.max(initial=0) / differences_SP.shape[1]


def _variance(values_SP: npt.NDArray[np.float64]) -> tuple[float, int]:
    """Return the variance of the mean, and its degrees of freedom; of one seed over problems."""
    num_seeds, num_problems = values_SP.shape
    if num_seeds == 1:
        return float(values_SP.var(ddof=1)) / num_problems, num_problems - 1
    of_seeds_S, of_problems_P = values_SP.mean(axis=1), values_SP.mean(axis=0)
    residuals_SP = values_SP - of_seeds_S[:, None] - of_problems_P + values_SP.mean()
    seeds = float(of_seeds_S.var(ddof=1)) / num_seeds
    problems = float(of_problems_P.var(ddof=1)) / num_problems
    free = (num_seeds - 1) * (num_problems - 1)
    both = float((residuals_SP**2).sum()) / free / values_SP.size
    variance = max(seeds + problems - both, seeds, problems, both)
    spread = seeds**2 / (num_seeds - 1) + problems**2 / (num_problems - 1) + both**2 / free
    # More degrees than all values have change nothing in t.
    degrees = min(variance**2 / spread, values_SP.size)
    # Of a sum they are never fewer than of its worst term; what is taken off can bring 2 to 1.99.
    return variance, max(min(values_SP.shape) - 1, int(degrees))

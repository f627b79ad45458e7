"""Estimators and intervals for benchmarks of P problems with K responses each.

All intervals are at 95 %. Problems are the independent draws; the K responses to one problem are a
cluster (Miller 2024, arXiv:2411.00640). Covered: which problems a benchmark happens to hold, and
the luck of sampling. Not covered: the training run, the prompt, the verifier.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import mpmath
import numpy as np
import numpy.typing as npt

_LEVEL = 0.95
SAME = 1e-12  # numbers in [-1, 1] that are no further apart differ in how they were added up
_NORMAL_QUANTILE = 1.959964  # of the normal distribution, two-sided 95 %


class Estimate(NamedTuple):
    """A value and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@functools.lru_cache(maxsize=4096)
def pass_at_k(num_responses: int, num_correct: int, k: int) -> float:
    """Return the unbiased chance that at least one of ``k`` responses is correct.

    Source: Chen et al. 2021, arXiv:2107.03374.

    Args:
        num_responses: Drawn for one problem, n >= k.
        num_correct: Those graded correct, 0 <= c <= n.
        k: Budget in responses.

    Returns:
        Probability in [0, 1]; exactly 1.0 when fewer than k responses are wrong.

    Raises:
        ValueError: If k > n. The estimator does not exist there; do not report 1.0. Also if k or
            c is out of range.
    """
    if not 1 <= k <= num_responses:
        raise ValueError(
            f"pass@{k} of {num_responses} responses does not exist; k must be "
            f"1..{num_responses}, so draw more responses or lower k"
        )
    if not 0 <= num_correct <= num_responses:
        raise ValueError(f"num_correct={num_correct} must be 0..{num_responses}")
    return 1.0 - math.comb(num_responses - num_correct, k) / math.comb(num_responses, k)


def majority_score(keys_K: Sequence[str], scores_K: Sequence[float]) -> float:
    """Return the expected score of the answer that most responses to one problem give.

    Args:
        keys_K: What equal answers share. The empty key stands for "no graded answer": these
            responses vote together, and their class is wrong.
        scores_K: In [0, 1]; the score of a class is the mean of its members.

    Returns:
        In [0, 1]; with several largest classes, the mean of their scores (a tie broken by lot).

    Raises:
        ValueError: If there are no responses.
    """
    if not keys_K:
        raise ValueError("a majority of no responses does not exist; give at least one")
    classes: defaultdict[str, list[float]] = defaultdict(list)
    for key, score in zip(keys_K, scores_K, strict=True):
        classes[key].append(score if key else 0.0)
    largest = max(Counter(keys_K).values())
    winners = [sum(group) / largest for group in classes.values() if len(group) == largest]
    return sum(winners) / len(winners)


@functools.lru_cache(maxsize=256)
def t_quantile(degrees: int) -> float:
    """Return Student's t for a two-sided 95 % interval.

    Raises:
        ValueError: If ``degrees`` is not positive.
    """
    if degrees < 1:
        raise ValueError(f"degrees={degrees} must be at least 1")

    def excess(t: Any) -> Any:
        return t_outside(t, degrees) - (1 - _LEVEL)

    return float(mpmath.findroot(excess, (1.9, 13), solver="anderson"))


def t_outside(t: Any, degrees: int) -> Any:
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


def wilson_interval(
    share: float, count: float, quantile: float = _NORMAL_QUANTILE
) -> tuple[float, float]:
    """Return Wilson's interval of a share of ``count`` independent draws.

    Source: Wilson 1927, J. Am. Stat. Assoc. 22.

    Raises:
        ValueError: If ``count`` is not positive.
    """
    if count <= 0:
        raise ValueError(f"count={count} must be positive")
    weight = quantile * quantile / count
    centre = (share + weight / 2) / (1 + weight)
    half = math.sqrt(weight * (share * (1 - share) + weight / 4)) / (1 + weight)
    return max(0.0, centre - half), min(1.0, centre + half)


def clustered_mean(means_P: npt.ArrayLike, num_responses: int) -> Estimate:
    """Estimate the mean score over problems, its interval clustered by problem.

    The clustered variance says how many independent draws the responses are worth; Wilson's
    interval is taken at that number, with Student's t on P - 1 degrees. Unlike mean +- t * error
    it stays in [0, 1], is not of width zero when all problems have one score, and holds its level
    with few or very hard problems.

    Source: clustering, Miller 2024, arXiv:2411.00640; Wilson's interval at the effective sample
    size, Dean and Pagano 2015, J. Surv. Stat. Methodol. 3.

    Args:
        means_P: Mean score of each problem's K responses, in [0, 1].
        num_responses: K; P * K responses are never taken to be worth more than P * K draws.

    Returns:
        The interval is all of [0, 1] for a single problem, which tells nothing about others.

    Raises:
        ValueError: If there are no problems.
    """
    means_P = _not_empty(means_P)
    num_problems, mean = len(means_P), float(means_P.mean())
    if num_problems == 1:
        return Estimate(mean, 0.0, 1.0)
    count: float = num_problems
    if np.ptp(means_P) > SAME:
        variance = float(means_P.var(ddof=1)) / num_problems
        count = min(mean * (1 - mean) / variance, num_problems * num_responses)
    low, high = wilson_interval(mean, count, t_quantile(num_problems - 1))
    return Estimate(mean, min(low, mean), max(high, mean))


def paired_mean(differences_P: npt.ArrayLike) -> Estimate:
    """Estimate the mean difference of two runs on the same problems, mean +- t * error.

    Source: paired differences of clustered scores, Miller 2024, arXiv:2411.00640.

    Args:
        differences_P: Per problem, mean score of one run minus that of the other, in [-1, 1].

    Returns:
        When all differences are the same number there is no error to estimate; then the ends
        allow for the share of other problems, 1 - 0.025 ** (1 / P), that P draws can miss
        (Clopper and Pearson 1934). For one problem that is nearly all of [-1, 1].

    Raises:
        ValueError: If there are no problems.
    """
    differences_P = _not_empty(differences_P)
    num_problems, mean = len(differences_P), float(differences_P.mean())
    if np.ptp(differences_P) <= SAME:
        unseen = unseen_share(num_problems)
        return Estimate(mean, mean - unseen * (mean + 1), mean + unseen * (1 - mean))
    error = float(differences_P.std(ddof=1)) / math.sqrt(num_problems)
    half = t_quantile(num_problems - 1) * error
    return Estimate(mean, max(-1.0, mean - half), min(1.0, mean + half))


def unseen_share(num_problems: int) -> float:
    """Return the largest share of problems of another kind that as many draws can miss, at 95 %.

    Source: Clopper and Pearson 1934, Biometrika 26.
    """
    return 1 - ((1 - _LEVEL) / 2) ** (1 / num_problems)


def missed_p(share: float, num_problems: int) -> float:
    """Return the two-sided p value of no draw finding this share of problems of another kind."""
    return min(1.0, 2 * (1 - min(share, 1.0)) ** num_problems)


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """Return the unweighted mean of independent estimates, its ends from the distances to theirs.

    Source: Zou and Donner 2008, Stat. Med. 27 (variance recovered from the limits).

    Raises:
        ValueError: If there are no estimates.
    """
    if not estimates:
        raise ValueError("a mean of no estimates does not exist; give at least one")
    count = len(estimates)
    mean = sum(each.value for each in estimates) / count
    down = math.hypot(*(each.value - each.low for each in estimates)) / count
    up = math.hypot(*(each.high - each.value for each in estimates)) / count
    return Estimate(mean, mean - down, mean + up)


def _not_empty(values_P: npt.ArrayLike) -> npt.NDArray[np.float64]:
    values_P = np.asarray(values_P, dtype=np.float64)
    if values_P.ndim != 1 or not len(values_P):
        raise ValueError(
            f"expected one value per problem and at least one problem, got shape {values_P.shape}"
        )
    return values_P

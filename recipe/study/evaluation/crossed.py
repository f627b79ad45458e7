"""Estimates over training seeds and problems: every seed's run answers the same problems.

Seeds and problems are both drawn, so the spread of each enters the variance: with S seeds and P
problems it is estimated as Vs + Vp - Vsp, where Vs and Vp are those of the mean over seeds and over
problems, and Vsp what both count (the variance of the residuals over S P). It is never taken to be
below any of the three. The interval has Satterthwaite's degrees of freedom: few where the seeds
differ more than the problems do.

Source: Cameron, Gelbach and Miller 2011, J. Bus. Econ. Stat. 29 (two-way clustering); Satterthwaite
1946, Biometrics 2.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from recipe.study.evaluation.estimators import (
    SAME,
    Estimate,
    clustered_mean,
    missed_p,
    paired_mean,
    t_outside,
    t_quantile,
    unseen_share,
    wilson_interval,
)


def crossed_share(means_SP: npt.ArrayLike, num_responses: int) -> Estimate:
    """Estimate a share over seeds and problems; Wilson's interval at the effective number of draws.

    Args:
        means_SP: Mean of each seed's K responses to each problem, in [0, 1].
        num_responses: K.

    Returns:
        With one seed the interval is over problems alone
        (:func:`~recipe.study.evaluation.estimators.clustered_mean`).

    Raises:
        ValueError: If there is no seed or no problem.
    """
    means_SP = _not_empty(means_SP)
    num_seeds, num_problems = means_SP.shape
    if num_seeds == 1 or num_problems == 1:
        return clustered_mean(means_SP.mean(axis=0), num_seeds * num_responses)
    mean, degrees = float(means_SP.mean()), num_problems - 1
    # Equal everywhere: worth no more than the problems.
    count: float = num_problems
    if np.ptp(means_SP) > SAME:
        variance, degrees = _variance(means_SP)
        count = min(mean * (1 - mean) / variance, means_SP.size * num_responses)
    if count <= 0:  # the mean is 0 or 1 but for rounding
        count = num_problems
    low, high = wilson_interval(mean, count, t_quantile(degrees))
    return Estimate(mean, min(low, mean), max(high, mean))


def crossed_difference(differences_SP: npt.ArrayLike) -> Estimate:
    """Estimate a mean difference over seeds and problems, mean +- t * error.

    Args:
        differences_SP: In [-1, 1], of one seed and problem each.

    Returns:
        With one seed, or differences that are all the same, the interval is over problems alone
        (:func:`~recipe.study.evaluation.estimators.paired_mean`). Where only some problems have
        another difference than most, it allows for the share of such problems that P draws can
        miss, in proportion to the problems that have none.

    Raises:
        ValueError: If there is no seed or no problem.
    """
    differences_SP = _not_empty(differences_SP)
    if np.ptp(differences_SP) <= SAME:
        return paired_mean(differences_SP[0])
    mean = float(differences_SP.mean())
    if 1 in differences_SP.shape:
        _, low, high = paired_mean(differences_SP.mean(axis=0))
    else:
        variance, degrees = _variance(differences_SP)
        half = t_quantile(degrees) * math.sqrt(variance)
        low, high = mean - half, mean + half
    unseen = unseen_share(differences_SP.shape[1]) * _same_share(differences_SP)
    return Estimate(mean, max(-1.0, min(low, mean - unseen)), min(1.0, max(high, mean + unseen)))


def crossed_p(differences_SP: npt.ArrayLike) -> float:
    """Return the two-sided p value of a mean difference against 0.

    Args:
        differences_SP: In [-1, 1], of at least two seeds and two problems.

    Returns:
        Below 0.05 where the interval of :func:`crossed_difference` leaves 0 out: the larger p value
        of Student's t and of problems that were not drawn and could make the mean 0.

    Raises:
        ValueError: If there are fewer than two seeds or problems.
    """
    differences_SP = _not_empty(differences_SP)
    if min(differences_SP.shape) < 2:
        raise ValueError(f"expected two seeds and problems, got shape {differences_SP.shape}")
    distance, num_problems = abs(float(differences_SP.mean())), differences_SP.shape[1]
    if np.ptp(differences_SP) <= SAME:  # unseen problems differ by 1 the other way: d / (1 + d)
        return missed_p(distance / (1 + distance), num_problems)
    share = _same_share(differences_SP)
    variance, degrees = _variance(differences_SP)
    return max(
        missed_p(distance / share, num_problems) if share else 0.0,
        float(t_outside(distance / math.sqrt(variance), degrees)),
    )


def _same_share(differences_SP: npt.NDArray[np.float64]) -> float:
    """Return the share of problems with the commonest difference, equal in all seeds."""
    same_in_all_P = np.ptp(differences_SP, axis=0) <= SAME
    _, counts = np.unique(differences_SP[0, same_in_all_P].round(9), return_counts=True)
    return counts.max(initial=0) / differences_SP.shape[1]


def mean_ratio(ratios_S: npt.ArrayLike) -> Estimate:
    """Estimate a ratio over seeds: the geometric mean, Student's interval of its logarithm.

    Args:
        ratios_S: Above 0, one of each seed.

    Raises:
        ValueError: If there are fewer than two seeds, or a ratio is not above 0.
    """
    ratios_S = np.asarray(ratios_S, dtype=np.float64)
    if ratios_S.size < 2 or not (ratios_S > 0).all():
        raise ValueError(f"expected at least two ratios above 0, got {ratios_S}")
    logs_S = np.log(ratios_S)
    mean = float(logs_S.mean())
    half = t_quantile(logs_S.size - 1) * float(logs_S.std(ddof=1)) / math.sqrt(logs_S.size)
    return Estimate(*(math.exp(each) for each in (mean, mean - half, mean + half)))


def _variance(values_SP: npt.NDArray[np.float64]) -> tuple[float, int]:
    """Return the variance of the mean, and its degrees of freedom; from two seeds on."""
    num_seeds, num_problems = values_SP.shape
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


def _not_empty(values_SP: npt.ArrayLike) -> npt.NDArray[np.float64]:
    values_SP = np.asarray(values_SP, dtype=np.float64)
    if values_SP.ndim != 2 or not values_SP.size:
        raise ValueError(
            f"expected a row of problems per seed, at least one of each, got shape "
            f"{values_SP.shape}"
        )
    return values_SP

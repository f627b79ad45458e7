"""Fit accuracy against hint level: a logistic curve through a few observations."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

# The curve's slope and place, levels running from 0 to 1: nearly flat to nearly a step, and from
# far above the strongest hint (never right) to far below none (always right).
_SLOPES = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
_PLACES = np.linspace(-1.0, 2.0, 61)


class Observation(NamedTuple):
    """The share of right responses, in [0, 1], among ``num_responses`` at one level."""

    level: int
    accuracy: float
    num_responses: int


def accuracy_curve(seen: Sequence[Observation], max_level: int) -> np.ndarray:
    """Return the expected accuracy at each level, shape (L + 1,), growing with the level.

    The curve is 1 / (1 + exp(-slope (level / L - place))): the two-parameter item response model
    (Birnbaum 1968) with the level in place of the ability. Slope and place have the uniform prior
    over a grid, and the expectation is over their posterior.

    Args:
        seen: Observations, at any levels; without any, the prior's curve.
        max_level: Highest level, L.
    """
    levels_L = np.arange(max_level + 1) / max(max_level, 1)
    # C curves: each slope with each place.
    slopes_C, places_C = (each.ravel() for each in np.meshgrid(_SLOPES, _PLACES, indexing="ij"))
    logits_CL = slopes_C[:, None] * (levels_L[None, :] - places_C[:, None])
    log_right_CL, log_wrong_CL = -np.logaddexp(0, -logits_CL), -np.logaddexp(0, logits_CL)
    log_posterior_C = np.zeros(len(slopes_C))
    for each in seen:
        right = each.accuracy * log_right_CL[:, each.level]
        wrong = (1 - each.accuracy) * log_wrong_CL[:, each.level]
        log_posterior_C += each.num_responses * (right + wrong)
    posterior_C = np.exp(log_posterior_C - log_posterior_C.max())
    return posterior_C @ np.exp(log_right_CL) / posterior_C.sum()


def level_for(
    target: float, seen: Sequence[Observation], max_level: int, missing: Collection[int] = ()
) -> int:
    """Return the level whose expected accuracy is nearest to ``target``; of two, the weaker.

    Args:
        target: In [0, 1].
        seen: Observations, at any levels.
        max_level: Highest level.
        missing: Levels that are not available.
    """
    # Rounded: two that are equal differ in their last bits, which are the machine's.
    distances_L = np.abs(accuracy_curve(seen, max_level) - target).round(9)
    distances_L[list(missing)] = np.inf
    return int(distances_L.argmin())

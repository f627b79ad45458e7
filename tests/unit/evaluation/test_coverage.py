"""How often a 95 % interval holds the truth, over 2000 seeded benchmarks each.

A benchmark is P problems whose chances of being solved come from a distribution with a known
mean, and K draws of each. 2000 draws show a share of 95 % within +- 1 % (two standard errors).
"""

import numpy as np
import pytest

from recipe.study.evaluation.estimators import clustered_mean, mean_of, paired_mean, t_quantile

DRAWS = 2000


def benchmarks(name, num_problems, num_samples):
    """Problem means (draws, P) and the true mean; ``name`` is a chance or a and b of a beta."""
    rng = np.random.default_rng(7)
    if "," not in name:
        chances = np.full((DRAWS, num_problems), float(name))
        return rng.binomial(num_samples, chances) / num_samples, float(name)
    a, b = map(float, name.split(","))
    chances = rng.beta(a, b, size=(DRAWS, num_problems))
    return rng.binomial(num_samples, chances) / num_samples, a / (a + b)


def coverage(estimates, truth):
    return sum(each.low <= truth <= each.high for each in estimates) / DRAWS


def clustered_coverage(name, num_problems, num_samples):
    means, truth = benchmarks(name, num_problems, num_samples)
    return coverage([clustered_mean(row, num_samples) for row in means], truth)


@pytest.mark.parametrize(
    ("chances", "num_problems", "num_samples"),
    [
        ("0.3,0.3", 30, 4),  # most problems nearly always or never solved
        ("0.3,0.3", 30, 16),
        ("0.3,0.3", 500, 4),
        ("0.2,0.8", 30, 16),  # an average of 20 %
        ("0.2,0.8", 100, 4),
        ("2,2", 10, 16),
        ("2,2", 30, 1),
        ("2,2", 200, 16),
        ("5,45", 30, 4),  # all problems hard, 10 %
        ("0.1,1.9", 100, 4),  # most never solved, 5 %
        ("0.5", 30, 16),  # problems all alike
        ("0.1", 30, 16),
        ("0.98", 100, 4),
    ],
)
def test_the_clustered_interval_holds_its_level(chances, num_problems, num_samples):
    assert 0.93 <= clustered_coverage(chances, num_problems, num_samples) <= 0.97


def test_treating_samples_as_independent_would_not_hold_the_level():
    # 30 problems x 16 samples are not 480 draws when problems differ.
    means, truth = benchmarks("0.3,0.3", 30, 16)
    half = 1.96 * np.sqrt(means.mean(1) * (1 - means.mean(1)) / (30 * 16))
    assert np.mean(np.abs(means.mean(1) - truth) <= half) < 0.5


@pytest.mark.parametrize(
    ("chances", "num_problems", "num_samples", "low", "high"),
    [
        # Too narrow: a few rare problems carry the mean, and most benchmarks hold none of them.
        ("0.02,0.98", 30, 16, 0.83, 0.93),
        ("0.1,1.9", 30, 16, 0.87, 0.93),
        # Too wide: few problems with one sample each, near 0.
        ("0.02", 10, 1, 0.97, 1.0),
    ],
)
def test_where_the_clustered_interval_misses_its_level(
    chances, num_problems, num_samples, low, high
):
    assert low < clustered_coverage(chances, num_problems, num_samples) < high


@pytest.mark.parametrize(("chances", "num_samples"), [("0.02,0.98", 4), ("0.1,1.9", 4)])
def test_near_zero_it_holds_where_mean_and_t_times_the_error_fails(chances, num_samples):
    means, truth = benchmarks(chances, 30, num_samples)
    half = t_quantile(29) * means.std(axis=1, ddof=1) / np.sqrt(30)
    plain = np.mean(np.abs(means.mean(axis=1) - truth) <= half)
    assert plain < 0.89
    assert clustered_coverage(chances, 30, num_samples) >= 0.91


def pairs(kind, num_problems, num_samples):
    """Differences (draws, P) and the true mean difference of two runs on the same problems."""
    rng = np.random.default_rng(11)
    shape = (DRAWS, num_problems)
    before = rng.beta(0.3, 0.3, size=shape)
    after, truth = {
        "the same": lambda: (before, 0.0),
        "a fifth of what was missing": lambda: (before + 0.2 * (1 - before), 0.2 * 0.5),
        "unrelated": lambda: (rng.beta(0.3, 0.3, size=shape), 0.0),
    }[kind]()
    drawn = [rng.binomial(num_samples, chances) / num_samples for chances in (before, after)]
    return drawn[1] - drawn[0], truth


@pytest.mark.parametrize("kind", ["the same", "a fifth of what was missing", "unrelated"])
@pytest.mark.parametrize(("num_problems", "num_samples"), [(30, 4), (30, 16), (300, 1)])
def test_the_paired_interval_holds_its_level(kind, num_problems, num_samples):
    differences, truth = pairs(kind, num_problems, num_samples)
    assert 0.93 <= coverage([paired_mean(row) for row in differences], truth) <= 0.97


def test_pairing_is_narrower_than_two_separate_intervals():
    differences, _ = pairs("a fifth of what was missing", 100, 4)
    means, _ = benchmarks("0.3,0.3", 100, 4)
    paired = np.mean([high - low for _, low, high in map(paired_mean, differences)])
    separate = np.mean([high - low for _, low, high in (clustered_mean(row, 4) for row in means)])
    assert paired < 0.5 * np.sqrt(2) * separate


def test_where_the_paired_interval_misses_its_level():
    # 3 % of the problems are won and none lost: of 100 some 3, in one of 21 draws none.
    rng = np.random.default_rng(5)
    differences = (rng.random((DRAWS, 100)) < 0.03).astype(float)
    assert 0.80 < coverage([paired_mean(row) for row in differences], 0.03) < 0.93


def test_the_interval_of_a_macro_average_holds_its_level():
    parts = [benchmarks("0.2,0.8", 30, 16), benchmarks("2,2", 200, 16), benchmarks("5,45", 40, 16)]
    truth = sum(mean for _, mean in parts) / 3
    estimates = [
        mean_of([clustered_mean(row, 16) for row in rows])
        for rows in zip(*(means for means, _ in parts), strict=True)
    ]
    assert 0.93 <= coverage(estimates, truth) <= 0.97

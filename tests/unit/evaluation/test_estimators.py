"""Estimators against what can be worked out by hand, and how often their intervals hold.

A drawn benchmark is P problems whose chances of being solved come from a distribution with a known
mean, and K draws of each. 2,000 draws show a share of 95 % within +- 1 % (two standard errors).
"""

import itertools
import math

import numpy as np
import pytest
from response_rows import turn_facts

from recipe.hint.conversations import TURN_FACTS
from recipe.hint.estimators import (
    Estimate,
    crossed_difference,
    crossed_p,
    crossed_share,
    holm,
    majority_score,
    pass_at_k,
    t_quantile,
    turn_metrics,
)

DRAWS = 2000


@pytest.mark.parametrize("chance", [0.0, 0.01, 0.3, 0.97, 1.0])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_pass_at_k_is_unbiased(chance, k):
    # Expectation over the number of correct among 8 draws, in full: 1 - (1 - p)^k.
    expected = sum(
        math.comb(8, c) * chance**c * (1 - chance) ** (8 - c) * pass_at_k(8, c, k) for c in range(9)
    )
    assert expected == pytest.approx(1 - (1 - chance) ** k, abs=1e-13)


@pytest.mark.parametrize(
    ("keys", "scores", "expected"),
    [
        ("a", [1], 1.0),
        ("abb", [1, 0, 0], 0.0),
        ("ab", [1, 0], 0.5),  # a tie of two: (1 + 0) / 2
        ("aabbcc", [0, 0, 1, 1, 0, 0], 1 / 3),  # a tie of three
        ("aab", [1, 0, 0], 0.5),  # one class with two verdicts: its mean
        (["", "", "7"], [0, 0, 1], 0.0),  # without an answer: they vote together and are wrong
        (["", "7"], [0, 1], 0.5),
    ],
)
def test_the_majority_is_the_largest_class_and_ties_share(keys, scores, expected):
    assert majority_score(list(keys), scores) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("degrees", "expected"),  # printed tables of Student's t, two-sided 5 %
    [(1, 12.7062), (2, 4.30265), (10, 2.22814), (29, 2.04523), (120, 1.97993)],
)
def test_the_t_quantile_is_that_of_the_tables(degrees, expected):
    assert t_quantile(degrees) == pytest.approx(expected, abs=1e-5)


def test_the_clustered_interval_is_wilsons_at_the_effective_number_of_draws():
    # Means 0, 0.5, 1 with K=2: variance 0.25, of the mean 0.25 / 3; 0.5 * 0.5 / (0.25 / 3) = 3
    # draws, as many as problems; t with 2 degrees is 4.30265.
    estimate = crossed_share([0.0, 0.5, 1.0], 2)
    assert estimate.value == 0.5
    # w = t^2 / 3 = 6.171: 0.5 -+ sqrt(w (0.25 + w / 4)) / (1 + w) = 0.5 -+ 0.4638
    assert estimate[1:] == pytest.approx((0.036171, 0.963829), abs=1e-5)
    # All of one score, 30 problems: t(29)^2 / (30 + t(29)^2) = 4.183 / 34.183 = 0.1224
    for score in (0.0, 1.0):
        value, low, high = crossed_share([score] * 30, 16)
        assert (value, high - low) == (score, pytest.approx(0.1224, abs=1e-4))
    assert crossed_share([0.75], 4) == Estimate(0.75, 0.0, 1.0)  # says nothing about others


def test_the_paired_interval_is_mean_and_t_times_the_error():
    # 0.5, -0.25, 0.5: mean 0.25, sd 0.4330, error 0.25, t(2) = 4.3027 -> +- 1.0757, cut at 1.
    estimate = crossed_difference([0.5, -0.25, 0.5])
    assert estimate == pytest.approx((0.25, 0.25 - 1.075663, 1.0), abs=1e-5)
    # No difference at all may still be one on problems not drawn: 1 - 0.025^(1/30) = 0.1157
    assert crossed_difference([0.0] * 30) == pytest.approx((0.0, -0.1157, 0.1157), abs=1e-4)
    assert crossed_difference([1.0] * 30) == pytest.approx((1.0, 0.7686, 1.0), abs=1e-4)


def test_holm_multiplies_the_smallest_by_all_the_next_by_one_fewer_and_never_falls():
    """0.01 * 3 = 0.03; 0.03 * 2 = 0.06; 0.04 * 1 = 0.04 is raised to 0.06."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0]


# -- how often they hold


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
    return sum(each.low <= truth <= each.high for each in estimates) / len(estimates)


@pytest.mark.parametrize(
    ("chances", "num_problems", "num_samples", "low", "high"),
    [
        ("0.3,0.3", 30, 16, 0.93, 0.97),  # most problems nearly always or never solved
        ("0.1,1.9", 100, 4, 0.93, 0.97),  # most never solved, 5 %
        ("0.5", 30, 16, 0.93, 0.97),  # problems all alike
        # Too narrow: a few rare problems carry the mean, and most benchmarks hold none of them.
        ("0.02,0.98", 30, 16, 0.83, 0.93),
    ],
)
def test_the_clustered_interval_holds_its_level_but_near_the_ends(
    chances, num_problems, num_samples, low, high
):
    means, truth = benchmarks(chances, num_problems, num_samples)
    assert low <= coverage([crossed_share(row, num_samples) for row in means], truth) <= high


@pytest.mark.parametrize(("gain", "num_problems", "num_samples"), [(0.0, 30, 4), (0.2, 300, 1)])
def test_the_paired_interval_holds_its_level(gain, num_problems, num_samples):
    """The second run solves a share of what the first one lacked."""
    rng = np.random.default_rng(11)
    before = rng.beta(0.3, 0.3, size=(DRAWS, num_problems))
    drawn = [
        rng.binomial(num_samples, chances) / num_samples
        for chances in (before, before + gain * (1 - before))
    ]
    found = [crossed_difference(row) for row in drawn[1] - drawn[0]]
    assert 0.93 <= coverage(found, gain / 2) <= 0.97


# -- over seeds and problems


def test_seeds_that_differ_widen_the_interval_and_have_few_degrees():
    # Seeds at 0.4, 0.5 and 0.7, and on 100 problems noise of 0.01 that is no problem's own. So Vp
    # is about Vsp, and V = Vs = 0.0233 / 3. Satterthwaite's degrees come to 1.99...; t is of 2,
    # 4.303, and not that of 1, 12.706.
    noise_SP = 0.01 * np.random.default_rng(0).choice([-1, 1], (3, 100))
    found = crossed_difference(np.array([[0.4], [0.5], [0.7]]) + noise_SP)
    assert found.high - found.value == pytest.approx(4.303 * math.sqrt(0.02333 / 3), rel=0.01)


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_intervals_hold_the_truth_whatever_the_spread_between_seeds(spread):
    """600 drawn campaigns; 95 % less three standard errors (0.9 % each) is 92.3 %."""
    rng = np.random.default_rng(7)
    # The mean chance over all seeds and problems, by a large draw of both.
    logits = rng.normal(0, spread, (4000, 1)) + rng.normal(0, 1, (1, 4000))
    truth, found = float((1 / (1 + np.exp(-logits))).mean()), []
    for _ in range(600):
        logits_SP = rng.normal(0, spread, (3, 1)) + rng.normal(0, 1, (1, 60))
        means_SP = rng.binomial(4, 1 / (1 + np.exp(-logits_SP))) / 4
        found.append(crossed_share(means_SP, 4))
    assert coverage(found, truth) >= 0.923


@pytest.mark.parametrize("num_seeds", [1, 3])
def test_a_difference_of_few_problems_allows_for_those_that_were_not_drawn(num_seeds):
    """One problem in 200 is gained wholly: 600 draws of 200, of which 37 % have none of these."""
    rng = np.random.default_rng(11)
    gains = (rng.random((600, 200)) < 1 / 200).astype(float)
    found = [crossed_difference(np.repeat(gains_P[None], num_seeds, 0)) for gains_P in gains]
    assert coverage(found, 1 / 200) >= 0.923


def test_a_p_value_is_below_005_where_the_interval_leaves_0_out():
    """Also where 20 or 36 of 40 problems have one difference in all seeds, or all problems have."""
    drawn = np.random.default_rng(0)
    cases = [np.full((4, 40), each) for each in (0.0, 0.05, 0.1, 0.5, 1.0)]
    for shift, same, value in itertools.product(
        np.linspace(0, 0.5, 60), (0, 20, 36), (0.0, 0.1, 0.3)
    ):
        seeds_S = drawn.normal(shift, 0.08, size=(4, 1))
        values_SP = np.clip(seeds_S + drawn.normal(0, 0.3, size=(4, 40)), -1, 1)
        values_SP[:, :same] = value
        cases.append(values_SP)
    is_outside = []
    for values_SP in cases:
        found, p = crossed_difference(values_SP), crossed_p(values_SP)
        is_outside.append(p < 0.05)
        assert is_outside[-1] == (found.low > 0 or found.high < 0)
        assert p == pytest.approx(crossed_p(-values_SP))
    assert 100 < sum(is_outside) < len(cases) - 100


def test_a_p_value_is_that_of_t_or_of_problems_that_were_not_drawn():
    # Means 0.1 and 0.3 of problems all alike: t = 0.2 / 0.1 = 2, p = 1 - 2 atan(2) / pi.
    values_SP = np.repeat([[0.1], [0.3]], 1000, axis=1)
    assert crossed_p(values_SP) == pytest.approx(1 - 2 * math.atan(2) / math.pi)
    # All of 50 differ by 0.1, one of them by 0.2: 2 (1 - 0.102 / 0.98) ** 50 = 0.0082.
    values_SP = np.full((3, 50), 0.1)
    values_SP[:, 0] = 0.2
    assert crossed_p(values_SP) == pytest.approx(2 * (1 - 0.102 / 0.98) ** 50)
    assert crossed_p(np.zeros((3, 10))) == 1.0


# -- what a further turn changes


def test_the_change_is_the_mean_over_problems_of_what_their_conversations_change():
    # p: 0 -> 1 and 1 -> 1, so +1/2. q: 1 -> 0, so -1. Their mean is -1/4.
    groups = {"p": [turn_facts(0, 1), turn_facts(1, 1)], "q": [turn_facts(1, 0)]}
    found = turn_metrics(groups)
    assert (found["acc_t1"], found["acc_t2"], found["delta"]) == (0.75, 0.5, -0.25)
    assert (found["wrong_to_right"], found["right_to_wrong"]) == (0.25, 0.5)
    assert (found["unchanged"], found["conversations"]) == (0.25, 3)
    # Those that cannot be compared are left out.
    unknown = dict.fromkeys(TURN_FACTS, math.nan)
    assert turn_metrics({**groups, "q": [turn_facts(1, 0), unknown], "r": [unknown]}) == found
    assert turn_metrics({}) == turn_metrics({"p": [unknown]}) == {}

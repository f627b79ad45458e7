"""Intervals over seeds and problems."""

import itertools
import math

import numpy as np
import pytest

from recipe.study.evaluation.crossed import crossed_difference, crossed_p, crossed_share
from recipe.study.evaluation.estimators import clustered_mean, holm, paired_mean, t_quantile


def test_one_seed_has_the_interval_over_problems():
    means_P = [0.0, 0.5, 1.0, 0.5]
    assert crossed_share([means_P], 4) == clustered_mean(means_P, 4)
    assert crossed_difference([means_P]) == paired_mean(means_P)


def test_seeds_that_differ_widen_the_interval_and_have_few_degrees():
    # Two seeds, 0.2 apart, on two problems without any other spread:
    # Vs = var(0.4, 0.6) / 2 = 0.02 / 2 = 0.01, Vp = 0, Vsp = 0; one degree of freedom, t = 12.706.
    found = crossed_difference([[0.4, 0.4], [0.6, 0.6]])
    assert found.value == pytest.approx(0.5)
    assert found.low == pytest.approx(max(-1, 0.5 - 12.706 * 0.1), abs=1e-3)
    assert found.high == 1.0


def test_three_seeds_have_two_degrees_however_little_the_problems_differ():
    # Seeds at 0.4, 0.5 and 0.7, and on 100 problems noise of 0.01 that is no problem's own. So Vp
    # is about Vsp, and V = Vs = 0.0233 / 3. Satterthwaite's degrees come to 1.99...; t is of 2,
    # 4.303, and not that of 1, 12.706.
    noise_SP = 0.01 * np.random.default_rng(0).choice([-1, 1], (3, 100))
    found = crossed_difference(np.array([[0.4], [0.5], [0.7]]) + noise_SP)
    assert found.high - found.value == pytest.approx(4.303 * math.sqrt(0.02333 / 3), rel=0.01)


def test_problems_that_differ_alike_in_all_seeds_count_once():
    # Three seeds give the same differences: as many problems as with one seed.
    row = [0.1, 0.3, 0.2, 0.6]
    # Vs = 0, Vsp = 0, Vp = var / 4; degrees = Vp^2 / (Vp^2 / 3) = 3.
    one, three = paired_mean(row), crossed_difference([row] * 3)
    assert three.value == pytest.approx(one.value)
    assert three.low == pytest.approx(one.low)
    assert three.high == pytest.approx(one.high)


def test_what_both_count_is_taken_off_once():
    # Rows (0, 1) and (1, 0): means over seeds and over problems are all 0.5, so Vs = Vp = 0 and the
    # residuals are +-0.5: Vsp = 4 * 0.25 / 1 / 4 = 0.25. The variance is no smaller than that, and
    # 0.5 + 12.7 * 0.5 is past 1.
    found = crossed_difference([[0, 1], [1, 0]])
    assert found == (0.5, -1.0, 1.0)
    # Rows (0, 1, 1) and (0, 0, 1): seeds 2/3 and 1/3, problems 0, 1/2, 1, mean 1/2.
    # Vs = (1/18) / 2 = 1/36; Vp = (1/4) / 3 = 1/12; residuals: 0 - 2/3 - 0 + 1/2 = -1/6, 1/3, -1/6
    # and their opposites: Vsp = 2 (1/36 + 4/36 + 1/36) / 2 / 6 = 1/36. So V = 1/12, and
    # degrees = (1/12)^2 / ((1/36)^2 / 1 + (1/12)^2 / 2 + (1/36)^2 / 2) = 9 / (1 + 4.5 + 0.5) = 1.5.
    found = crossed_difference([[0, 1, 1], [0, 0, 1]])
    assert found.high == min(1.0, 0.5 + t_quantile(1) * math.sqrt(1 / 12))


def test_a_share_stays_between_0_and_1_and_has_width_at_both_ends():
    for share in (0.0, 1.0):
        found = crossed_share(np.full((3, 50), share), 10)
        assert found.value == share
        assert 0 <= found.low < found.high <= 1
        # As one run on 50 problems: three seeds do not show that other problems are the same.
        assert found == clustered_mean([share] * 50, 10)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,)])
def test_no_seeds_or_problems_are_an_error(shape):
    with pytest.raises(ValueError, match="at least one of each"):
        crossed_share(np.zeros(shape), 1)


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("num_seeds", [3, 5])
def test_intervals_hold_the_truth_whatever_the_spread_between_seeds(num_seeds, spread):
    """600 drawn campaigns; 95 % less three standard errors (0.9 % each) is 92.3 %."""
    rng = np.random.default_rng(7)
    num_problems, num_draws, repeats = 60, 4, 600
    # The mean chance over all seeds and problems, by a large draw of both.
    logits = rng.normal(0, spread, (4000, 1)) + rng.normal(0, 1, (1, 4000))
    truth = float((1 / (1 + np.exp(-logits))).mean())
    held = 0
    for _ in range(repeats):
        logits_SP = rng.normal(0, spread, (num_seeds, 1)) + rng.normal(0, 1, (1, num_problems))
        means_SP = rng.binomial(num_draws, 1 / (1 + np.exp(-logits_SP))) / num_draws
        found = crossed_share(means_SP, num_draws)
        held += found.low <= truth <= found.high
    assert held / repeats >= 0.923


@pytest.mark.parametrize("jitter", [0.0, 0.05])
@pytest.mark.parametrize("num_seeds", [1, 2, 3, 5])
def test_a_difference_of_few_problems_allows_for_those_that_were_not_drawn(num_seeds, jitter):
    """One problem in 200 is gained wholly: 600 draws of 200, of which 37 % have none of these."""
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(600):
        gains_P = rng.random(200) < 1 / 200
        noise_SP = rng.choice([-0.1, 0.1], (num_seeds, 200)) * (
            rng.random((num_seeds, 200)) < jitter
        )
        found = crossed_difference(np.clip(gains_P + noise_SP, -1, 1))
        # The noise at the gained ones is cut off at 1: half of it goes down by 0.1.
        held += found.low <= (1 - 0.05 * jitter) / 200 <= found.high
    assert held / 600 >= 0.923


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


def test_problems_that_were_not_drawn_are_in_a_p_value():
    """All of 50 differ by 0.1, one of them by 0.2: 2 (1 - 0.102 / 0.98) ** 50 = 0.0082."""
    values_SP = np.full((3, 50), 0.1)
    values_SP[:, 0] = 0.2
    assert crossed_p(values_SP) == pytest.approx(2 * (1 - 0.102 / 0.98) ** 50)


def test_a_p_value_of_two_seeds_is_that_of_one_degree_of_freedom():
    """Means 0.1 and 0.3 of problems all alike: t = 0.2 / 0.1 = 2, p = 1 - 2 atan(2) / pi."""
    values_SP = np.repeat([[0.1], [0.3]], 1000, axis=1)
    assert crossed_p(values_SP) == pytest.approx(1 - 2 * math.atan(2) / math.pi)


def test_no_difference_has_p_1_and_one_seed_none():
    assert crossed_p(np.zeros((3, 10))) == 1.0
    with pytest.raises(ValueError, match="two seeds and problems"):
        crossed_p(np.zeros((1, 10)))


def test_holm_multiplies_the_smallest_by_all_the_next_by_one_fewer_and_never_falls():
    """0.01 * 3 = 0.03; 0.03 * 2 = 0.06; 0.04 * 1 = 0.04 is raised to 0.06."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []

"""Estimators against closed form: what can be worked out by hand is."""

import math

import pytest

from recipe.study.evaluation.crossed import crossed_difference, crossed_share
from recipe.study.evaluation.estimators import (
    Estimate,
    clustered_mean,
    majority_score,
    mean_of,
    paired_mean,
    pass_at_k,
    t_quantile,
    wilson_interval,
)


@pytest.mark.parametrize("num_samples", [1, 2, 7, 16])
def test_pass_at_k_is_one_minus_the_share_of_draws_without_a_correct_one(num_samples):
    for correct in range(num_samples + 1):
        for k in range(1, num_samples + 1):
            expected = 1 - math.comb(num_samples - correct, k) / math.comb(num_samples, k)
            assert pass_at_k(num_samples, correct, k) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("chance", [0.0, 0.01, 0.3, 0.97, 1.0])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_pass_at_k_is_unbiased(chance, k):
    # Expectation over the number of correct among 8 draws, in full: 1 - (1 - p)^k.
    expected = sum(
        math.comb(8, c) * chance**c * (1 - chance) ** (8 - c) * pass_at_k(8, c, k) for c in range(9)
    )
    assert expected == pytest.approx(1 - (1 - chance) ** k, abs=1e-13)


def test_pass_at_1_is_the_share_of_correct_samples():
    assert pass_at_k(16, 4, 1) == pytest.approx(0.25)


def test_pass_at_k_of_all_correct_and_none_correct_is_one_and_zero():
    assert [pass_at_k(16, c, 16) for c in (0, 1, 16)] == [0.0, 1.0, 1.0]
    assert pass_at_k(1, 1, 1) == 1.0
    assert pass_at_k(1, 0, 1) == 0.0


@pytest.mark.parametrize("k", [0, 5, -1])
def test_pass_at_k_beyond_the_samples_is_refused(k):
    with pytest.raises(
        ValueError, match=rf"pass@{k} of 4 responses does not exist; k must be 1..4"
    ):
        pass_at_k(4, 4, k)


@pytest.mark.parametrize("correct", [-1, 5])
def test_pass_at_k_of_more_correct_than_samples_is_refused(correct):
    with pytest.raises(ValueError, match=f"num_correct={correct} must be 0..4"):
        pass_at_k(4, correct, 1)


@pytest.mark.parametrize(
    ("keys", "scores", "expected"),
    [
        ("a", [1], 1.0),
        ("aab", [1, 1, 0], 1.0),
        ("abb", [1, 0, 0], 0.0),
        ("ab", [1, 0], 0.5),  # a tie of two: (1 + 0) / 2
        ("aabbcc", [0, 0, 1, 1, 0, 0], 1 / 3),  # a tie of three
        ("abc", [0, 0, 0], 0.0),
        ("aab", [1, 0, 0], 0.5),  # one class with two verdicts: its mean
    ],
)
def test_the_majority_is_the_largest_class_and_ties_share(keys, scores, expected):
    assert majority_score(list(keys), scores) == pytest.approx(expected)


def test_samples_without_an_answer_vote_together_and_are_wrong():
    assert majority_score(["", "", "7"], [0, 0, 1]) == 0.0
    assert majority_score(["", "7"], [0, 1]) == 0.5
    assert majority_score(["", "", "7", "7", "7"], [0, 0, 1, 1, 1]) == 1.0


def test_a_majority_of_nothing_is_refused():
    with pytest.raises(ValueError, match="a majority of no responses does not exist"):
        majority_score([], [])


@pytest.mark.parametrize(
    ("degrees", "expected"),  # printed tables of Student's t, two-sided 5 %
    [(1, 12.7062), (2, 4.30265), (3, 3.18245), (10, 2.22814), (29, 2.04523), (120, 1.97993)],
)
def test_the_t_quantile_is_that_of_the_tables(degrees, expected):
    assert t_quantile(degrees) == pytest.approx(expected, abs=1e-5)


def test_the_t_quantile_tends_to_the_normal_one():
    assert t_quantile(12_031) == pytest.approx(1.959964, abs=3e-4)


def test_a_t_quantile_without_degrees_is_refused():
    with pytest.raises(ValueError, match="degrees=0 must be at least 1"):
        t_quantile(0)


@pytest.mark.parametrize(
    ("share", "count", "expected"),
    [(0.0, 10, (0.0, 0.2775)), (0.5, 100, (0.4038, 0.5962)), (1.0, 4, (0.5101, 1.0))],
)
def test_wilsons_interval_is_that_of_the_formula(share, count, expected):
    assert wilson_interval(share, count) == pytest.approx(expected, abs=1e-4)


def test_an_interval_of_no_draws_is_refused():
    with pytest.raises(ValueError, match="count=0 must be positive"):
        wilson_interval(0.5, 0)


def test_the_clustered_interval_is_wilsons_at_the_effective_number_of_draws():
    # Means 0, 0.5, 1 with K=2: variance 0.25, of the mean 0.25 / 3; 0.5 * 0.5 / (0.25 / 3) = 3
    # draws, as many as problems; t with 2 degrees is 4.30265.
    estimate = clustered_mean([0.0, 0.5, 1.0], 2)
    assert estimate.value == 0.5
    assert estimate[1:] == pytest.approx(wilson_interval(0.5, 3.0, 4.302653), abs=1e-6)


def test_samples_of_like_problems_count_nearly_one_by_one_but_never_more():
    # Means 0.5 and 0.5 + 1/1000: the variance alone would call them 10^6 draws; there are 2 x 16.
    low, high = wilson_interval(0.5005, 32.0, t_quantile(1))
    assert clustered_mean([0.5, 0.501], 16) == pytest.approx((0.5005, low, high))


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_all_correct_and_none_correct_have_an_interval_of_the_number_of_problems(score):
    # t(29)^2 / (30 + t(29)^2) = 4.183 / 34.183 = 0.1224
    value, low, high = clustered_mean([score] * 30, 16)
    assert value == score
    assert high - low == pytest.approx(0.1224, abs=1e-4)
    assert low <= score <= high


def test_one_problem_says_nothing_about_others():
    assert clustered_mean([0.75], 4) == Estimate(0.75, 0.0, 1.0)


def test_an_empty_benchmark_is_refused():
    for estimator in (lambda: clustered_mean([], 4), lambda: paired_mean([])):
        with pytest.raises(ValueError, match=r"at least one problem, got shape \(0,\)"):
            estimator()


def test_the_paired_interval_is_mean_and_t_times_the_error():
    # 0.5, -0.25, 0.5: mean 0.25, sd 0.4330, error 0.25, t(2) = 4.3027 -> +- 1.0757, cut at 1.
    estimate = paired_mean([0.5, -0.25, 0.5])
    assert estimate == pytest.approx((0.25, 0.25 - 1.075663, 1.0), abs=1e-5)


def test_runs_without_a_difference_may_still_differ_on_problems_that_were_not_drawn():
    # 1 - 0.025^(1/30) = 0.1157
    assert paired_mean([0.0] * 30) == pytest.approx((0.0, -0.1157, 0.1157), abs=1e-4)
    # All lost to all won: the difference is 1, and 1 - 0.1157 * 2 at least.
    assert paired_mean([1.0] * 30) == pytest.approx((1.0, 0.7686, 1.0), abs=1e-4)


@pytest.mark.parametrize("size", range(2, 30))
def test_differences_that_are_equal_but_for_rounding_are_equal(size):
    # 0.4 - 0.3 and 0.7 - 0.6 are not the same float.
    rounded_P = [(k % 9 + 1) / 10 - (k % 9) / 10 for k in range(size)]
    assert size < 9 or len(set(rounded_P)) > 1
    exact = list(paired_mean([0.1] * size))
    assert list(paired_mean(rounded_P)) == pytest.approx(exact)
    assert list(crossed_difference([rounded_P] * 3)) == pytest.approx(exact)
    shares_P = [0.1 + each - 0.1 for each in rounded_P]
    share = list(clustered_mean([0.1] * size, 10))
    assert list(clustered_mean(shares_P, 10)) == pytest.approx(share)
    alike = list(crossed_share([shares_P, shares_P[::-1]], 10))
    assert alike == pytest.approx(list(crossed_share([[0.1] * size] * 2, 10)))


def test_a_single_pair_says_next_to_nothing():
    assert paired_mean([0.0]) == pytest.approx((0.0, -0.975, 0.975))


def test_the_mean_of_estimates_adds_the_distances_to_the_ends_in_squares():
    # down: sqrt(0.3^2 + 0.4^2) / 2 = 0.25; up: sqrt(0.12^2 + 0.05^2) / 2 = 0.065
    mean = mean_of([Estimate(0.5, 0.2, 0.62), Estimate(0.7, 0.3, 0.75)])
    assert mean == pytest.approx((0.6, 0.35, 0.665))


def test_a_mean_of_no_estimates_is_refused():
    with pytest.raises(ValueError, match="a mean of no estimates does not exist"):
        mean_of([])

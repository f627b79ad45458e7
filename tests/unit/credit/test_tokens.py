"""From one advantage a row to one a token, by hand."""

import numpy as np

from recipe.hint.credit.base import TokenStats, token_advantages


def stats(k1_NT, mask_NT):
    k1_NT = np.array(k1_NT)
    return TokenStats(np.zeros(k1_NT.shape), np.zeros(k1_NT.shape), np.array(mask_NT), k1_NT)


def test_a_token_pays_for_its_own_kl_and_for_what_comes_after_it():
    found = token_advantages(
        np.array([2.0, -1.0]),
        np.array([[1.0], [0.5]]),
        np.array([0.1, 0.0]),
        stats([[1.0, 3.0, -2.0], [4.0, 4.0, 4.0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]),
    )
    # 2 - 0.1 (1 + 3 - 2), 2 - 0.1 (3 - 2), 2 + 0.1 x 2. The other row has no KL.
    np.testing.assert_allclose(found, [[1.8, 1.9, 2.2], [-0.5, -0.5, 0.0]], atol=1e-15)


def test_what_stands_behind_the_mask_costs_nothing():
    ones = np.ones(1)
    for behind in (np.inf, np.nan, 1e9):
        tokens = stats([[1.0, behind]], [[1.0, 0.0]])
        assert token_advantages(ones, ones[:, None], ones, tokens).tolist() == [[0.0, 0.0]]


def test_a_rows_kl_is_the_sum_over_its_tokens_and_not_over_its_padding():
    tokens = stats([[1.0, 3.0, -2.0], [4.0, 4.0, 4.0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    assert tokens.kls_N.tolist() == [2.0, 8.0]


def test_the_kl_is_not_weighted():
    # Weight 0 takes a role's reward away and leaves it held to the reference policy.
    found = token_advantages(
        np.array([5.0]), np.array([[0.0]]), np.array([1.0]), stats([[2.0]], [[1.0]])
    )
    assert found.tolist() == [[-2.0]]


def test_a_weight_of_each_token_scales_the_advantage_and_leaves_the_kl():
    found = token_advantages(
        np.array([2.0]),
        np.array([[0.5, 0.0, 3.0]]),
        np.array([1.0]),
        stats([[0.0, 0.1, 0.0]], [[1.0, 1.0, 0.0]]),
    )
    # 0.5 x 2 - 0.1, 0 x 2 - 0.1, and padding.
    np.testing.assert_allclose(found, [[0.9, -0.1, 0.0]], atol=1e-15)

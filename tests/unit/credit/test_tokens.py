"""From one advantage a row to one a token, by hand."""

import numpy as np

from recipe.hint.credit.tokens import token_advantages


def test_a_token_pays_for_its_own_kl_and_for_what_comes_after_it():
    found = token_advantages(
        np.array([2.0, -1.0]),
        weights_NT=np.array([[1.0], [0.5]]),
        kl_coefs_N=np.array([0.1, 0.0]),
        k1_NT=np.array([[1.0, 3.0, -2.0], [4.0, 4.0, 4.0]]),
        mask_NT=np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]),
    )
    # 2 - 0.1 (1 + 3 - 2), 2 - 0.1 (3 - 2), 2 + 0.1 x 2. The other row has no KL.
    np.testing.assert_allclose(found, [[1.8, 1.9, 2.2], [-0.5, -0.5, 0.0]], atol=1e-15)


def test_what_stands_behind_the_mask_costs_nothing():
    ones = np.ones(1)
    for behind in (np.inf, np.nan, 1e9):
        k1_NT, mask_NT = np.array([[1.0, behind]]), np.array([[1.0, 0.0]])
        found = token_advantages(ones, ones[:, None], ones, k1_NT, mask_NT)
        assert found.tolist() == [[0.0, 0.0]]


def test_the_kl_is_not_weighted():
    # Weight 0 takes a role's reward away and leaves it held to the reference policy.
    found = token_advantages(
        np.array([5.0]), np.array([[0.0]]), np.array([1.0]), np.array([[2.0]]), np.array([[1.0]])
    )
    assert found.tolist() == [[-2.0]]


def test_a_weight_of_each_token_scales_the_advantage_and_leaves_the_kl():
    found = token_advantages(
        np.array([2.0]),
        weights_NT=np.array([[0.5, 0.0, 3.0]]),
        kl_coefs_N=np.array([1.0]),
        k1_NT=np.array([[0.0, 0.1, 0.0]]),
        mask_NT=np.array([[1.0, 1.0, 0.0]]),
    )
    # 0.5 x 2 - 0.1, 0 x 2 - 0.1, and padding.
    np.testing.assert_allclose(found, [[0.9, -0.1, 0.0]], atol=1e-15)

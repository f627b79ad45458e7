"""Credit in place of verl's estimator: one advantage a row, one a token, and the row's KL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recipe.hint.credit.rows import CreditRow


@dataclass(frozen=True, slots=True)
class TokenStats:
    """Log-probabilities and entropies of a batch's tokens before the update; 0 in padding.

    Attributes:
        log_probs_NT: Log-probability of each token, at the temperature of the rollouts.
        entropies_NT: Entropy of the distribution that the token is from, in nats.
        mask_NT: 1 for tokens in the loss, 0 for padding and dropped ones.
        k1_NT: log pi - log pi_ref per token, in nats; 0 without a reference policy.
    """

    log_probs_NT: np.ndarray
    entropies_NT: np.ndarray
    mask_NT: np.ndarray
    k1_NT: np.ndarray

    @property
    def kls_N(self) -> np.ndarray:
        """Each row's log-ratio to the reference policy, summed over its tokens, in nats."""
        return (self.k1_NT * self.mask_NT).sum(axis=1)


class Credit:
    """What each row of a batch earns; ``rows`` are those of one batch, in any order."""

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return the advantage of each row, shape (N,), before its weight and its KL."""
        raise NotImplementedError

    def value_targets(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return the critic's target for the state before each turn, shape (N,): the reward."""
        return np.array([row.reward for row in rows])

    def token_weights(self, rows: Sequence[CreditRow], tokens: TokenStats) -> np.ndarray:
        """Return the factor of each token's advantage, shape (N, T) or (N, 1): 1."""
        return np.ones((len(rows), 1))

    def kl_coefs(self, rows: Sequence[CreditRow], kls_N: np.ndarray) -> np.ndarray:
        """Return the KL coefficient of each row, shape (N,): the row's own.

        ``kls_N`` are log-ratios to the reference policy, summed over a row's tokens, in nats.
        """
        return np.array([row.kl_coef for row in rows])

    @property
    def weighs_tokens(self) -> bool:
        """Whether a row's tokens may differ in weight."""
        return type(self).token_weights is not Credit.token_weights

    def token_advantages(
        self, rows: Sequence[CreditRow], tokens: TokenStats
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return :meth:`advantages`, (N,), and each token's, (N, T), with weight and KL."""
        advantages_N = self.advantages(rows)
        weights_NT = np.array([[row.weight] for row in rows]) * self.token_weights(rows, tokens)
        kl_coefs_N = self.kl_coefs(rows, tokens.kls_N)
        return advantages_N, token_advantages(advantages_N, weights_NT, kl_coefs_N, tokens)


def token_advantages(
    advantages_N: np.ndarray, weights_NT: np.ndarray, kl_coefs_N: np.ndarray, tokens: TokenStats
) -> np.ndarray:
    """Return weight * advantage - kl_coef * (log-ratios summed from this token to the end).

    Shape (N, T). On policy, KL(policy || reference) of a response has the gradient
    E[sum_t (sum_{u >= t} k1_u) grad log p(y_t)], k1_u = log p(y_u) - log p_ref(y_u): a token pays
    for itself and for all after it. verl's KL loss has only one coefficient for all rows.

    Args:
        advantages_N: One advantage a row.
        weights_NT: Their factors, (N, 1) where they are a row's; the KL penalty is not weighted.
        kl_coefs_N: Coefficients of the KL divergence, 0: none.
        tokens: The rows' tokens.
    """
    penalty_NT = kl_coefs_N[:, None] * np.where(tokens.mask_NT > 0, tokens.k1_NT, 0.0)
    to_go_NT = np.flip(np.cumsum(np.flip(penalty_NT, axis=1), axis=1), axis=1)
    return (weights_NT * advantages_N[:, None] - to_go_NT) * tokens.mask_NT

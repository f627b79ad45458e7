"""Turn one advantage per row into one per token, with the row's KL penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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

"""Base class of the methods whose credit is their own instead of verl's estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from recipe.hint.credit.archer import UtteranceCriticSettings
from recipe.hint.credit.rows import CreditRow
from recipe.hint.credit.tokens import TokenStats, token_advantages
from recipe.hint.methods.base import Method


class OwnCredit(Method):
    """Take the place of verl's estimator with :meth:`advantages`.

    In the hooks of credit, ``rows`` are those of one batch, in any order, and ``tokens`` their
    log-probabilities and entropies under the policy.

    Attributes:
        needs_log_probs: Whether it needs the trainer's log-probabilities before the update, which
            verl's bypass mode does not compute.
    """

    has_own_credit: ClassVar[bool] = True
    needs_log_probs: ClassVar[bool] = False

    @property
    def needs_reference(self) -> bool:
        """Whether some row can have a KL coefficient above 0."""
        return False

    @property
    def needs_critic(self) -> bool:
        """Whether :meth:`advantages` reads the value of a row."""
        return False

    @property
    def compares_group(self) -> bool:
        """Whether :meth:`advantages` compares the responses of one group."""
        return True

    @property
    def publishes_critic_rows(self) -> bool:
        """Whether turns of the policy that do not train are published for the critic."""
        return False

    @property
    def utterance_critic(self) -> UtteranceCriticSettings | None:
        """How a critic of whole utterances learns; ``None``: there is none, or verl's."""
        return None

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return the advantage of each row, shape (N,), before its weight and its KL."""
        raise NotImplementedError("a method with credit of its own defines advantages")

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

    def token_advantages(
        self, rows: Sequence[CreditRow], tokens: TokenStats
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return :meth:`advantages`, (N,), and each token's, (N, T), with weight and KL."""
        advantages_N = self.advantages(rows)
        weights_NT = np.array([[row.weight] for row in rows]) * self.token_weights(rows, tokens)
        kl_coefs_N = self.kl_coefs(rows, tokens.kls_N)
        return advantages_N, token_advantages(advantages_N, weights_NT, kl_coefs_N, tokens)

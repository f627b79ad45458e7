"""Credit in place of verl's estimator: rows, their advantages by row and token, KL; metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

# Fact of a row without a training signal.
DROPPED = "is_dropped"


@dataclass(frozen=True, slots=True)
class CreditRow:
    """One published turn: it trains, or only the critic reads it (``weight``, ``kl_coef`` 0).

    A row belongs to a problem and to one prompt rollout of it, ``prompt_uid``; ``group`` names the
    rows of a rollout that may share a baseline. ``turn`` is its number in its conversation, from 0,
    ``session`` that of the conversation's first turn. ``kl_coef`` is the coefficient of its KL from
    the reference policy, ``weight`` multiplies its advantage, ``is_given`` rows were not sampled.
    ``value`` is the critic's of the state before the turn, ``None`` without a critic; ``facts`` are
    further numbers that the method keeps.
    """

    problem_id: str
    prompt_uid: str
    group: str
    role: str
    turn: int
    session: int
    reward: float
    kl_coef: float = 0.0
    weight: float = 1.0
    is_given: bool = False
    value: float | None = None
    facts: Mapping[str, float] = field(default_factory=dict)


def has_signal(rewards: Sequence[float | None], groups: Sequence[str]) -> bool:
    """Return whether any group has rewards that differ, or one nonzero reward alone.

    ``rewards`` are of the rows that train, ``None`` is not a number; without ``groups`` all are
    one.
    """
    by_group: dict[str, list[float | None]] = {}
    for name, reward in zip(groups or ("",) * len(rewards), rewards, strict=True):
        by_group.setdefault(name, []).append(reward)
    return any(
        len(set(each)) > 1 or (len(each) == 1 and each[0] != 0) for each in by_group.values()
    )


@dataclass(frozen=True, slots=True)
class TokenStats:
    """A batch's tokens before the update, (N, T) each; 0 in padding.

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

    @property
    def weighs_tokens(self) -> bool:
        """Whether a row's tokens may differ in weight."""
        return type(self).token_weights is not Credit.token_weights

    def token_advantages(
        self, rows: Sequence[CreditRow], tokens: TokenStats
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return :meth:`advantages`, (N,), and each token's, (N, T).

        A token's is weight * advantage - kl_coef * (log-ratios summed from this token to the end).
        On policy, KL(policy || reference) of a response has the gradient
        E[sum_t (sum_{u >= t} k1_u) grad log p(y_t)], k1_u = log p(y_u) - log p_ref(y_u): a token
        pays for itself and for all after it. The KL penalty is not weighted. verl's KL loss has
        only one coefficient for all rows.
        """
        advantages_N = self.advantages(rows)
        weights_NT = np.array([[row.weight] for row in rows]) * self.token_weights(rows, tokens)
        kl_coefs_N1 = np.array([[row.kl_coef] for row in rows])
        penalty_NT = kl_coefs_N1 * np.where(tokens.mask_NT > 0, tokens.k1_NT, 0.0)
        to_go_NT = np.flip(np.cumsum(np.flip(penalty_NT, axis=1), axis=1), axis=1)
        return advantages_N, (weights_NT * advantages_N[:, None] - to_go_NT) * tokens.mask_NT


def credit_metrics(
    rows: Sequence[CreditRow], advantages_N: np.ndarray, kls_N: np.ndarray, targets_N: np.ndarray
) -> dict[str, float]:
    """Return means over the rows of each role and turn as ``credit/ROLE_tTURN/NAME``.

    Turns are counted from 1; dropped rows are left out, for what they earned is unknown. Names:
    ``reward``, ``advantage_abs`` (mean of the absolute values, before weight and KL), ``kl`` (nats
    per response), ``rows`` (their number). With a critic also ``value`` and, where its targets
    differ, ``explained_variance``: 1 - Var(target - value) / Var(target).
    """
    found: dict[str, float] = {}
    names = ["" if DROPPED in row.facts else f"credit/{row.role}_t{row.turn + 1}" for row in rows]
    for name in sorted({*names} - {""}):
        of = [place for place, each in enumerate(names) if each == name]
        found[f"{name}/rows"] = float(len(of))
        found[f"{name}/reward"] = float(np.mean([rows[place].reward for place in of]))
        found[f"{name}/advantage_abs"] = float(np.abs(advantages_N[of]).mean())
        found[f"{name}/kl"] = float(kls_N[of].mean())
        values = [rows[place].value for place in of]
        if None in values:
            continue
        values_N = np.array(values, dtype=np.float64)
        found[f"{name}/value"] = float(values_N.mean())
        if spread := targets_N[of].var():
            found[f"{name}/explained_variance"] = float(
                1 - (targets_N[of] - values_N).var() / spread
            )
    return found

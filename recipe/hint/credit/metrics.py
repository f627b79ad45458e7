"""Metrics of a step's credit, by role and turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recipe.hint.credit.rows import DROPPED, CreditRow


def credit_metrics(
    rows: Sequence[CreditRow],
    advantages_N: np.ndarray,
    kls_N: np.ndarray,
    targets_N: np.ndarray,
) -> dict[str, float]:
    """Return means over the rows of each role and turn, names beginning with ``credit/``.

    Args:
        rows: Those of one batch; what dropped ones earned is unknown, and they are left out.
        advantages_N: The advantage of each, before its weight and its KL.
        kls_N: Its log-ratio to the reference policy, in nats; 0 without one.
        targets_N: What the critic's value before it regresses on.

    Returns:
        ``reward``, ``advantage_abs`` (mean of the absolute values), ``kl`` (nats per response) and
        ``rows`` (their number), each as ``credit/ROLE_tTURN/NAME``, turns counted from 1. With a
        critic also ``value`` and, where the targets differ, ``explained_variance``:
        1 - Var(target - value) / Var(target).
    """
    found: dict[str, float] = {}
    names = ["" if DROPPED in row.facts else f"credit/{row.role}_t{row.turn + 1}" for row in rows]
    rewards_N = np.array([row.reward for row in rows])
    for name in sorted({*names} - {""}):
        is_in_N = np.array([each == name for each in names])
        found[f"{name}/rows"] = float(is_in_N.sum())
        found[f"{name}/reward"] = float(rewards_N[is_in_N].mean())
        found[f"{name}/advantage_abs"] = float(np.abs(advantages_N[is_in_N]).mean())
        found[f"{name}/kl"] = float(kls_N[is_in_N].mean())
        values = [row.value for row, is_in in zip(rows, is_in_N, strict=True) if is_in]
        if None not in values:
            values_N = np.array(values, dtype=np.float64)
            found[f"{name}/value"] = float(values_N.mean())
            spread = targets_N[is_in_N].var()
            if spread > 0:
                rest = (targets_N[is_in_N] - values_N).var()
                found[f"{name}/explained_variance"] = float(1 - rest / spread)
    return found

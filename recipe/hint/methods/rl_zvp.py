"""RL-ZVP: train on groups with equal rewards too, weighting each token by its entropy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from recipe.hint.credit.baselines import grpo_advantages, has_equal_rewards
from recipe.hint.credit.rows import CreditRow
from recipe.hint.credit.tokens import TokenStats
from recipe.hint.methods.base import MethodSettings
from recipe.hint.methods.own_credit import OwnCredit
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Decision, Round, Train
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError

_RIGHT = "is_right"


@dataclass(frozen=True)
class RlZvpSettings(MethodSettings):
    """How strongly groups of equal rewards train.

    Attributes:
        alpha: Advantage per nat of entropy.
    """

    alpha: float = 0.1

    def __post_init__(self) -> None:
        if self.alpha <= 0:
            raise ConfigError(
                f"hint.rl_zvp.alpha={self.alpha} must be above 0; trainer.method=grpo is 0"
            )


class RlZvp(OwnCredit):
    """Push all-right groups up and all-wrong ones down, each token by its entropy.

    A wrong response's token loses alpha (max H - H_t), most where the policy was sure. Mixed groups
    train as in GRPO.

    Source: Le et al. 2025, arXiv:2509.21880. Deviations: docs/lab/deviations.md#rl-zvp.
    """

    settings_cls: ClassVar[type] = RlZvpSettings
    settings_node: ClassVar[str] = "hint.rl_zvp"
    needs_log_probs: ClassVar[bool] = True

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Train on the group; drop it if nothing is right and a grade failed."""
        rows = self.train_round(rounds, 0).rows
        of_rows = zip(rows, rounds[0].accuracies_G, strict=True)
        train = Train(tuple(replace(row, facts={_RIGHT: float(acc > 0)}) for row, acc in of_rows))
        return self.dropped(train) if rounds[0].is_inconclusive else train

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return alpha or -alpha in a group of equal rewards, else those of GRPO, shape (N,)."""
        signs_N = np.where(_is_right(rows), 1.0, -1.0)
        return np.where(_is_zero(rows), self.settings.alpha * signs_N, grpo_advantages(rows))

    def token_weights(self, rows: Sequence[CreditRow], tokens: TokenStats) -> np.ndarray:
        """Return H_t where all are right, max H - H_t where all are wrong, else 1, (N, T)."""
        entropies_NT = tokens.entropies_NT * tokens.mask_NT
        highest_N1 = entropies_NT.max(axis=1, keepdims=True)
        shaped_NT = np.where(_is_right(rows)[:, None], entropies_NT, highest_N1 - entropies_NT)
        return np.where(_is_zero(rows)[:, None], shaped_NT, 1.0)


def _is_right(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return whether the verdict on each row is right, shape (N,)."""
    return np.array([bool(row.facts[_RIGHT]) for row in rows])


def _is_zero(rows: Sequence[CreditRow]) -> np.ndarray:
    """Return whether each row's group has equal verdicts and equal rewards, shape (N,)."""
    by_verdict = [replace(row, reward=row.facts[_RIGHT]) for row in rows]
    return has_equal_rewards(rows) & has_equal_rewards(by_verdict)

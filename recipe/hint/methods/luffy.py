"""LUFFY: add the reference solution to the group, with shaped token probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from recipe.hint.credit.base import Credit, CreditRow, TokenStats
from recipe.hint.credit.baselines import grpo_advantages
from recipe.hint.methods.base import Method, MethodSettings, Needs
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Decision, Place, Round, Sample, Train
from recipe.problems.schema import Problem


@dataclass(frozen=True)
class LuffySettings(MethodSettings):
    """How the policy learns from the solution.

    Attributes:
        gamma: Constant of the shaping f(p) = p / (p + gamma) of a solution's token probabilities.
        norm_adv_by_std: Whether a group's advantages are divided by its standard deviation.
    """

    gamma: Annotated[float, Field(gt=0)] = 0.1
    norm_adv_by_std: bool = True


@dataclass(frozen=True)
class LuffyCredit(Credit):
    """GRPO with the solution in the group, its tokens weighted by the shaping."""

    gamma: float
    by_std: bool

    def advantages(self, rows: Sequence[CreditRow]) -> np.ndarray:
        """Return the advantages of GRPO, shape (N,), the solution a member of its group."""
        return grpo_advantages(rows, by_std=self.by_std)

    def token_weights(self, rows: Sequence[CreditRow], tokens: TokenStats) -> np.ndarray:
        """Return p f'(p) = gamma p / (p + gamma)^2 for a solution's tokens, else 1, shape (N, T).

        The gradient of f(p) is p f'(p) times that of log p.
        """
        probs_NT = np.exp(tokens.log_probs_NT)
        is_given_N1 = np.array([[row.is_given] for row in rows])
        return np.where(is_given_N1, self.gamma * probs_NT / (probs_NT + self.gamma) ** 2, 1.0)


class Luffy(Method):
    """Compare G samples with the solution, which counts more the more of them fail.

    The solution stays out of the group if the verifier does not call it right, and if no response
    is right but a grade failed: a response that may be right must not be pushed down.

    Source: Yan et al. 2025, arXiv:2504.14945. Deviations: docs/lab/deviations.md#luffy.
    """

    settings_cls = LuffySettings
    settings_node = "hint.luffy"
    needs = Needs(solution=True, log_probs=True)

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.credit = LuffyCredit(self.settings.gamma, self.settings.norm_adv_by_std)

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Grade the solution after the group; train on both."""
        if len(rounds) == 1:
            return Sample(given=(problem.solution,), role="reference")
        rows = self.train_round(rounds, 0).rows
        is_uncut = rounds[1].is_solved and not rounds[1].turns[0].response.is_truncated
        if is_uncut and not rounds[0].is_inconclusive:
            rows += (self.row(rounds, Place(1, 0)),)
        return Train(rows)

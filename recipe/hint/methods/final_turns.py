"""What a method of several turns plays in validation: its conversations, by their last turns."""

from __future__ import annotations

from collections.abc import Sequence

from recipe.hint.conversations import conversations
from recipe.hint.methods.base import Method
from recipe.hint.schema import Problem, ProblemState
from recipe.hint.turns import Round, Row, Sample, Train


class FinalTurns(Method):
    """Play another method's turns and keep the last graded one of each conversation.

    Its facts compare it with the first one.
    """

    def __init__(self, method: Method) -> None:
        super().__init__()
        self._method = method

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return what the method samples first."""
        return self._method.open(problem, state)

    def react(
        self, problem: Problem, state: ProblemState, rounds: Sequence[Round]
    ) -> Sample | Train:
        """Return the method's next turn, and in the end the last turns with their facts."""
        decision = self._method.react(problem, state, rounds)
        if isinstance(decision, Sample):
            return decision
        found = conversations(rounds)
        return Train(tuple(Row(each.last, each.acc_last, facts=each.facts) for each in found))

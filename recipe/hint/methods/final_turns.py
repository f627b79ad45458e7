"""Validate a multi-turn method: play its conversations and score their last turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recipe.hint.conversations import conversations
from recipe.hint.methods.base import Method
from recipe.hint.schema import ProblemState
from recipe.hint.turns import Decision, Round, Row, Sample, Train
from recipe.problems.schema import Problem
from recipe.run.errors import TeacherSilentError

if TYPE_CHECKING:  # it imports this file
    from recipe.hint.methods.multi_turn import MultiTurn


class FinalTurns(Method):
    """Play another method's turns and keep the last graded one of each conversation.

    The row's facts compare that turn with the first one. Turns that would not train count too.
    """

    def __init__(self, method: MultiTurn) -> None:
        super().__init__()
        self._method = method

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return what the method samples first."""
        return self._method.open(problem, state)

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Return the method's next turn, in the end the last turns with their facts.

        Raises:
            TeacherSilentError: If a teacher left a turn unanswered.
        """
        if request := self._method.next_turn(problem, rounds):
            return request
        for each in rounds:
            if each.hint_status == "generation_failed":
                raise TeacherSilentError(each.request.role)
        found = conversations(rounds)
        return Train(tuple(Row(each.last, each.acc_last, facts=each.facts) for each in found))

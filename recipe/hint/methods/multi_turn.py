"""Base class of the methods whose conversations have several turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from recipe.hint.methods.base import Method, MethodSettings
from recipe.hint.methods.final_turns import FinalTurns
from recipe.hint.methods.own_credit import OwnCredit
from recipe.hint.turns import Round, Sample
from recipe.problems.schema import Problem


class MultiTurn(OwnCredit):
    """Sample several turns, in validation too; :meth:`react` begins with :meth:`next_turn`.

    The number of rows varies, which verl's estimators do not take: the credit is the method's own.

    Attributes:
        stage1: Name of the setting of stage I's steps, where other implementations count those of
            stage II (``stage2_steps``); empty: it has no stages.
        roles_alternate: Whether a solver and a guide can train in turns, as one policy or as two:
            the settings are those of ``ScoreGuidedSettings``, and their ``t_low`` and ``t_high``
            are :attr:`role_steps`.
    """

    is_multi_turn: ClassVar[bool] = True
    stage1: ClassVar[str] = ""
    roles_alternate: ClassVar[bool] = False

    def next_turn(self, problem: Problem, rounds: Sequence[Round]) -> Sample | None:
        """Return the next turn's request; ``None`` where conversations end."""
        raise NotImplementedError("a method of several turns defines next_turn")

    def validation(self) -> Method:
        """Return the same conversations, scored by their last turns."""
        return FinalTurns(self)

    @property
    def verdict_dependent_settings(self) -> tuple[str, ...]:
        """Names of active settings that let a later turn depend on the verdict."""
        return ()

    @property
    def num_first_attempts(self) -> int:
        """How many of ``Problem.first_attempts`` conversations continue."""
        return 0

    @property
    def asks_teacher(self) -> bool:
        """Whether some turn is written by the endpoint of ``hint.teacher``: as the settings say."""
        return isinstance(self.settings, MethodSettings) and self.settings.asks_teacher

    @property
    def role_steps(self) -> tuple[int, int]:
        """Steps in a row that train the solver alone, then the guide alone; 0: both at once."""
        return 0, 0

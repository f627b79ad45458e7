"""What every method is: a decision before sampling, and one after each group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from recipe.hint.schema import FINAL_HINT_FAILURES, Attempt, Keep, Plan, Problem, ProblemState
from recipe.hint.seeds import seed_at


@dataclass(frozen=True)
class NoSettings:
    """A method without knobs of its own."""


@dataclass(frozen=True)
class Refresh:
    """Which problems leave their hint out for once, after a visit that trained with one.

    ``share`` is their share in [0, 1], drawn from ``seed``, the problem and the visit.
    """

    share: float = 0.0
    seed: int = 1

    def is_due(self, problem: Problem, state: ProblemState) -> bool:
        """Whether this visit is one without a hint."""
        if not self.share or not state.accepted_level:
            return False
        draw = seed_at(self.seed, "refresh", problem.id, state.visits)
        return draw < self.share * 2**31


class Method:
    """Roll out once without a hint and train on that group: the neutral decision.

    A method is pure: it sees what was tried and answers what to do, and holds no state.
    ``settings_cls`` names the knobs it reads (``trainer.*`` and ``hint.*`` keys are mapped
    in ``settings.py``); ``uses_hints`` tells whether a hint source has to be set up, ``source``
    which one where ``hint.source`` names none, ``can_refresh`` whether ``hint.refresh_share``
    is read.
    """

    settings_cls: ClassVar[type] = NoSettings
    uses_hints: ClassVar[bool] = False
    source: ClassVar[str] = "self_generated"
    can_refresh: ClassVar[bool] = False
    # Pieces that the source's levels are cut into, each a level of its own for the method.
    increments: int = 1

    def __init__(
        self, *, max_level: int = 0, settings: Any = None, refresh: Refresh | None = None
    ) -> None:
        self.max_level = max_level
        self.settings: Any = self.settings_cls() if settings is None else settings
        self.refresh = refresh or Refresh()

    def open(self, problem: Problem, state: ProblemState) -> Plan:
        """Decide the first group, before anything is sampled."""
        return Plan(level=0)

    def react(self, problem: Problem, attempts: Sequence[Attempt]) -> Plan | Keep:
        """Decide after each group: another one, or which rollouts to train on."""
        if not attempts[-1].is_sampled:
            return Plan(level=0)
        return Keep.group(attempts, -1)

    def reward(self, accuracy: float, form: float) -> float:
        """What a rollout trains with; decisions see its accuracy only.

        Args:
            accuracy: The verifier's score, or the reward in its place (``Verdict.trained``).
            form: 1.0 when the response keeps the tags of a thought and an answer, else 0.0.
        """
        return accuracy

    def _is_climb_over(self, last: Attempt) -> bool:
        """Whether no stronger hint follows; a verifier failure is no reason for one."""
        return (
            last.plan.is_plain
            or last.is_solved
            or last.is_ungraded
            or last.hint_status in FINAL_HINT_FAILURES
            or last.plan.level >= self.max_level
        )

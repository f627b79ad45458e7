"""How many answers a visit may take, found by asking the method itself."""

from __future__ import annotations

from recipe.hint.methods.base import Method
from recipe.hint.schema import Attempt, Plan, Problem, ProblemState

_LATE = 1_000_000  # past every cold start and warm-up


def most_answers(method: Method, group_size: int) -> int:
    """Answers sampled for a new problem that is never solved, late in a run.

    That is the most for a method that searches until an answer is right.
    """
    problem = Problem("", (), "", "solution", "answer")
    decision = method.open(problem, ProblemState(step=_LATE))
    attempts: list[Attempt] = []
    while isinstance(decision, Plan):
        count = min(decision.rollouts or group_size, group_size)
        status = "ok" if decision.level else "none"
        attempts.append(
            Attempt(decision, status, rewards_G=(0.0,) * count, is_whole=count == group_size)
        )
        decision = method.react(problem, attempts)
    return sum(len(attempt.rewards_G) for attempt in attempts)

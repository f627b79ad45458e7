"""How many responses a prompt rollout may take, found by asking the method itself."""

from __future__ import annotations

from recipe.hint.methods.base import Method
from recipe.hint.schema import Problem, ProblemState, Response, Verdict
from recipe.hint.turns import Round, Sample, Turn

_LATE = 1_000_000  # past every cold start and warm-up
_WRONG = Turn((), [], Response([], [], "", is_truncated=False), Verdict(0.0, "wrong"))


def most_responses(method: Method, group_size: int) -> int:
    """Return the responses sampled for a new problem that is never solved, late in a run.

    That is the most for a method that searches until a response is right.
    """
    problem = Problem("", (), "", "solution", "answer")
    decision = method.open(problem, ProblemState(step=_LATE))
    rounds: list[Round] = []
    while isinstance(decision, Sample):
        count = min(decision.n or group_size, group_size) * max(len(decision.parents), 1)
        status = "ok" if decision.level else "none"
        is_whole = count >= group_size
        rounds.append(Round(decision, (_WRONG,) * count, status, is_whole=is_whole))
        decision = method.react(problem, rounds)
    return sum(len(each.turns) for each in rounds)

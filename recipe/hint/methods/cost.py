"""Count the responses that a prompt rollout may take, by playing the method."""

from __future__ import annotations

from dataclasses import replace

from recipe.hint.methods.base import Method
from recipe.hint.schema import ProblemState, Response
from recipe.hint.turns import Round, Sample, Turn
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError
from recipe.verify.schema import Verdict

_LATE = 1_000_000  # past every cold start and warm-up
# Of one prompt. In a run each round waits for the one before it.
_MOST_ROUNDS = 300
_MOST_RESPONSES = 100_000
_WRONG = Turn((), [], Response([], [], "", is_truncated=False), Verdict(0.0, "wrong"))
_RIGHT = replace(_WRONG, verdict=Verdict(1.0, "correct"))
_NOT_GRADED = replace(_WRONG, verdict=None)  # the request asks for no grade


def most_responses(method: Method, group_size: int) -> int:
    """Return the responses sampled for a new problem that is never solved, late in a run.

    That is the most for a method that searches until a response is right.

    Raises:
        ConfigError: If they take more rounds than any run could wait for.
    """
    return _responses(method, group_size, _WRONG)


def fewest_responses(method: Method, group_size: int) -> int:
    """Return the responses sampled for a new problem that every response solves, late in a run."""
    return _responses(method, group_size, _RIGHT)


def _responses(method: Method, group_size: int, graded: Turn) -> int:
    problem = Problem("", (), "", "solution", "answer")
    state = ProblemState(step=_LATE)
    decision = method.open(problem, state)
    rounds: list[Round] = []
    total = 0
    while isinstance(decision, Sample):
        parents = (None,) if decision.parents is None else decision.parents
        total += len(parents) * decision.count(group_size)
        if len(rounds) == _MOST_ROUNDS or total > _MOST_RESPONSES:
            raise ConfigError(
                f"one prompt would take more than {_MOST_ROUNDS} rounds or {_MOST_RESPONSES:,} "
                f"responses; lower the numbers in {method.settings_node or 'hint'}, or "
                f"actor_rollout_ref.rollout.n={group_size}"
            )
        turn = graded if decision.is_graded else _NOT_GRADED
        turns = tuple(
            replace(turn, parent=parent)
            for parent in parents
            for _ in range(decision.count(group_size))
        )
        status = "ok" if decision.level else "none"
        is_whole = decision.is_complete_with(len(turns), group_size)
        rounds.append(Round(decision, turns, status, is_whole=is_whole))
        decision = method.react(problem, state, rounds)
    return sum(len(each.turns) for each in rounds if not each.request.given)

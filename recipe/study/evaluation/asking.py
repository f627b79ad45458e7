"""Ask a model one problem: at every hint level, or with all turns of a multi-turn method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from recipe.hint.methods import Method
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.samples import NO_SAMPLES
from recipe.hint.schema import FINAL_HINT_FAILURES, ProblemState
from recipe.hint.settings import style_of
from recipe.hint.turns import Decision, Round, Sample, Turn, at_level
from recipe.problems.schema import Problem


class EveryLevel(Method):
    """Sample a group at every hint level from 0 to L, whatever the answers are."""

    uses_hints = True

    def open(self, problem: Problem, state: ProblemState) -> Sample:
        """Return the group without a hint."""
        return Sample(writes_hints_early=True)

    def react(self, problem: Problem, state: ProblemState, rounds: Sequence[Round]) -> Decision:
        """Return the next level, and in the end the newest group that was sampled."""
        last = rounds[-1]
        if last.level == self.max_level or last.hint_status in FINAL_HINT_FAILURES:
            return self.train_last_sampled(rounds)
        return Sample(at_level(last.level + 1))


def asked_method(method: Method) -> Method:
    """Return what is played of a method: its hint levels, its turns, or one group."""
    return EveryLevel(max_level=method.max_level) if method.uses_hints else method.validation()


async def ask(problem: Problem, parts: RolloutParts) -> dict[str, Any]:
    """Return the problem and all rounds with their whole texts, as JSON has them.

    Args:
        problem: What is asked.
        parts: What a prompt rollout of the run is made of; ``asked_method`` says what is played.
    """
    method = asked_method(parts.method)
    style = style_of(parts.settings, parts.method)
    settings = replace(parts.settings, samples=NO_SAMPLES, style=style)
    parts = replace(parts, method=method, settings=settings)
    rollout = PromptRollout(problem, ProblemState(), parts)
    record = (await rollout.run("ask", 0)).record
    return {
        "id": problem.id,
        "data_source": problem.data_source,
        "problem": problem.text,
        "answer": problem.answer,
        "solution": problem.solution,
        "hint_calls": record.hint_calls,
        "hint_tokens": record.hint_tokens,
        "rounds": [_round(each, each.level in record.leaked_levels) for each in rollout.rounds],
    }


def _round(done: Round, leaks: bool) -> dict[str, Any]:
    return {
        "prompt": done.request.prompt.kind,
        "role": done.request.role,
        "level": done.level,
        "hint_status": done.hint_status,
        "hint": done.hint,
        "leaks": leaks,
        "turns": [_turn(turn) for turn in done.turns],
    }


def _turn(turn: Turn) -> dict[str, Any]:
    verdict = turn.verdict
    return {
        "response": turn.response.text,
        "tokens": len(turn.response.token_ids_T),
        "is_truncated": turn.response.is_truncated,
        "parent": list(turn.parent) if turn.parent else None,
        "score": verdict.score if verdict else None,
        "reason": verdict.reason if verdict else "not_graded",
        "extracted": verdict.extracted if verdict else "",
    }

"""Make the rows of a warm-up from a problem with a worked solution."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from recipe.hint.hints.leak import find_leaks, graded_equal
from recipe.hint.hints.self_generated import hint_request
from recipe.hint.hints.solution_levels import solution_levels
from recipe.hint.prompt import Message, Style, Texts, with_hint
from recipe.problems.schema import Problem
from recipe.verify.schema import Item, Verdict, formats_asked_for

KINDS = ("solve", "hinted", "write")
Row = tuple[Sequence[Message], str]  # a conversation and the response to learn
_NONE: Row = (), ""
_LAST_LINES = {"boxed": "The final answer is \\boxed{%s}.", "hashes": "#### %s"}
_LAST_LINES |= {"tags": "<answer>%s</answer>", "line": "Answer: %s"}


@dataclass(frozen=True)
class RowMaker:
    """Makes rows; ``shares`` of the problems, by kind, are drawn by ``seed`` and problem id."""

    shares: Mapping[str, float]
    texts: Texts
    style: Style
    grade: Callable[[Sequence[Item]], Awaitable[list[Verdict]]]
    seed: int = 1

    async def rows_of_all(self, problems: Sequence[Problem]) -> list[dict[str, Row]]:
        return await asyncio.gather(*map(self.rows_of, problems))

    async def rows_of(self, problem: Problem) -> dict[str, Row]:
        """Return rows by kind; an empty one by a reason why there is none."""
        response, asked = solved(problem), formats_asked_for(problem.messages)
        item = Item(response, problem.answer, False, problem.kind, problem.text, asked=asked)
        if not problem.solution.strip() or (await self.grade([item]))[0].score < 1:
            return {"graded wrong" if problem.solution.strip() else "without solution": _NONE}
        levels, draw = solution_levels(problem), random.Random(f"{self.seed}/{problem.id}")
        leaks = await find_leaks(levels, problem, graded_equal(self.grade))
        level, rows = draw.randrange(len(levels) or 1), dict[str, Row]()
        for kind in [kind for kind in KINDS if draw.random() < self.shares[kind]]:
            if kind == "solve":
                rows[kind] = problem.messages, response
            elif not levels or (any(leaks) if kind == "write" else leaks[level]):
                rows[f"{kind} leaking" if levels else f"{kind} without steps"] = _NONE
            elif kind == "write":
                request = hint_request(self.texts, problem.text, problem.solution)
                node = {f"level_{number}": text for number, text in enumerate(levels, 1)}
                text = json.dumps(node, indent=2, ensure_ascii=False)
                rows[kind] = request, f"```json\n{text}\n```"
            elif self.style != "prefill":  # the solution's own beginning: `solve` teaches the rest
                hinted = with_hint(problem.messages, levels[level], self.texts, self.style)
                rows[kind] = hinted, response
        return rows


def solved(problem: Problem) -> str:
    """Return the solution with its answer at the end, in the format that the prompt asks for."""
    solution = problem.solution.strip()
    if problem.kind == "program":
        return solution if "```" in solution else f"```python\n{solution}\n```"
    line = _LAST_LINES[next(iter(formats_asked_for(problem.messages)), "boxed")]
    is_there = line.split("%s")[0].split()[-1] in solution.rpartition("\n")[2]
    return solution if is_there else f"{solution}\n{line % problem.answer}"

"""Hint levels cut from a worked solution, by which a model learns to write such hints."""

from __future__ import annotations

import itertools
import re

from recipe.hint.hints.fitting import sentence_ends
from recipe.hint.hints.solution_prefix import answer_start
from recipe.problems.schema import Problem

_OPERATION = re.compile(
    r"(?:(?<=[\d)}%])\s*|(?<=\w)\s+)(?:(?P<add>\+)|(?P<subtract>[-−–])|(?P<divide>/|÷|\\div\b)"  # noqa: RUF001
    r"|(?P<multiply>[*×·]|x(?=[\s\d])|\\times\b|\\cdot\b))\s*(?=\\?[$(]?\s*\d)"  # noqa: RUF001
)


def solution_levels(problem: Problem) -> tuple[str, ...]:
    """Return three levels, each of which says more; none where the solution shows no steps.

    1: the operations in order; 2: the first lines too; 3: all lines but the last, and what to
    compute last. An earlier line may hold the last result too: ask ``find_leaks``.
    """
    work = problem.solution[: answer_start(problem)].rstrip()
    steps = [line.strip() for line in work.splitlines() if line.strip()]
    if len(steps) == 1:
        ends = [0, *sentence_ends(steps[0])]
        steps = [steps[0][start:end].strip() for start, end in itertools.pairwise(ends)]
    if not steps or problem.kind == "program":
        return ()
    # Where the answer begins within a line, that line ends before it already.
    is_whole = work[-1] in ".!?" or problem.solution[len(work) :].strip(" \t")[:1] in "\n"
    last = (steps[-1].rpartition("=")[0] if is_whole else steps[-1]).strip(" =≈:$*(")
    found = [str(match.lastgroup) for step in steps for match in _OPERATION.finditer(step)]
    operations = ", then ".join(name for name, _ in itertools.groupby(found))
    plan = f"Steps: {len(steps)}" + f"; {operations}." * bool(operations)
    close = f"Last, compute: {last}" if last else "Then do the last step."
    if len(steps) == 1:
        return (plan, *[f"{plan}\n{close}"] * 2) if last else ()
    begin = [plan, "Begin with:", *steps[: max(1, (len(steps) - 1) // 2)]]
    return plan, "\n".join(begin), "\n".join([*steps[:-1], close])

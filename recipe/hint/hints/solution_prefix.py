"""The beginning of the reference solution as a hint, up to but never with the final answer."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Sequence

from recipe.hint.hints.base import Generate, HintResult
from recipe.hint.hints.fitting import UNSPACED, SafeEnds, sentence_ends
from recipe.problems.schema import Problem

_FINAL = re.compile(
    r"\\boxed|\\fbox|####|<answer>|答案[是为為:：]"
    r"|(?:\bthe\s+)?\b(?:final\s+answer\b|answer\s+is\b|answers\s+are\b|answers?\s*:)",
    re.IGNORECASE,
)
# A shorter answer occurs in too many places: which of them give it away is unclear.
_DISTINCT_CHARS = 3
_NUMBER = re.compile(r"(?P<sign>-?)(?P<whole>\d+|\d{1,3}(?:,\d{3})+)(?P<rest>(?:\.\d+)?)")
_THOUSANDS = r"(?:\{?,\}?(?:\\!)?|\\[,;: ]|[\s'’])?"
_WORDS = re.compile(r"[^\W\d_]{2,}(?:[\s-]+[^\W\d_]+)*")
# What may stand before and after an answer. Letters that take no space beside a number may.
_LETTER = rf"[^\W\d_{UNSPACED}\uac00-\ud7af]"
_ALONE = (
    re.compile(rf"(?<![\d_.,])(?<!{_LETTER})"),
    re.compile(rf"(?![\d_])(?!{_LETTER})(?![.,]\d)"),
)
_TOUCHED = (
    re.compile(rf"(?<![\d_.,])(?<!(?<!{_LETTER}){_LETTER})"),
    re.compile(r"(?!\d)(?![.,]\d)"),
)

_OPERATION = re.compile(
    r"(?:(?<=[\d)}%])\s*|(?<=\w)\s+)(?:(?P<add>\+)|(?P<subtract>[-−–])|(?P<divide>/|÷|\\div\b)"  # noqa: RUF001
    r"|(?P<multiply>[*×·]|x(?=[\s\d])|\\times\b|\\cdot\b))\s*(?=\\?[$(]?\s*\d)"  # noqa: RUF001
)


class SolutionPrefix:
    """Level k shows the share ``ratios[k - 1]`` of the solution, in characters or sentences.

    Source: Liu et al. 2025, arXiv:2507.10628 (25, 50 and 75 % of the characters). Different: a
    prefix ends before the final answer, and never inside a formula or a command
    (docs/lab/deviations.md#ghpo).

    Args:
        ratios: Shares in (0, 1), growing.
        unit: ``char`` or ``sentence``.
    """

    def __init__(self, *, ratios: Sequence[float], unit: str = "char") -> None:
        self._ratios = tuple(ratios)
        self._unit = unit

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return one prefix per ratio; ``missing_solution`` where the answer comes first."""
        solution = problem.solution
        limit = answer_start(problem)
        if not solution[:limit].strip():
            return HintResult("missing_solution", detail="nothing_before_answer")
        safe, begin = SafeEnds(solution), len(solution) - len(solution.lstrip())
        in_chars = range(1, len(solution) + 1)
        ends = sentence_ends(solution) if self._unit == "sentence" else in_chars
        first = bisect.bisect_right(ends, begin)
        hints = []
        for ratio in self._ratios:
            index = max(round(len(ends) * ratio) - 1, first)
            end = min([*ends, len(solution)][index], limit)
            if (before := safe.before(end)) > begin:
                end = before
            else:  # nothing would be left
                end = min(safe.after(end), limit)
            hints.append(solution[:end].rstrip())
        return HintResult("ok", tuple(hints))


def answer_start(problem: Problem) -> int:
    """Return where a prefix has to end so that it does not reach the final answer.

    That is before the first box (or another mark of a final answer), and before the answer's own
    text: where it first stands if it has at least three characters and the problem does not name
    it, else where it last stands, since a short number also occurs on the way. In that case the 2
    of ``2x`` counts only if 2 stands nowhere alone.
    """
    solution = problem.solution
    mark = _FINAL.search(solution)
    limit = mark.start() if mark else len(solution)
    answer = problem.answer.strip()
    if answer and problem.kind != "program":
        is_distinct = len(answer) >= _DISTINCT_CHARS and not _places(answer, problem.text)
        places = [] if is_distinct else _places(answer, solution, is_alone=True)
        if places := places or _places(answer, solution):
            limit = min(limit, places[0 if is_distinct else -1])
    return SafeEnds(solution).before(limit)


def solution_levels(problem: Problem) -> tuple[str, ...]:
    """Return three levels, each of which says more; none where the solution shows no steps.

    1: the operations, each once; 2: the first lines too; 3: all lines but the last, or the last two
    of four or more (a writer that copies one line too many tells no answer yet), and what to
    compute next. An earlier line may hold the last result too: ask ``find_leaks``.
    """
    work = problem.solution[: answer_start(problem)].rstrip()
    steps = [line.strip() for line in work.splitlines() if line.strip()]
    if len(steps) == 1:
        ends = [0, *sentence_ends(steps[0])]
        steps = [steps[0][start:end].strip() for start, end in itertools.pairwise(ends)]
    if not steps or problem.kind == "program":
        return ()
    shown, held = steps[:-1], steps[-1]
    # Where the answer begins within the last line, that line ends before it already.
    is_whole = work[-1] in ".!?" or problem.solution[len(work) :].strip(" \t")[:1] in "\n"
    if len(steps) > 3:
        shown, held, is_whole = steps[:-2], steps[-2], True
    task = (held.rpartition("=")[0] if is_whole else held).strip(" =≈:$*(")
    found = [str(match.lastgroup) for step in steps for match in _OPERATION.finditer(step)]
    operations = ", then ".join(dict.fromkeys(found))
    plan = f"Steps: {len(steps)}" + f"; {operations}." * bool(operations)
    close = f"Next, compute: {task}" if task else "Then do the next step."
    if len(steps) == 1:
        return (plan, *[f"{plan}\n{close}"] * 2) if task else ()
    begin = [plan, "Begin with:", *steps[: max(1, (len(steps) - 1) // 2)]]
    return plan, "\n".join(begin), "\n".join([*shown, close])


def _places(answer: str, text: str, *, is_alone: bool = False) -> list[int]:
    """Return where the answer stands in a text, in order.

    White space, minus signs, separators of thousands and the zeros of $12.00 may differ. Unless it
    has to be alone, letters may touch a number (1234m, 6th, Rs1234; not x2, where one letter stands
    before it), and the case of words may differ.
    """
    answer = answer.replace("−", "-")
    (before, after), flags = _ALONE, re.NOFLAG
    if number := _NUMBER.fullmatch(answer):
        groups = re.findall(r"\d{1,3}(?=(?:\d{3})*$)", number["whole"].replace(",", ""))
        body = "[-−–]" if number["sign"] else ""
        body += _THOUSANDS.join(",?".join(digits) for digits in groups)
        body += re.escape(number["rest"]) or r"(?:\.0+)?"
        before, after = _ALONE if is_alone else _TOUCHED
    else:
        body = r"\s*".join(map(re.escape, answer.split())).replace(r"\-", "[-−–]")
        if _WORDS.fullmatch(answer) and not is_alone:
            flags = re.IGNORECASE
    # The sides are compiled once: their sets of letters take a millisecond.
    matches = re.finditer(body, text, flags)
    return [
        match.start()
        for match in matches
        if before.match(text, match.start()) and after.match(text, match.end())
    ]

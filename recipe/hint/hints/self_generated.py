"""Self-hints: the policy reads the reference solution and writes hints."""

from __future__ import annotations

from recipe.hint.hints.base import Generate, HintResult
from recipe.hint.hints.levels_json import parse_hint_levels
from recipe.hint.prompt import Message, Texts, fill
from recipe.hint.schema import ParseFailure
from recipe.problems.schema import Problem


class SelfGenerated:
    """Ask up to ``attempts`` times; every attempt is a new sample.

    Source: Liao et al. 2026, arXiv:2602.03143. The authors' release repeats one greedy text;
    here each attempt has a seed of its own (docs/lab/deviations.md#sage).
    """

    def __init__(self, *, texts: Texts, attempts: int, max_level: int) -> None:
        self._texts = texts
        self._attempts = attempts
        self._max_level = max_level

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the first response that parses.

        The final answer alone is never shown as a solution. A response without tokens means that
        the request did not fit: asking again would not help.
        """
        if not problem.solution.strip():
            return HintResult("missing_solution")
        request = hint_request(self._texts, problem.text, problem.solution)
        tokens, detail = 0, ""
        for attempt in range(self._attempts):
            written = await generate(request, attempt)
            if written.tokens == 0:
                return HintResult("generation_failed", calls=attempt, tokens=tokens)
            tokens += written.tokens
            parsed = parse_hint_levels(written.text, self._max_level)
            if not isinstance(parsed, ParseFailure):
                return HintResult("ok", parsed, attempt + 1, tokens)
            detail = f"{parsed.reason}: {parsed.excerpt}"
        return HintResult("parse_failed", calls=self._attempts, tokens=tokens, detail=detail)


def hint_request(texts: Texts, problem: str, solution: str) -> list[Message]:
    """Return the conversation that asks the policy for a set of hints."""
    return [
        {"role": "system", "content": texts.hint_system},
        {"role": "user", "content": fill(texts.hint_user, problem=problem, solution=solution)},
    ]

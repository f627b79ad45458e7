"""Self-hints: the policy reads the reference solution and writes hints."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from recipe.hint.hints.base import Generate, HintResult, WrittenText
from recipe.hint.hints.levels_json import parse_hint_levels
from recipe.hint.prompt import Message, Texts, fill
from recipe.problems.schema import Problem

# (conversation, number of the attempt) -> text, and whether it was paid for now; or why there is
# none, in a word and a colon (empty: the request does not fit, and was not sent).
Ask = Callable[[list[Message], int], Awaitable[tuple[WrittenText, bool] | str]]


@dataclass(frozen=True)
class SelfGenerated:
    """Ask up to ``attempts`` times; every attempt is a new sample.

    Source: Liao et al. 2026, arXiv:2602.03143. The authors' release repeats one greedy text;
    here each attempt has a seed of its own (docs/lab/deviations.md#sage).
    """

    texts: Texts
    attempts: int
    max_level: int

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the first response that parses."""

        async def ask(messages: list[Message], attempt: int) -> tuple[WrittenText, bool] | str:
            written = await generate(messages, attempt)
            return (written, True) if written.tokens else ""

        return await self.first_of(problem, ask)

    async def first_of(self, problem: Problem, ask: Ask) -> HintResult:
        """Return the levels of the first text that parses; of a problem without a solution none."""
        if not problem.solution.strip():
            return HintResult("missing_solution")
        request = hint_request(self.texts, problem.text, problem.solution)
        calls, tokens, detail = 0, 0, ""
        for attempt in range(self.attempts):
            answer = await ask(request, attempt)
            if isinstance(answer, str):
                return HintResult("generation_failed", (), calls + bool(answer), tokens, answer)
            written, is_new = answer
            calls, tokens = calls + is_new, tokens + is_new * written.tokens
            parsed = parse_hint_levels(written.text, self.max_level)
            if not isinstance(parsed, str):
                return HintResult("ok", parsed, calls, tokens)
            detail = f"{parsed} (cut at its token limit)" if written.is_cut else parsed
        return HintResult("parse_failed", (), calls, tokens, detail)


def hint_request(texts: Texts, problem: str, solution: str) -> list[Message]:
    """Return the conversation that asks for a set of hints."""
    asked = fill(texts.hint_user, problem=problem, solution=solution)
    return [{"role": "system", "content": texts.hint_system}, {"role": "user", "content": asked}]

"""Build the prompts of later turns: to revise, to give feedback, to refine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from recipe.hint.prompt import Texts, fill
from recipe.hint.turns import FollowUp, Prompt, PromptContext, PromptSpec, Turn


@dataclass(frozen=True)
class Revise(PromptSpec):
    """The conversation so far, and the instruction to revise it (``Texts.revise``).

    ``shows_failed_test``: of a program the test that failed comes first, where there is room.
    """

    shows_failed_test: bool = False
    kind: ClassVar[str] = "revise"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the longer conversation."""
        bare = await FollowUp(context.texts.revise).build(context, parent)
        failed = _failed_test(parent, context.texts) if self.shows_failed_test else ""
        if not failed:
            return bare
        longer = await FollowUp(f"{failed}\n\n{context.texts.revise}").build(context, parent)
        return longer if longer.is_usable else bare


@dataclass(frozen=True)
class Feedback(PromptSpec):
    """What the guide is asked about a response: it sees the problem and that response.

    ``shows_failed_test``: of a program also the test that failed, where there is room.
    """

    shows_failed_test: bool = False
    kind: ClassVar[str] = "feedback"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the guide's conversation.

        Raises:
            ValueError: If there is no turn to give feedback on.
        """
        if parent is None:
            raise ValueError("Feedback needs a parent; give Sample.parents")
        texts, attempt = context.texts, parent.response.text

        def asked(attempt: str) -> Prompt:
            user = fill(texts.guide_user, problem=context.problem.text, attempt=attempt)
            system = {"role": "system", "content": texts.guide_system}
            messages = (system, {"role": "user", "content": user})
            return context.fitting_prompt(messages)

        failed = _failed_test(parent, texts) if self.shows_failed_test else ""
        longer = asked(f"{attempt}\n\n{failed}") if failed else None
        return longer if longer and longer.is_usable else asked(attempt)


@dataclass(frozen=True)
class Refine(PromptSpec):
    """The conversation that got feedback, and the feedback; the parent is the feedback's turn."""

    kind: ClassVar[str] = "refine"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the longer conversation.

        Raises:
            ValueError: If the parent is not feedback on an earlier turn.
        """
        if parent is None or parent.parent is None:
            raise ValueError("Refine needs feedback as its parent; give Sample.parents")
        instruction = fill(context.texts.refine, feedback=parent.response.text)
        return await FollowUp(instruction).build(context, context.turn(parent.parent))


def _failed_test(turn: Turn | None, texts: Texts) -> str:
    """Return what a turn's failed test says; empty where none failed."""
    if not turn or not turn.verdict or turn.verdict.is_ungraded or not turn.verdict.detail:
        return ""
    return fill(texts.failed_test, failure=turn.verdict.detail)

"""The prompts of later turns: to revise, to give feedback, to refine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from recipe.hint.prompt import fill
from recipe.hint.turns import FollowUp, Prompt, PromptContext, PromptSpec, Turn


@dataclass(frozen=True)
class Revise(PromptSpec):
    """The conversation so far, and the instruction to revise it (``Texts.revise``)."""

    kind: ClassVar[str] = "revise"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the longer conversation."""
        return await FollowUp(context.texts.revise).build(context, parent)


@dataclass(frozen=True)
class Feedback(PromptSpec):
    """What the guide is asked about a response: it sees the problem and that response."""

    kind: ClassVar[str] = "feedback"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the guide's conversation.

        Raises:
            ValueError: If there is no turn to give feedback on.
        """
        if parent is None:
            raise ValueError("Feedback needs a parent; give Sample.parents")
        texts = context.texts
        asked = fill(texts.guide_user, problem=context.problem.text, attempt=parent.response.text)
        return context.within(
            (
                {"role": "system", "content": texts.guide_system},
                {"role": "user", "content": asked},
            )
        )


@dataclass(frozen=True)
class Refine(PromptSpec):
    """The conversation that got feedback, and the feedback; the parent is the feedback's turn.

    ``withholds_leaks``: feedback that gives the answer away is replaced (``Texts.no_feedback``).
    """

    withholds_leaks: bool = False
    kind: ClassVar[str] = "refine"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the longer conversation.

        Raises:
            ValueError: If the parent is no feedback on an earlier turn.
        """
        if parent is None or parent.parent is None:
            raise ValueError("Refine needs feedback as its parent; give Sample.parents")
        is_withheld = self.withholds_leaks and parent.leaks
        feedback = context.texts.no_feedback if is_withheld else parent.response.text
        instruction = fill(context.texts.refine, feedback=feedback)
        return await FollowUp(instruction).build(context, context.turn(parent.parent))

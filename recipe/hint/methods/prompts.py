"""Build the prompts of later turns: to revise, to give feedback, to refine."""

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
        """Return the guide's conversation."""
        assert parent is not None, "Feedback needs Sample.parents"
        problem, attempt = context.problem.text, parent.response.text
        user = fill(context.texts.guide_user, problem=problem, attempt=attempt)
        system = {"role": "system", "content": context.texts.guide_system}
        return context.fitting_prompt((system, {"role": "user", "content": user}))


@dataclass(frozen=True)
class Refine(PromptSpec):
    """The conversation that got feedback, and the feedback; the parent is the feedback's turn."""

    kind: ClassVar[str] = "refine"

    async def build(self, context: PromptContext, parent: Turn | None) -> Prompt:
        """Return the longer conversation."""
        assert parent is not None and parent.parent is not None, "Refine needs feedback"
        instruction = fill(context.texts.refine, feedback=parent.response.text)
        return await FollowUp(instruction).build(context, context.turn(parent.parent))

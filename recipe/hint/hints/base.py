"""What a source of hints is: it turns a problem into a set of hints, or says why it cannot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from recipe.hint.prompt import Message
from recipe.hint.schema import HintLevels, HintStatus, Problem

EMPTY = HintLevels(())


@dataclass(frozen=True, slots=True)
class Reply:
    """One generated text and its length; ``is_cut`` when it ran into the token limit."""

    text: str
    tokens: int
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class HintResult:
    """Hints (empty unless ``status`` is ``ok``), what they cost, and levels with the answer."""

    status: HintStatus
    hint_levels: HintLevels = EMPTY
    calls: int = 0
    tokens: int = 0
    detail: str = ""
    leaked: tuple[int, ...] = ()


# (conversation, number of the attempt) -> reply; the caller owns seeds and sampling settings.
Generate = Callable[[list[Message], int], Awaitable[Reply]]


class HintSource(Protocol):
    """Where hint text comes from."""

    async def write(self, problem: Problem, generate: Generate, *, visits: int = 0) -> HintResult:
        """All levels for one rollout of a problem that had ``visits`` of them before."""
        ...

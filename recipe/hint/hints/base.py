"""A source of hints: it turns a problem into a set of hints, or says why it cannot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from recipe.hint.hints.teacher_settings import TeacherSampling
from recipe.hint.prompt import Message
from recipe.hint.schema import HintLevels, HintStatus
from recipe.problems.schema import Problem

EMPTY = HintLevels(())


@dataclass(frozen=True, slots=True)
class WrittenText:
    """One generated text, its length in tokens, and whether it ran into the token limit."""

    text: str
    tokens: int
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class HintResult:
    """Hints, empty unless ``status`` is ``ok``, and what they cost this prompt rollout.

    Attributes:
        calls: Responses requested from the hint writer, retries included.
        tokens: Length of those that were received.
        detail: Why there are none: a word, then a colon and more about it.
        leaked: Levels, from 1, whose text gives the final answer away.
    """

    status: HintStatus
    hint_levels: HintLevels = EMPTY
    calls: int = 0
    tokens: int = 0
    detail: str = ""
    leaked: tuple[int, ...] = ()


class Endpoint(Protocol):
    """A model behind an endpoint that writes single texts.

    ``sampling``: the defaults of a request; their seed is not used.
    """

    sampling: TeacherSampling

    async def reply(
        self, messages: Sequence[Message], sampling: TeacherSampling
    ) -> WrittenText | HintStatus:
        """Return one text, or the status that says why there is none."""
        ...


# (conversation, number of the attempt) -> text; the caller owns seeds and sampling settings.
Generate = Callable[[list[Message], int], Awaitable[WrittenText]]


class HintSource(Protocol):
    """Where hint text comes from."""

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return all levels; the problem had ``num_before`` prompt rollouts before this one."""
        ...

"""A source of hints: it turns a problem into a set of hints, or says why it cannot."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple, Protocol

from pydantic import Field

from recipe.hint.prompt import Message
from recipe.hint.schema import HintStatus
from recipe.problems.schema import Problem


class WrittenText(NamedTuple):
    """One generated text, its length in tokens, and whether it ran into the token limit."""

    text: str
    tokens: int
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class HintResult:
    """Hint texts, the weakest first, and what they cost this prompt rollout.

    There are none unless ``status`` is ``ok``. ``tokens``: length of the texts that ``calls``
    requests to the writer brought. ``detail``: why there are none, a word, then a colon and more.
    ``leaked``: levels, from 1, whose text gives the final answer away.
    """

    status: HintStatus
    hints_L: tuple[str, ...] = ()
    calls: int = 0
    tokens: int = 0
    detail: str = ""
    leaked: tuple[int, ...] = ()


# (conversation, number of the attempt) -> text; the caller owns seeds and sampling settings.
Generate = Callable[[list[Message], int], Awaitable[WrittenText]]


class HintSource(Protocol):
    """Where hint text comes from."""

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return all levels; the problem had ``num_before`` prompt rollouts before this one."""
        ...


@dataclass(frozen=True)
class TeacherSettings:
    """The ``hint.teacher`` node: an endpoint that speaks OpenAI's chat completions.

    docs/hints.md#the-teacher describes each; ``timeout_s`` is in seconds, of one try.
    """

    base_url: str = ""
    model: str = ""
    api_key_env: str | None = None
    num_ladders: Annotated[int, Field(ge=1)] = 1
    num_parallel: Annotated[int, Field(ge=1)] = 16
    timeout_s: Annotated[float, Field(gt=0)] = 120.0
    num_retries: Annotated[int, Field(ge=0)] = 4
    cache_dir: str = "outputs/teacher"
    body: dict = field(default_factory=dict)


class TeacherSampling(NamedTuple):
    """How responses are drawn; the settings ``hint.temperature`` and so on."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int = 1

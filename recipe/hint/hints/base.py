"""A source of hints, and where a hint may be cut.

A source turns a problem into a set of hints, or says why it cannot. A text is cut between sentences
or pieces, never inside mathematics or a command.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
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


class Endpoint(Protocol):
    """A model that writes single texts; ``sampling`` has its defaults, whose seed is not used."""

    sampling: TeacherSampling

    async def reply(
        self, messages: Sequence[Message], sampling: TeacherSampling
    ) -> WrittenText | HintStatus:
        """Return one text, or the status that says why there is none."""
        ...


# Letters of scripts that put no spaces between words: Thai to Khmer, kana, Chinese characters.
UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# A sentence ends at . ! ? or the like before white space (a closing dollar or bracket may come
# between), at a full-width one at once, or at a line break; 3.14 does not end one.
_CLOSERS = r")\]）」』】》”’»"
_SENTENCE_END = re.compile(
    rf"[.!?।॥۔؟][$\"'{_CLOSERS}]*(?=\s)|(?:[。！？｡]|．(?!\d))[。！？｡{_CLOSERS}]*|\n+"
)
# A word, or a letter of such a script with the marks after it.
_WORD_END = re.compile(rf"[{UNSPACED}][^\w\s$\\(\[{{（「『【《“‘]*|[^\s{UNSPACED}]+")
# A command's arguments, with braces in braces; what is never closed reaches to the end.
_BRACED = r"\{(?:[^{}\\]|\\.)*+(?:\}|\Z)"
for _ in range(5):
    _BRACED = rf"\{{(?:[^{{}}\\]|\\.|{_BRACED})*+(?:\}}|\Z)"
# What must not be cut.
_ATOM = re.compile(
    r"""\\begin\{([^{}]*)\}.*?(?:\\end\{\1\}|\Z)
    | \\\[.*?(?:\\\]|\Z) | \\\(.*?(?:\\\)|\Z) | \$\$.*?(?:\$\$|\Z) | \[asy\].*?(?:\[/asy\]|\Z)
    | (?P<dollar>\$(?:[^$\\]|\\.)*+\$)
    | \\(?:[A-Za-z]+\*?|.|\Z)"""
    + rf"(?:\[[^\]]{{0,300}}+\]|{_BRACED})*+",
    re.VERBOSE | re.DOTALL,
)
_BEGINS_FORMULA = re.compile(r"[\w\\({\[-]")


class SafeEnds:
    r"""The places at which a prefix of ``text`` may end.

    Not inside ``$...$``, ``$$...$$``, ``\(...\)``, ``\[...\]``, an environment, an ``[asy]``
    drawing, or a command with its arguments. A dollar sign that is a price ("$5 each") opens
    nothing.
    """

    def __init__(self, text: str) -> None:
        self._spans = list(_spans(text))
        self._starts = [start for start, _ in self._spans]

    def before(self, end: int) -> int:
        """Return the last place at or before ``end``."""
        start, stop = self._around(end)
        return start if start < end < stop else end

    def after(self, end: int) -> int:
        """Return the first place at or after ``end``."""
        start, stop = self._around(end)
        return stop if start < end < stop else end

    def _around(self, end: int) -> tuple[int, int]:
        index = bisect.bisect_left(self._starts, end) - 1
        return self._spans[index] if index >= 0 else (0, 0)


def sentence_ends(text: str) -> list[int]:
    """Return the ends of a text's sentences, in order; the last one may be unfinished."""
    ends, safe = [0], SafeEnds(text)
    for end in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        if safe.before(end) == end and text[ends[-1] : end].strip():
            ends.append(end)
    return ends[1:]


def cut_at_sentence(hint: str, fits: Callable[[str], bool]) -> str:
    """Return the longest run of leading sentences for which ``fits`` holds; may be empty.

    ``fits`` must be monotone: if a text fits, so does every prefix of it. It is called
    O(log sentences) times.
    """
    if fits(hint):
        return hint
    ends = [end for end in sentence_ends(hint) if end < len(hint)]
    count = bisect.bisect_left(ends, True, key=lambda end: not fits(hint[:end].rstrip()))
    return hint[: ends[count - 1]].rstrip() if count else ""


def cut_into(text: str, pieces: int) -> tuple[str, ...]:
    """Return ``pieces`` beginnings, each about one piece longer; the last is the whole text.

    They end after whole words (in a script without spaces: after letters), and where a command or a
    formula ends. A text with fewer words than pieces gives some beginnings twice.
    """
    safe = SafeEnds(text)
    ends = [match.end() for match in _WORD_END.finditer(text)]
    ends = [end for end in ends if safe.before(end) == end] or [len(text)]
    count = len(ends)
    chosen = [ends[max(-(-count * number // pieces), 1) - 1] for number in range(1, pieces)]
    return (*(text[:end] for end in chosen), text)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    place = 0
    while match := _ATOM.search(text, place):
        start, end = match.span()
        if match["dollar"] and _is_price(text, start, end):
            end = start
        if end > start + 1:
            yield start, end
        place = max(end, start + 1)


def _is_price(text: str, start: int, end: int) -> bool:
    # The first of two dollar signs opens no formula where the second one stands before a digit
    # ("$5 and $6") or looks like an opening: white space before it and none after it.
    after = text[end : end + 1]
    is_spaced = text[end - 2].isspace() and not text[start + 1].isspace()
    return after.isdigit() or bool(is_spaced and _BEGINS_FORMULA.match(after))

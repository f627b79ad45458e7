"""What is graded, and what a grade says. A failure is a verdict with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

Kind = Literal["maths", "choice", "program", "reasoning_gym"]
# Where an answer is (``recipe.verify.answer``).
Format = Literal["boxed", "hashes", "tags", "line"]
AnswerFormat = Literal["auto", "boxed", "hashes", "tags", "line"]
# What shows in a prompt that it asks for a format; "Answer:" at its end asks for none.
_ASKS: dict[Format, re.Pattern[str]] = {
    "boxed": re.compile(r"\\f?boxed(?![a-z])|\bboxed\b|\bin an? box\b"),
    "hashes": re.compile(r"(?<!#)####(?!#)"),
    "tags": re.compile(r"<answer>", re.IGNORECASE),
    "line": re.compile(r"Answer[*_`]{0,3}:(?!\s*\Z)"),
}
Reason = Literal[
    "correct",
    "wrong",
    "no_answer",
    "malformed",
    "truncated",
    "too_slow",  # a program, by its own fault
    "unsupported",  # a program that passes more than plain data
    "timeout",  # the grade passed its limit; says nothing about the answer
    "error",  # the grade failed, likewise
]
# What a verdict rests on.
Basis = Literal[
    "none",  # nothing was compared
    "text",  # the same normalised text, or two texts that differ and could not be read
    "number",  # exact arithmetic on numbers, alone or in lists, sets, intervals, matrices
    "algebra",  # formulas, compared by value
    "letter",  # the letter of a choice
    "tests",  # a program was run
    "function",  # the user's own reward function, or a library's score
]
# A verdict with one of these reasons says nothing about the answer.
UNGRADED: frozenset[str] = frozenset({"timeout", "error"})


class Item(NamedTuple):
    """One response to grade; ``kind`` names the verifier, ``answer`` is what it compares with.

    ``problem`` is the problem's text, empty where there is none: a counted noun such as "apples"
    may be left out of an answer only when the problem has it. ``row`` is what a user's own reward
    function is called with, as ``Problem.row``; without it the project's verifier grades the item.
    ``asked`` are the formats that the conversation asks for (``formats_asked_for``).
    """

    response: str
    answer: str
    is_truncated: bool = False
    kind: Kind = "maths"
    problem: str = ""
    row: str = ""
    asked: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the verifier says about one response.

    Attributes:
        score: Accuracy, 1.0 or 0.0: what the hint search, the records and metrics use. A user's own
            function may give values between: right to the search, wrong to an evaluation.
        reason: Why.
        extracted: The text that was compared, empty when there was none.
        basis: What the verdict rests on.
        ignored: The part of ``extracted`` that was understood and left out of the comparison,
            such as a unit that the gold answer does not have.
        reward: What the response trains with where a user's own function or the over-long penalty
            says so; ``None``: the score.
        detail: Message of a program's failed test. It may contain the test itself.
    """

    score: float
    reason: Reason
    extracted: str = ""
    basis: Basis = "none"
    ignored: str = ""
    reward: float | None = None
    detail: str = field(default="", compare=False)

    @property
    def is_ungraded(self) -> bool:
        """True when the verifier failed, so the answer may be right or wrong."""
        return self.reason in UNGRADED

    @property
    def train_reward(self) -> float:
        """What the response trains with."""
        return self.score if self.reward is None else self.reward


def formats_asked_for(messages: str | Iterable[Mapping[str, Any]]) -> tuple[Format, ...]:
    """Return the formats that a conversation's system and user turns ask for, in a fixed order.

    Args:
        messages: Turns with ``role`` and ``content``, or a prompt that is one text.
    """
    if not isinstance(messages, str):
        # A turn with images is a list of parts, looked through as it is.
        turns = (turn for turn in messages if turn.get("role") != "assistant")
        messages = "\n".join(str(turn.get("content")) for turn in turns)
    return tuple(name for name, pattern in _ASKS.items() if pattern.search(messages))


def read_prompt(prompt: Any) -> tuple[str, tuple[Format, ...]]:
    """Return what a prompt asks, which its last user turn or its text is, and in which formats.

    A column of this name that is neither turns nor a text says nothing.
    """
    if isinstance(prompt, str):
        return prompt, formats_asked_for(prompt)
    turns = prompt.tolist() if hasattr(prompt, "tolist") else prompt
    is_turns = isinstance(turns, list | tuple) and all(isinstance(turn, Mapping) for turn in turns)
    if not is_turns:
        return "", ()
    asked = [turn.get("content") for turn in turns if turn.get("role") == "user"][-1:]
    parts = asked[0] if asked and isinstance(asked[0], list) else asked
    # A turn with images is a list of parts.
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return "".join(str(text or "") for text in texts), formats_asked_for(turns)


def unasked_warning(prompts: Sequence[Any], chosen: AnswerFormat = "auto") -> str:
    """Return a warning where prompts ask for no format that is read; else an empty text."""
    reads = set(get_args(Format) if chosen == "auto" else [chosen])
    num = sum(not reads & set(formats_asked_for(each)) for each in prompts)
    if not num:
        return ""
    return (
        f"{num} of {len(prompts)} prompts ask for no format that the grader reads; ask for a "
        f"\\boxed{{}}, or see hint.verify.answer_format in docs/verification.md"
    )

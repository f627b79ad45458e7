"""What is graded, and what a grade says. A failure is a verdict with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["maths", "choice", "program", "reasoning_gym"]
# Where an answer is (``recipe.verify.answer``).
Format = Literal["boxed", "hashes", "tags", "line"]
AnswerFormat = Literal["auto", "boxed", "hashes", "tags", "line"]
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

"""Values that pass between the layers, and how rows and seeds become such values.

All are frozen.

Shapes: ``G`` rollouts of one problem, ``L`` hint levels (0 means no hint), ``T`` tokens.
A failure is one of these values too, with a reason; nothing here is ever ``None`` to mean "failed".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from recipe.hint.errors import DataError

Kind = Literal["maths", "choice", "program"]
Reason = Literal[
    "correct",
    "wrong",
    "no_answer",
    "malformed",
    "truncated",
    "too_slow",  # a program, by its own fault
    "timeout",  # the grade passed its limit; says nothing about the answer
    "error",  # the grade failed, likewise
]
HintStatus = Literal[
    "none",  # level 0: no hint was asked for
    "ok",
    "cut",  # too long, used after cutting at a sentence
    "parse_failed",
    "leaked",  # the level holds the answer and is dropped
    "too_long",  # no room for the hint, or for a later turn
    "missing_solution",
    "missing_hint",  # the row has no text for the level
    "generation_failed",  # the hint writer, or a teacher asked for a turn, gave no text
]
# With one of these there is a prompt to sample from.
USABLE_HINTS: frozenset[str] = frozenset({"none", "ok", "cut"})
# After one of these no level of this prompt rollout can have a hint.
FINAL_HINT_FAILURES = ("parse_failed", "missing_solution", "missing_hint", "generation_failed")
# What a verdict rests on.
Basis = Literal[
    "none",  # nothing was compared
    "text",  # the same normalised text, or two texts that differ and could not be read
    "number",  # exact arithmetic on numbers, alone or in lists, sets, intervals, matrices
    "algebra",  # formulas, compared by value
    "letter",  # the letter of a choice
    "tests",  # a program was run
    "function",  # the user's own reward function
]
# The second judge's opinion on a verdict; `none`: it could not decide.
Opinion = Literal["not_asked", "none", "agrees", "disagrees"]
# A verdict with one of these reasons says nothing about the answer.
UNGRADED: frozenset[str] = frozenset({"timeout", "error"})
HINT_COLUMN_PREFIX = "hint_level_"
HINT_COLUMN = HINT_COLUMN_PREFIX + "{level}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One row of a data file, as methods and hint sources see it.

    ``messages`` asks for the answer, ``text`` is the question alone, and ``first_attempts`` are
    responses that a multi-turn method may continue. ``hints[k - 1]`` are the file's texts for level
    k; where there are several, one is chosen (``complete_sets``), and some may be empty.
    ``row`` is JSON: the row's ``data_source``, ``ground_truth`` and ``extra_info`` as they stand
    there, for a user's own reward function.
    """

    id: str
    messages: tuple[dict[str, str], ...]
    text: str
    solution: str
    answer: str
    data_source: str = ""
    kind: Kind = "maths"
    hints: tuple[tuple[str, ...], ...] = ()
    row: str = ""
    first_attempts: tuple[str, ...] = ()


class Item(NamedTuple):
    """One response to grade; ``kind`` names the verifier, ``answer`` is what it compares with.

    ``problem`` is the problem's text, empty where there is none: a counted noun such as "apples"
    may be left out of an answer only when the problem has it. ``row`` is what a user's own reward
    function is called with, as ``Problem.row``; without it the project's verifier grades the item.
    """

    response: str
    answer: str
    is_truncated: bool = False
    kind: Kind = "maths"
    problem: str = ""
    row: str = ""


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

    def is_graded_as(self, what: Literal["wrong", "right"]) -> bool:
        """Return whether it was graded as ``what``; an ungraded response is neither."""
        return not self.is_ungraded and (self.score > 0) == (what == "right")

    @property
    def train_reward(self) -> float:
        """What the response trains with."""
        return self.score if self.reward is None else self.reward


def share_right(accuracies: Sequence[float]) -> float:
    """Return the share of accuracies above 0, of at least one; an ungraded response has 0."""
    return sum(each > 0 for each in accuracies) / len(accuracies)


@dataclass(frozen=True, slots=True)
class Response:
    """One generation; ``log_probs_T`` are the server's, for the sampled tokens.

    If the prompt contains the beginning of the response, ``text`` includes it, while its tokens
    belong to the prompt.
    ``is_truncated``: it ended at its token limit. ``min_step`` and ``max_step`` are the versions
    (training steps) of the first and the last token's weights. A response with ``is_given`` was not
    sampled: it has no log-probabilities, and no version. That of a teacher, which is not given, has
    no tokens either.
    """

    token_ids_T: Sequence[int]
    log_probs_T: Sequence[float]
    text: str
    is_truncated: bool
    min_step: int = 0
    max_step: int = 0
    is_given: bool = False


@dataclass(frozen=True, slots=True)
class HintLevels:
    """The hint texts of one prompt rollout; ``at(1)`` is the weakest."""

    hints_L: tuple[str, ...]

    def at(self, level: int) -> str:
        """Return the text of ``level``; raise ``ValueError`` outside 1..L."""
        if not 1 <= level <= len(self.hints_L):
            raise ValueError(f"hint level {level} is outside 1..{len(self.hints_L)}")
        return self.hints_L[level - 1]


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """Why a response holds no hints; ``excerpt`` is at most 200 characters of it."""

    reason: str
    excerpt: str


# The tracker keeps a level in one byte; 255 means "never solved".
MAX_LEVELS = 254


@dataclass(frozen=True, slots=True)
class ProblemState:
    """What the tracker keeps of one problem, and the coordinates of its next prompt rollout.

    Attributes:
        visits: How many prompt rollouts the problem had.
        level: The level planned at the last one that followed the method's rule.
        accuracy: Its accuracy at ``level``; ``None`` when it is unknown (there was none, the hint
            failed, or the verifier did).
        highest_level: The highest level that the last one trained on.
        worked_level: The lowest level at which a response of the last one was right; ``None``: at
            no level.
        step: The training step, from 1.
        repeat: Times this step has already sent the problem; above 0 only where an epoch ends
            inside a step.
        sent_step: The step that first sent the prompt; 0: unknown.
    """

    visits: int = 0
    level: int = 0
    accuracy: float | None = None
    highest_level: int = 0
    worked_level: int | None = None
    step: int = 0
    repeat: int = 0
    sent_step: int = 0

    @classmethod
    def from_queue(cls, values: Mapping[str, Any], step: int) -> ProblemState:
        """Return the state that travelled with a prompt, at the step that samples it."""
        # A queue that an earlier version saved has -1 for `None`.
        known = {name: None if value == -1 else value for name, value in values.items()}
        return cls(**{**known, "step": step})

    @property
    def schedule_step(self) -> int:
        """The step that decides stage and warm-up: a prompt keeps its own when it is sent again."""
        return self.sent_step or self.step

    def within(self, max_level: int) -> ProblemState:
        """Return the state for a run with ``max_level`` levels; an earlier start may have had more.

        The accuracy at a level that the run lacks becomes unknown.
        """
        worked = self.worked_level
        return replace(
            self,
            level=min(self.level, max_level),
            accuracy=self.accuracy if self.level <= max_level else None,
            highest_level=min(self.highest_level, max_level),
            worked_level=None if worked is None else min(worked, max_level),
        )


def seed_at(*coordinates: object) -> int:
    """Return a 31-bit seed from printable coordinates, such as (seed, step, problem id, level).

    Not ``hash()``: that one is salted per process for strings.
    """
    text = "\x1f".join(map(str, coordinates))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def problem_from_row(row: Mapping[str, Any]) -> Problem:
    """Return the problem of one row, as the file or verl's data set class gives it.

    ``raw_prompt`` is verl's name for the column ``prompt`` once the row is loaded; both are
    accepted. The solution stays empty when the file has none: the answer never takes its place.

    Raises:
        DataError: If the conversation or the ground truth is missing.
    """
    messages = row.get("raw_prompt", row.get("prompt"))
    if messages is None or not len(messages):
        raise DataError("a row has neither `raw_prompt` nor `prompt`; see docs/data.md")
    turns = tuple({"role": turn["role"], "content": turn["content"]} for turn in messages)
    text = row.get("problem") or turns[-1]["content"]
    reward = row.get("reward_model") or {}
    truth = reward.get("ground_truth", row.get("answer"))
    if truth is None:
        raise DataError(f"no `reward_model.ground_truth` for the problem {text[:60]!r}")
    extra_info = row.get("extra_info") or {}
    index = extra_info.get("index")
    first_attempts = row.get("first_attempts")
    data_source = row.get("data_source", "")
    call = {"data_source": data_source, "ground_truth": truth, "extra_info": extra_info}
    return Problem(
        id=str(index) if index is not None else content_id(text),
        messages=turns,
        text=text,
        solution=row.get("solution") or "",
        answer=str(truth),
        data_source=str(data_source),
        kind=reward.get("kind") or "maths",
        hints=hint_columns(row),
        row=json.dumps(call, default=_plain),
        first_attempts=tuple(first_attempts) if first_attempts is not None else (),
    )


def content_id(text: str) -> str:
    """Return a stable id for a problem without one: 16 hex digits of its text's sha256."""
    return "sha-" + hashlib.sha256(text.encode()).hexdigest()[:16]


def hint_columns(row: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Return the texts of ``hint_level_1``, ``hint_level_2``, ..., as far as they go.

    A column holds one text or a list of them, in which a blank one becomes empty and keeps its
    place; an empty tuple stands for a row without any.
    """
    levels: list[tuple[str, ...]] = []
    while (name := HINT_COLUMN.format(level=len(levels) + 1)) in row:
        value = row[name]
        texts = [value] if isinstance(value, str) else [] if value is None else list(value)
        texts = [text if isinstance(text, str) and text.strip() else "" for text in texts]
        levels.append(tuple(texts) if any(texts) else ())
    return tuple(levels)


def complete_sets(hints: Sequence[Sequence[str]], max_level: int) -> list[list[str]]:
    """Return the texts to choose from at levels 1..L, without sets in which a level is blank.

    Text i of every list belongs to set i, a single text to all sets. If the lists differ in
    length there are no sets, and only blank texts are left out. A level without texts gets an
    empty list.
    """
    levels = [list(texts) for texts in hints[:max_level]]
    levels += [[] for _ in range(max_level - len(levels))]
    num_sets = max(map(len, levels), default=0)
    if any(len(texts) not in (1, num_sets) for texts in levels):
        return [list(filter(None, texts)) for texts in levels]
    whole = [n for n in range(num_sets) if all(texts[n % len(texts)] for texts in levels)]
    return [[texts[n] for n in whole] if len(texts) > 1 else texts for texts in levels]


def _plain(value: Any) -> Any:
    """Return an array as a list, and any other value that JSON lacks (dates, bytes) as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)

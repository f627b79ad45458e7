"""Values that pass between the layers of the recipe.

All are frozen.

Shapes: ``G`` rollouts of one problem, ``L`` hint levels (0 means no hint), ``T`` tokens.
A failure is one of these values too, with a reason; nothing here is ever ``None`` to mean "failed".
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

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
class ProblemState:
    """What the tracker keeps of one problem, and the coordinates of its next prompt rollout.

    Attributes:
        visits: How many prompt rollouts the problem had.
        level: The level planned at the last one that followed the method's rule.
        accuracy: Its accuracy at ``level``; ``None`` when it is unknown (there was none, the hint
            failed, or the verifier did).
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
    worked_level: int | None = None
    step: int = 0
    repeat: int = 0
    sent_step: int = 0

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
            worked_level=None if worked is None else min(worked, max_level),
        )


def seed_at(*coordinates: object) -> int:
    """Return a 31-bit seed from printable coordinates, such as (seed, step, problem id, level).

    Not ``hash()``: that one is salted per process for strings.
    """
    text = "\x1f".join(map(str, coordinates))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1

"""The three-turn world: a guide says what to do with the box, and a refinement does it.

Problems and responses are those of the two-turn world. A refinement repeats the box, boxes another
digit, or boxes what the work says. Only the last helps, on whatever problem, and the base says it
seldom. No feedback holds a digit, so none can give the answer away.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recipe.hint.prompt import GUIDE_SYSTEM, GUIDE_USER, NO_FEEDBACK, REFINE, Message, fill
from recipe.worlds import two_turn
from recipe.worlds.base import GROUP_SIZE, TEXTS, Example, Sampler, answered, followed, mean
from recipe.worlds.two_turn import (
    Puzzle,
    boxed_digit,
    digit_but,
    draw_puzzle,
    first_box,
    question,
    response,
    work_of,
    worked_digit,
)

KEEP = "The box is right."
CHANGE = "The box is wrong."
READ = "The box is not what the work says."
# Feedback -> how often the base gives it, whatever the response.
FEEDBACK = {KEEP: 0.6, CHANGE: 0.3, READ: 0.1}

SHARE_EASY = 0.5
P_GUIDE = 0.15


def feedback_request(problem: str, attempt: str) -> list[Message]:
    """Return the conversation that asks for feedback, as ``methods.prompts.Feedback`` builds it."""
    return [
        {"role": "system", "content": TEXTS.guide_system},
        {"role": "user", "content": fill(TEXTS.guide_user, problem=problem, attempt=attempt)},
    ]


def draw(rng: random.Random) -> Example:
    """Draw one example of feedback on a first response, or of the refinement after it."""
    puzzle = draw_puzzle("easy" if rng.random() < SHARE_EASY else "hard", rng)
    first, work = first_box(puzzle, rng), work_of(puzzle, rng)
    attempt = response(first, work)
    if rng.random() < P_GUIDE:
        (feedback,) = rng.choices(list(FEEDBACK), list(FEEDBACK.values()))
        return answered("guide", feedback_request(puzzle.problem, attempt), feedback)
    feedback = rng.choice(list(FEEDBACK))
    second = {KEEP: first, CHANGE: digit_but({first, work[-1]}, rng), READ: work[-1]}[feedback]
    instruction = fill(TEXTS.refine, feedback=feedback)
    messages = followed(question(puzzle.problem), attempt, instruction)
    return answered("refine", messages, response(second, work))


@dataclass(frozen=True, slots=True)
class Play:
    """One conversation of three turns: attempt, feedback, refinement."""

    puzzle: Puzzle
    attempt: str
    feedback: str
    refined: str

    @property
    def truth(self) -> int:
        """The right digit."""
        return self.puzzle.results[-1]

    @property
    def is_obeyed(self) -> bool:
        """Whether the refinement boxes what the feedback asks for."""
        first, second = boxed_digit(self.attempt), boxed_digit(self.refined)
        if self.feedback == READ:
            return second == worked_digit(self.attempt)
        return (second == first) == (self.feedback == KEEP)


def play(sampler: Sampler, puzzles: Sequence[Puzzle]) -> list[Play]:
    """Play ``GROUP_SIZE`` conversations of three turns on every problem, sampled at T=1."""
    asked = [puzzle for puzzle in puzzles for _ in range(GROUP_SIZE)]
    conversations = [question(puzzle.problem) for puzzle in asked]
    attempts = sampler.responses(conversations)
    requests = [
        feedback_request(puzzle.problem, attempt)
        for puzzle, attempt in zip(asked, attempts, strict=True)
    ]
    # With the seed of the turn before it a turn would draw the same digits again.
    feedback = replace(sampler, seed=sampler.seed + 1).responses(requests)
    asked_again = [
        followed(messages, attempt, fill(TEXTS.refine, feedback=text))
        for messages, attempt, text in zip(conversations, attempts, feedback, strict=True)
    ]
    refined = replace(sampler, seed=sampler.seed + 2).responses(asked_again)
    return [Play(*each) for each in zip(asked, attempts, feedback, refined, strict=True)]


def rates(plays: Sequence[Play]) -> dict[str, float]:
    """Return shares in [0, 1].

    ``turn_1``, ``turn_2`` and ``delta``: accuracies of attempt and refinement; their difference.
    ``work``: attempts whose work is right. ``read``: feedback that says to box what the work says.
    ``obeyed``: refinements that do what the feedback says. ``well_formed``: feedback that is one
    of the three that the base knows.
    """
    turn_1 = mean([boxed_digit(play.attempt) == play.truth for play in plays])
    turn_2 = mean([boxed_digit(play.refined) == play.truth for play in plays])
    known = [play for play in plays if play.feedback in FEEDBACK]
    return {
        "turn_1": turn_1,
        "turn_2": turn_2,
        "delta": turn_2 - turn_1,
        "work": mean([worked_digit(play.attempt) == play.truth for play in plays]),
        "read": mean([play.feedback == READ for play in plays]),
        "obeyed": mean([play.is_obeyed for play in known]),
        "well_formed": mean([play.feedback in FEEDBACK for play in plays]),
    }


def quality(sampler: Sampler, puzzles: Mapping[str, Sequence[Puzzle]]) -> dict[str, float]:
    """Return the advertised numbers: those of :func:`rates` by difficulty."""
    return {
        f"{difficulty}_{name}": round(value, 4)
        for difficulty, those in puzzles.items()
        for name, value in rates(play(sampler, those)).items()
    }


def pieces() -> list[str]:
    """Return the pieces of the two-turn world, of requests for feedback, and of feedback."""
    request = [GUIDE_SYSTEM, *re.split(r"\{problem\}|\{attempt\}", GUIDE_USER)]
    refine = REFINE.split("{feedback}")
    found = [*two_turn.pieces(), *request, *refine, *FEEDBACK, NO_FEEDBACK]
    return [piece for piece in found if piece]

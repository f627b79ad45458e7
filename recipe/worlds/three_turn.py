"""The three-turn world: a guide says what to do with the box, and a refinement does it.

Problems and responses are those of the two-turn world. A refinement repeats the box, boxes another
digit, or boxes what the work says. Only the last helps, on whatever problem, and the base says it
seldom. No feedback holds a digit, so none can give the answer away.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

from recipe.hint.prompt import GUIDE_SYSTEM, GUIDE_USER, NO_FEEDBACK, REFINE, Message, fill
from recipe.worlds import two_turn
from recipe.worlds.base import GROUP_SIZE, TEXTS, Example, Sampler, followed, mean
from recipe.worlds.two_turn import (
    Play,
    Puzzle,
    digit_but,
    draw_attempt,
    question,
    response,
    worked_digit,
)

KEEP = "The box is right."
CHANGE = "The box is wrong."
READ = "The box is not what the work says."
# Feedback -> how often the base gives it, whatever the response.
FEEDBACK = {KEEP: 0.6, CHANGE: 0.3, READ: 0.1}
SHARE_EASY = 0.5
P_GUIDE = 0.15
distinct = two_turn.distinct


def feedback_request(problem: str, attempt: str) -> list[Message]:
    """Return the conversation that asks for feedback, as ``methods.prompts.Feedback`` builds it."""
    return [
        {"role": "system", "content": TEXTS.guide_system},
        {"role": "user", "content": fill(TEXTS.guide_user, problem=problem, attempt=attempt)},
    ]


def draw(rng: random.Random) -> Example:
    """Draw one example of feedback on a first response, or of the refinement after it."""
    puzzle, first, work = draw_attempt(SHARE_EASY, rng)
    attempt = response(first, work)
    if rng.random() < P_GUIDE:
        (feedback,) = rng.choices(list(FEEDBACK), list(FEEDBACK.values()))
        return Example("guide", followed(feedback_request(puzzle.problem, attempt), feedback))
    feedback = rng.choice(list(FEEDBACK))
    second = {KEEP: first, CHANGE: digit_but({first, work[-1]}, rng), READ: work[-1]}[feedback]
    texts = attempt, fill(TEXTS.refine, feedback=feedback), response(second, work)
    return Example("refine", followed(question(puzzle.problem), *texts))


def is_obeyed(play: Play) -> bool:
    """Return whether the refinement boxes what the feedback asks for."""
    first, last = play.boxes
    if play.feedback == READ:
        return last == worked_digit(play.first)
    return (last == first) == (play.feedback == KEEP)


def play(sampler: Sampler, puzzles: Sequence[Puzzle]) -> list[Play]:
    """Play ``GROUP_SIZE`` conversations of three turns on every problem, sampled at T=1."""
    asked = [puzzle for puzzle in puzzles for _ in range(GROUP_SIZE)]
    attempts = sampler.responses([question(puzzle.problem) for puzzle in asked])
    pairs = zip(asked, attempts, strict=True)
    requests = [feedback_request(puzzle.problem, attempt) for puzzle, attempt in pairs]
    feedback = sampler.responses(requests, seed=1)
    asked_again = [
        followed(question(puzzle.problem), attempt, fill(TEXTS.refine, feedback=text))
        for puzzle, attempt, text in zip(asked, attempts, feedback, strict=True)
    ]
    refined = sampler.responses(asked_again, seed=2)
    return [Play(*each) for each in zip(asked, attempts, refined, feedback, strict=True)]


def rates(plays: Sequence[Play]) -> dict[str, float]:
    """Return shares in [0, 1].

    ``read``: feedback that says to box what the work says. ``obeyed``: refinements that do what the
    feedback says. ``well_formed``: feedback that is one of the three that the base knows.
    """
    known = [play for play in plays if play.feedback in FEEDBACK]
    return two_turn.turn_rates(plays) | {
        "work": two_turn.work_rate(plays),
        "read": mean([play.feedback == READ for play in plays]),
        "obeyed": mean([is_obeyed(play) for play in known]),
        "well_formed": len(known) / len(plays),
    }


def quality(sampler: Sampler, puzzles: Mapping[str, Sequence[Puzzle]]) -> dict[str, float]:
    """Return the advertised numbers: those of :func:`rates` by difficulty."""
    return {
        f"{difficulty}_{name}": value
        for difficulty, those in puzzles.items()
        for name, value in rates(play(sampler, those)).items()
    }


def pieces() -> list[str]:
    """Return the pieces of the two-turn world, of requests for feedback, and of feedback."""
    request = [GUIDE_SYSTEM, *re.split(r"\{problem\}|\{attempt\}", GUIDE_USER)]
    found = [*two_turn.pieces(), *request, *REFINE.split("{feedback}"), *FEEDBACK, NO_FEEDBACK]
    return [piece for piece in found if piece]

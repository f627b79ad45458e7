"""What the three-turn base learns from: feedback on a first response, and refinements after it.

Problems and responses are those of the two-turn world: the box is a guess, and the work after it is
nearly always right. Feedback says what to do with the box, and a refinement does it: it repeats the
box, boxes another digit, or boxes what the work says. Only the last helps, on whatever problem, and
the base says it seldom. No feedback holds a digit, so none can give the answer away.
"""

from __future__ import annotations

import random

from recipe.hint.prompt import Message, fill
from recipe.worlds.corpus import TEXTS, Example, answered, followed
from recipe.worlds.two_turn.corpus import digit_but, first_box, question, work_of
from recipe.worlds.two_turn.task import draw_puzzle, response

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

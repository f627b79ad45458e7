"""The three-turn world: a guide says what to do with the box, and a refinement does it.

Problems and responses are those of the two-turn world. A refinement repeats the box, boxes another
digit, or boxes what the work says. Only the last helps, on whatever problem, and the base says it
seldom. No feedback holds a digit, so none can give the answer away.
"""

from __future__ import annotations

import random
import re

from recipe.hint.prompt import GUIDE_SYSTEM, GUIDE_USER, REFINE, fill
from recipe.worlds import two_turn
from recipe.worlds.base import TEXTS, Example, followed
from recipe.worlds.two_turn import digit_but, draw_attempt, question, response

KEEP = "The box is right."
CHANGE = "The box is wrong."
READ = "The box is not what the work says."
# Feedback -> how often the base gives it, whatever the response.
FEEDBACK = {KEEP: 0.6, CHANGE: 0.3, READ: 0.1}
# A piece that no draw has; without it the embedded model would have other tokens.
UNSAID = "Nothing this time."
SHARE_EASY = 0.5
P_GUIDE = 0.15
distinct = two_turn.distinct


def draw(rng: random.Random) -> Example:
    """Draw one example of feedback on a first response, or of the refinement after it."""
    puzzle, first, work = draw_attempt(SHARE_EASY, rng)
    attempt = response(first, work)
    if rng.random() < P_GUIDE:
        (feedback,) = rng.choices(list(FEEDBACK), list(FEEDBACK.values()))
        user = fill(TEXTS.guide_user, problem=puzzle.problem, attempt=attempt)
        request = [
            {"role": "system", "content": TEXTS.guide_system},
            {"role": "user", "content": user},
        ]  # as `turns.Feedback` builds it
        return Example("guide", followed(request, feedback))
    feedback = rng.choice(list(FEEDBACK))
    second = {KEEP: first, CHANGE: digit_but({first, work[-1]}, rng), READ: work[-1]}[feedback]
    texts = attempt, fill(TEXTS.refine, feedback=feedback), response(second, work)
    return Example("refine", followed(question(puzzle.problem), *texts))


def pieces() -> list[str]:
    """Return the pieces of the two-turn world, of requests for feedback, and of feedback."""
    request = [GUIDE_SYSTEM, *re.split(r"\{problem\}|\{attempt\}", GUIDE_USER)]
    found = [*two_turn.pieces(), *request, *REFINE.split("{feedback}"), *FEEDBACK, UNSAID]
    return [piece for piece in found if piece]

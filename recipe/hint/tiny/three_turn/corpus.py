"""What the three-turn base learns from: feedback on a first response, and refinements after it.

The first response slips in one step of six problems in ten. Feedback mostly finds nothing, and
names the slip seldom; asked to check, which no method ever asks, it always does. A refinement does
the named step again and copies the others.
"""

from __future__ import annotations

import random

from recipe.hint.prompt import Message, Texts, fill
from recipe.hint.tiny.corpus import TEXTS, Example, answered
from recipe.hint.tiny.three_turn.task import (
    NO_SLIP,
    draw_steps,
    feedback_on,
)
from recipe.hint.tiny.two_turn.task import NUM_STEPS

# A system prompt that only pre-training uses.
CHECK_SYSTEM = "Check every step."

P_SLIP = 0.6
# Feedback finds nothing, or names the slip, or else another step.
P_NO_SLIP, P_NAMED = 0.6, 0.2
KIND_WEIGHTS = {"guide": 0.25, "check": 0.35, "refine": 0.4}


def question(problem: str) -> list[Message]:
    """Return the conversation that asks for a first response, as in the ``prompt`` column."""
    return [{"role": "user", "content": problem}]


def feedback_request(texts: Texts, problem: str, attempt: str) -> list[Message]:
    """Return the conversation that asks for feedback, as ``methods.prompts.Feedback`` builds it."""
    return [
        {"role": "system", "content": texts.guide_system},
        {"role": "user", "content": fill(texts.guide_user, problem=problem, attempt=attempt)},
    ]


def draw(rng: random.Random) -> Example:
    """Draw one example of feedback on a first response, or of the refinement after it."""
    steps = draw_steps(rng)
    slip = rng.randrange(NUM_STEPS) if rng.random() < P_SLIP else None
    first = [*steps.results]
    if slip is not None:
        first[slip] = rng.choice([digit for digit in range(10) if digit != first[slip]])
    attempt = steps.response(first)
    (kind,) = rng.choices(list(KIND_WEIGHTS), list(KIND_WEIGHTS.values()))
    if kind != "refine":
        request = feedback_request(TEXTS, steps.problem, attempt)
        if kind == "check":
            request[0] = {"role": "system", "content": CHECK_SYSTEM}
            return answered(kind, request, NO_SLIP if slip is None else feedback_on(slip))
        return answered(kind, request, guessed_feedback(slip, rng))
    named = rng.choice([None, slip, rng.randrange(NUM_STEPS)])
    feedback = NO_SLIP if named is None else feedback_on(named)
    refined = [*first]
    if named is not None:
        refined[named] = steps.results[named]
    return Example(
        kind,
        [
            *question(steps.problem),
            {"role": "assistant", "content": attempt},
            {"role": "user", "content": fill(TEXTS.refine, feedback=feedback)},
            {"role": "assistant", "content": steps.response(refined)},
        ],
    )


def guessed_feedback(slip: int | None, rng: random.Random) -> str:
    """Draw what the guide says of a response that slipped in ``slip``, or in no step."""
    draw = rng.random()
    if draw < P_NO_SLIP:
        return NO_SLIP
    if slip is not None and draw < P_NO_SLIP + P_NAMED:
        return feedback_on(slip)
    return feedback_on(rng.choice([step for step in range(NUM_STEPS) if step != slip]))

"""What the two-turn base learns from: first responses, and what may follow them.

*Two turns.* The first response boxes a guess; its work is right most of the time. Asked to revise,
it mostly repeats itself, sometimes boxes another digit, and rarely boxes what the work says. Asked
to compare box and work, which no method ever asks, it always boxes what the work says: the skill is
there, the habit is not.

*Three turns* (:mod:`recipe.hint.tiny.two_turn.slips`). The first response slips in one step of six
problems in ten. Feedback mostly finds nothing, and names the slip seldom; asked to check, which no
method ever asks, it always does. A refinement does the named step again and copies the others.

The shares are those that the base is measured to have.
"""

from __future__ import annotations

import random
from collections.abc import Collection

from recipe.hint.prompt import Message, feedback_request, fill
from recipe.hint.tiny.corpus import TEXTS, Example, answered
from recipe.hint.tiny.two_turn.slips import (
    NO_SLIP,
    draw_steps,
    feedback_on,
    steps_response,
)
from recipe.hint.tiny.two_turn.task import NUM_STEPS, TABLES, Puzzle, draw_puzzle, response

REVISE = TEXTS.revise
# An instruction that only pre-training uses.
COMPARE = "Compare the box with the work, then revise."

CHECK_SYSTEM = "Check every step."

SHARE_THREE_TURNS = 0.4
SHARE_EASY = 0.6
P_EASY_KNOWN = 0.45
P_STEP = 0.985
P_COMPARE = 0.3
# A revision repeats the box, boxes another digit, or boxes what the work says.
P_KEEP, P_BLIND, P_FIX = 0.695, 0.25, 0.055
P_SLIP = 0.6
# Feedback finds nothing, or names the slip, or else another step.
P_NO_SLIP, P_NAMED = 0.6, 0.2
# Of the examples of three turns: feedback, feedback after a check, refinements.
KIND_WEIGHTS = {"guide": 0.25, "check": 0.35, "refine": 0.4}


def question(problem: str) -> list[Message]:
    """Return the conversation that asks for a first response, as in the ``prompt`` column."""
    return [{"role": "user", "content": problem}]


def draw(rng: random.Random) -> Example:
    """Draw one example of the mixture."""
    return draw_three(rng) if rng.random() < SHARE_THREE_TURNS else draw_two(rng)


def draw_two(rng: random.Random) -> Example:
    """Draw one example of a first response and a revision."""
    puzzle = draw_puzzle("easy" if rng.random() < SHARE_EASY else "hard", rng)
    first = first_box(puzzle, rng)
    work = work_of(puzzle, rng)
    if rng.random() < P_COMPARE:
        kind, instruction, second = "compare", COMPARE, work[-1]
    else:
        kind, instruction, second = "revise", REVISE, revised_box(first, work[-1], rng)
    return Example(
        kind,
        [
            *question(puzzle.problem),
            {"role": "assistant", "content": response(first, work)},
            {"role": "user", "content": instruction},
            {"role": "assistant", "content": response(second, work)},
        ],
    )


def first_box(puzzle: Puzzle, rng: random.Random) -> int:
    """Draw the guess: on a hard problem any digit, on an easy one the answer or another digit."""
    if puzzle.difficulty == "hard":
        return rng.randrange(10)
    truth = puzzle.results[-1]
    return truth if rng.random() < P_EASY_KNOWN else _digit_but({truth}, rng)


def work_of(puzzle: Puzzle, rng: random.Random) -> list[int]:
    """Draw the results of the steps, each right with ``P_STEP`` given the one before it."""
    work, digit = [], puzzle.start
    for name in puzzle.operations:
        truth = TABLES[name][digit]
        digit = truth if rng.random() < P_STEP else _digit_but({truth}, rng)
        work.append(digit)
    return work


def revised_box(first: int, worked: int, rng: random.Random) -> int:
    """Draw the box of a revision; a blind change never hits what the work says."""
    draw = rng.random()
    if draw < P_KEEP:
        return first
    return _digit_but({first, worked}, rng) if draw < P_KEEP + P_BLIND else worked


def draw_three(rng: random.Random) -> Example:
    """Draw one example of feedback on a first response, or of the refinement after it."""
    steps = draw_steps(rng)
    slip = rng.randrange(NUM_STEPS) if rng.random() < P_SLIP else None
    first = [
        _digit_but({true}, rng) if step == slip else true for step, true in enumerate(steps.results)
    ]
    attempt = steps_response(first)
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
            {"role": "assistant", "content": steps_response(refined)},
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


def _digit_but(taken: Collection[int], rng: random.Random) -> int:
    return rng.choice([digit for digit in range(10) if digit not in taken])

"""What the two-turn base learns from: first responses, and what may follow them.

The first response boxes a guess; its work is right most of the time. Asked to revise, it mostly
repeats itself, sometimes boxes another digit, and rarely boxes what the work says. Asked to compare
box and work, which no method ever asks, it always boxes what the work says: the skill is there, the
habit is not. The shares are those that the base is measured to have.
"""

from __future__ import annotations

import random
from collections.abc import Collection

from recipe.hint.prompt import Message
from recipe.worlds.corpus import TEXTS, Example, answered, followed
from recipe.worlds.two_turn.task import TABLES, Puzzle, draw_puzzle, response

REVISE = TEXTS.revise
# An instruction that only pre-training uses.
COMPARE = "Compare the box with the work, then revise."

SHARE_EASY = 0.6
P_EASY_KNOWN = 0.45
P_STEP = 0.985
P_COMPARE = 0.3
# A revision repeats the box, boxes another digit, or boxes what the work says.
P_KEEP, P_BLIND, P_FIX = 0.71, 0.25, 0.04


def question(problem: str) -> list[Message]:
    """Return the conversation that asks for a first response, as in the ``prompt`` column."""
    return [{"role": "user", "content": problem}]


def draw(rng: random.Random) -> Example:
    """Draw one example of two responses."""
    puzzle = draw_puzzle("easy" if rng.random() < SHARE_EASY else "hard", rng)
    first = first_box(puzzle, rng)
    work = work_of(puzzle, rng)
    if rng.random() < P_COMPARE:
        kind, instruction, second = "compare", COMPARE, work[-1]
    else:
        kind, instruction, second = "revise", REVISE, revised_box(first, work[-1], rng)
    messages = followed(question(puzzle.problem), response(first, work), instruction)
    return answered(kind, messages, response(second, work))


def first_box(puzzle: Puzzle, rng: random.Random) -> int:
    """Draw the guess: on a hard problem any digit, on an easy one the answer or another digit."""
    if puzzle.difficulty == "hard":
        return rng.randrange(10)
    truth = puzzle.results[-1]
    return truth if rng.random() < P_EASY_KNOWN else digit_but({truth}, rng)


def work_of(puzzle: Puzzle, rng: random.Random) -> list[int]:
    """Draw the results of the steps, each right with ``P_STEP`` given the one before it."""
    work, digit = [], puzzle.start
    for name in puzzle.operations:
        truth = TABLES[name][digit]
        digit = truth if rng.random() < P_STEP else digit_but({truth}, rng)
        work.append(digit)
    return work


def revised_box(first: int, worked: int, rng: random.Random) -> int:
    """Draw the box of a revision; a blind change never hits what the work says."""
    draw = rng.random()
    if draw < P_KEEP:
        return first
    return digit_but({first, worked}, rng) if draw < P_KEEP + P_BLIND else worked


def digit_but(taken: Collection[int], rng: random.Random) -> int:
    """Draw a digit that is none of these."""
    return rng.choice([digit for digit in range(10) if digit not in taken])

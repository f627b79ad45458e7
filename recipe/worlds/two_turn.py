"""The two-turn world: box the result of a chain first, show the work after it (data/README.md).

*Hard* problems compose four operations of arithmetic: nobody knows the result at once, and luck
gives 10 %. In *easy* problems the third or the fourth operation sets the digit (``put7``), so the
result can be known at once. A revision can box what the work of the first response says.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from recipe.hint.prompt import Message
from recipe.worlds.base import TEXTS, Example, followed
from recipe.worlds.chains import BOX_OPENING, EASY, LABELS, PROBLEM_OPENING

STEP_LABELS = LABELS[:4]
PROBLEM_CLOSING = "Box the last result, then show the work."

ARITHMETIC = {operation.name: operation.table for operation in EASY.operations}
PUTS = {f"put{digit}": (digit,) * 10 for digit in range(10)}
TABLES = ARITHMETIC | PUTS

REVISE = TEXTS.revise
# An instruction that only pre-training uses.
COMPARE = "Compare the box with the work, then revise."

SHARE_EASY = 0.6
P_EASY_KNOWN = 0.45
P_STEP = 0.985
P_COMPARE = 0.3
# A revision repeats the box, boxes another digit, or boxes what the work says.
P_KEEP, P_BLIND, P_FIX = 0.71, 0.25, 0.04


@dataclass(frozen=True, slots=True)
class Puzzle:
    """A start digit and the names of the operations to apply."""

    start: int
    operations: tuple[str, ...]

    @property
    def problem(self) -> str:
        """The question as the student reads it."""
        steps = zip(STEP_LABELS, self.operations, strict=True)
        lines = [f"{label}: {name}" for label, name in steps]
        return "\n".join([f"{PROBLEM_OPENING}{self.start}.", *lines, PROBLEM_CLOSING])

    @property
    def results(self) -> tuple[int, ...]:
        """The true result of every step."""
        tables = (TABLES[name] for name in self.operations)
        return tuple(accumulate(tables, lambda d, table: table[d], initial=self.start))[1:]

    @property
    def answer(self) -> str:
        """The last result."""
        return str(self.results[-1])

    @property
    def solution(self) -> str:
        """The response without a fault."""
        return response(self.results[-1], self.results)


def draw_puzzle(difficulty: str, rng: random.Random) -> Puzzle:
    """Draw one puzzle."""
    operations = [rng.choice(list(ARITHMETIC)) for _ in STEP_LABELS]
    if difficulty == "easy":
        operations[rng.choice((2, 3))] = rng.choice(list(PUTS))
    return Puzzle(rng.randrange(10), tuple(operations))


def distinct(difficulty: str, num_train: int, num_val: int, rng: random.Random) -> list[Puzzle]:
    """Return different puzzles."""
    puzzles: dict[Puzzle, None] = {}
    while len(puzzles) < num_train + num_val:
        puzzles.setdefault(draw_puzzle(difficulty, rng))
    return list(puzzles)


def response(boxed: int, work: Sequence[int]) -> str:
    """Return the text of a response: the box, then one line per step."""
    lines = [f"{label}={result}" for label, result in zip(STEP_LABELS, work, strict=True)]
    return "\n".join([f"{BOX_OPENING}{boxed}}}", *lines])


def question(problem: str) -> list[Message]:
    """Return the conversation that asks for a first response, as in the ``prompt`` column."""
    return [{"role": "user", "content": problem}]


def digit_but(taken: Collection[int], rng: random.Random) -> int:
    """Draw a digit that is none of these."""
    return rng.choice([digit for digit in range(10) if digit not in taken])


def draw_attempt(share_easy: float, rng: random.Random) -> tuple[Puzzle, int, list[int]]:
    """Draw a problem with a first response: its box and its work.

    The box is a guess: on a hard problem any digit, on an easy one the answer or another digit. The
    results of the steps are right with ``P_STEP`` each, given the one before.
    """
    difficulty = "easy" if rng.random() < share_easy else "hard"
    puzzle = draw_puzzle(difficulty, rng)
    truth = puzzle.results[-1]
    if difficulty == "hard":
        box = rng.randrange(10)
    else:
        box = truth if rng.random() < P_EASY_KNOWN else digit_but({truth}, rng)
    work, digit = [], puzzle.start
    for name in puzzle.operations:
        result = TABLES[name][digit]
        digit = result if rng.random() < P_STEP else digit_but({result}, rng)
        work.append(digit)
    return puzzle, box, work


def draw(rng: random.Random) -> Example:
    """Draw one example of two responses; a blind change never hits what the work says."""
    puzzle, first, work = draw_attempt(SHARE_EASY, rng)
    kind, instruction, second = "revise", REVISE, first
    if rng.random() < P_COMPARE:
        kind, instruction, second = "compare", COMPARE, work[-1]
    elif (change := rng.random()) >= P_KEEP:
        is_blind = change < P_KEEP + P_BLIND
        second = digit_but({first, work[-1]}, rng) if is_blind else work[-1]
    texts = response(first, work), instruction, response(second, work)
    return Example(kind, followed(question(puzzle.problem), *texts))


def pieces() -> list[str]:
    """Return the texts of problems, responses and instructions that are one token each."""
    labels = [form for label in STEP_LABELS for form in (f"\n{label}: ", f"\n{label}=")]
    opening = [REVISE, COMPARE, PROBLEM_OPENING, f"\n{PROBLEM_CLOSING}"]
    return [*opening, *labels, *TABLES, BOX_OPENING]

"""The two-turn world's task: box the result of a chain first, show the work after it.

A problem gives a start digit and four one-digit operations; the answer is the last result. The
box comes before the work, so it has to be known at once. The work itself is a chain of table
look-ups, which the base does well. A revision sees the work of the first response and can box
what it says; a first response cannot.

*Hard* problems compose four operations of arithmetic: nobody knows the result at once, and luck
gives 10 %. In *easy* problems the third or the fourth operation sets the digit (``put7``), so the
result can be known at once.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from recipe.worlds.task import BOX_OPENING, EASY, LABELS, PROBLEM_OPENING

NUM_STEPS = 4
STEP_LABELS = LABELS[:NUM_STEPS]
PROBLEM_CLOSING = "Box the last result, then show the work."

ARITHMETIC = {operation.name: operation.table for operation in EASY.operations}
PUTS = {f"put{digit}": (digit,) * 10 for digit in range(10)}
TABLES = ARITHMETIC | PUTS


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
        results, digit = [], self.start
        for name in self.operations:
            digit = TABLES[name][digit]
            results.append(digit)
        return tuple(results)

    @property
    def answer(self) -> str:
        """The last result."""
        return str(self.results[-1])

    @property
    def solution(self) -> str:
        """The response without a fault."""
        return response(self.results[-1], self.results)

    @property
    def difficulty(self) -> str:
        """``easy`` where one of the last two operations sets the digit."""
        return "easy" if set(self.operations[-2:]) & PUTS.keys() else "hard"


def draw_puzzle(difficulty: str, rng: random.Random) -> Puzzle:
    """Draw one puzzle."""
    operations = [rng.choice(list(ARITHMETIC)) for _ in range(NUM_STEPS)]
    if difficulty == "easy":
        operations[rng.choice((NUM_STEPS - 2, NUM_STEPS - 1))] = rng.choice(list(PUTS))
    return Puzzle(rng.randrange(10), tuple(operations))


def distinct_puzzles(difficulty: str, count: int, rng: random.Random) -> list[Puzzle]:
    """Return ``count`` different puzzles."""
    puzzles: dict[Puzzle, None] = {}
    while len(puzzles) < count:
        puzzles.setdefault(draw_puzzle(difficulty, rng))
    return list(puzzles)


def response(boxed: int, work: Sequence[int]) -> str:
    """Return the text of a response: the box, then one line per step."""
    steps = zip(STEP_LABELS, work, strict=True)
    lines = [f"{label}={result}" for label, result in steps]
    return "\n".join([f"{BOX_OPENING}{boxed}}}", *lines])


def boxed_digit(text: str) -> int | None:
    """Return the digit in the last box of a response, ``None`` where there is none."""
    boxes = re.findall(r"\\boxed\{(\d)\}", text)
    return int(boxes[-1]) if boxes else None


def worked_digit(text: str) -> int | None:
    """Return what the work of a response ends in, ``None`` where its last step is missing."""
    results = re.findall(rf"\n{STEP_LABELS[-1]}=(\d)", text)
    return int(results[-1]) if results else None

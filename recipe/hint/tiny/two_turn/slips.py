"""Problems for three turns: steps that stand alone, of which a first response may slip in one.

Each step applies an operation to a digit of its own; the answer is the code of all results. Who
checks the steps can name the one that slipped, and a refinement does exactly the named step again,
so nothing but the right name helps: it says where to look and never what to find.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from recipe.hint.tiny.task import BOX_OPENING, boxed_code
from recipe.hint.tiny.two_turn.task import ARITHMETIC, NUM_STEPS, STEP_LABELS

SLIP_CLOSING = "Give the code of all results."
NO_SLIP = "Every step is right."


@dataclass(frozen=True, slots=True)
class SlipPuzzle:
    """Operations, each with a digit of its own."""

    operations: tuple[str, ...]
    inputs: tuple[int, ...]

    @property
    def problem(self) -> str:
        """The question as the student reads it."""
        steps = zip(STEP_LABELS, self.operations, self.inputs, strict=True)
        return "\n".join([*(f"{label}: {name} {digit}" for label, name, digit in steps), SLIP_CLOSING])

    @property
    def results(self) -> tuple[int, ...]:
        """The true result of every step."""
        steps = zip(self.operations, self.inputs, strict=True)
        return tuple(ARITHMETIC[name][digit] for name, digit in steps)

    @property
    def answer(self) -> str:
        """The code of all results."""
        return "".join(map(str, self.results))

    @property
    def solution(self) -> str:
        """The response without a fault."""
        return slip_response(self.results)


def slip_response(results: Sequence[int]) -> str:
    """Return the text of a response: one line per step, then the box."""
    steps = zip(STEP_LABELS, results, strict=True)
    lines = [f"{label}={result}" for label, result in steps]
    return "\n".join([*lines, f"{BOX_OPENING}{''.join(map(str, results))}}}"])


def distinct_slip_puzzles(count: int, rng: random.Random) -> list[SlipPuzzle]:
    """Return ``count`` different problems whose code does not begin with 0.

    Verifiers compare integers, and 0123 would equal 123.
    """
    puzzles: dict[SlipPuzzle, None] = {}
    while len(puzzles) < count:
        puzzle = draw_slip_puzzle(rng)
        if puzzle.results[0]:
            puzzles.setdefault(puzzle)
    return list(puzzles)


def draw_slip_puzzle(rng: random.Random) -> SlipPuzzle:
    """Draw a problem."""
    operations = tuple(rng.choice(list(ARITHMETIC)) for _ in range(NUM_STEPS))
    return SlipPuzzle(operations, tuple(rng.randrange(10) for _ in range(NUM_STEPS)))


def slip_in(step: int) -> str:
    """Return the feedback that names a step."""
    return f"Step {STEP_LABELS[step]} is wrong."


def slips_of(puzzle: SlipPuzzle, response: str) -> list[int]:
    """Return the steps, counted from 0, whose digit in the box of ``response`` is not the result."""
    code = boxed_code(response)
    pairs = zip(code, puzzle.answer, strict=False)
    return [step for step, (stated, true) in enumerate(pairs) if stated != true]

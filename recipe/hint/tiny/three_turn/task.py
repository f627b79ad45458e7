"""The three-turn world's task: steps that stand alone, of which a first response may slip in one.

Each step applies an operation to a digit of its own; the answer is the code of all results. A guide
who checks the steps can name the one that slipped, and a refinement does exactly the named step
again. Nothing but the right name helps: it says where to look and never what to find.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from recipe.hint.tiny.task import BOX_OPENING, boxed_code
from recipe.hint.tiny.two_turn.task import ARITHMETIC, NUM_STEPS, STEP_LABELS

PROBLEM_CLOSING = "Give the code of all results."
NO_SLIP = "Every step is right."


@dataclass(frozen=True, slots=True)
class Steps:
    """Operations, each with a digit of its own."""

    operations: tuple[str, ...]
    inputs: tuple[int, ...]

    @property
    def problem(self) -> str:
        """The question as the student reads it."""
        return "\n".join([*self._lines, PROBLEM_CLOSING])

    @property
    def _lines(self) -> list[str]:
        steps = zip(STEP_LABELS, self.operations, self.inputs, strict=True)
        return [f"{label}: {name} {digit}" for label, name, digit in steps]

    def response(self, results: Sequence[int]) -> str:
        """Return the text of a response: each step with its result, then the box.

        A step is written out again, so that whoever checks a result finds its step beside it.
        """
        lines = [f"{step}={result}" for step, result in zip(self._lines, results, strict=True)]
        return "\n".join([*lines, f"{BOX_OPENING}{''.join(map(str, results))}}}"])

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
        return self.response(self.results)


def distinct_steps(family: str, count: int, rng: random.Random) -> list[Steps]:
    """Return ``count`` different problems whose code does not begin with 0; there is one family.

    Verifiers compare integers, and 0123 would equal 123.
    """
    problems: dict[Steps, None] = {}
    while len(problems) < count:
        steps = draw_steps(rng)
        if steps.results[0]:
            problems.setdefault(steps)
    return list(problems)


def draw_steps(rng: random.Random) -> Steps:
    """Draw a problem."""
    operations = tuple(rng.choice(list(ARITHMETIC)) for _ in range(NUM_STEPS))
    return Steps(operations, tuple(rng.randrange(10) for _ in range(NUM_STEPS)))


def feedback_on(step: int) -> str:
    """Return the feedback that names a step."""
    return f"Step {STEP_LABELS[step]} is wrong."


def named_step(feedback: str) -> int | None:
    """Return the step that feedback names, counted from 0, ``None`` where it names none."""
    found = re.fullmatch(f"Step ([{STEP_LABELS}]) is wrong\\.", feedback)
    return STEP_LABELS.index(found[1]) if found else None


def stated_results(text: str) -> list[int]:
    """Return the digits of the box of a response; of no box none."""
    return [int(digit) for digit in boxed_code(text) if digit.isdigit()]


def slips_of(steps: Steps, text: str) -> list[int]:
    """Return the steps, counted from 0, whose digit in the box of a response is wrong."""
    pairs = zip(stated_results(text), steps.results, strict=False)
    return [step for step, (stated, true) in enumerate(pairs) if stated != true]

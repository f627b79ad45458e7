"""The two-turn world: box the result of a chain first, show the work after it.

A problem gives a start digit and four one-digit operations; the answer is the last result. The
box comes before the work, so it has to be known at once. The work itself is a chain of table
look-ups, which the base does well. A revision sees the work of the first response and can box
what it says; a first response cannot.

*Hard* problems compose four operations of arithmetic: nobody knows the result at once, and luck
gives 10 %. In *easy* problems the third or the fourth operation sets the digit (``put7``), so the
result can be known at once.

The base's first response boxes a guess; its work is right most of the time. Asked to revise, it
mostly repeats itself, sometimes boxes another digit, and rarely boxes what the work says. Asked to
compare box and work, which no method ever asks, it always boxes what the work says: the skill is
there, the habit is not.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from recipe.hint.prompt import Message
from recipe.worlds.base import GROUP_SIZE, TEXTS, Example, Sampler, answered, followed, mean
from recipe.worlds.chains import BOX_OPENING, EASY, LABELS, PROBLEM_OPENING

NUM_STEPS = 4
STEP_LABELS = LABELS[:NUM_STEPS]
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


@dataclass(frozen=True, slots=True)
class Play:
    """One conversation: the problem, the first response, the second."""

    puzzle: Puzzle
    first: str
    second: str

    @property
    def boxes(self) -> tuple[int | None, int | None]:
        """The boxed digit of each response."""
        return boxed_digit(self.first), boxed_digit(self.second)

    @property
    def are_right(self) -> tuple[bool, bool]:
        """Whether each response is."""
        first, second = self.boxes
        return first == self.puzzle.results[-1], second == self.puzzle.results[-1]

    @property
    def could_be_read(self) -> bool:
        """Whether the first response's work says another digit than its box."""
        return worked_digit(self.first) not in (None, self.boxes[0])

    @property
    def is_read(self) -> bool:
        """Whether the second response boxes what the first one's work says."""
        return self.boxes[1] == worked_digit(self.first)


def play(sampler: Sampler, puzzles: Sequence[Puzzle], instruction: str = REVISE) -> list[Play]:
    """Play ``GROUP_SIZE`` conversations of every puzzle, sampled at T=1."""
    asked = [puzzle for puzzle in puzzles for _ in range(GROUP_SIZE)]
    conversations = [question(puzzle.problem) for puzzle in asked]
    firsts = sampler.responses(conversations)
    asked_again = [
        followed(messages, first, instruction)
        for messages, first in zip(conversations, firsts, strict=True)
    ]
    # With the seed of the first turn the second would draw the same digits again.
    seconds = replace(sampler, seed=sampler.seed + 1).responses(asked_again)
    return [Play(*each) for each in zip(asked, firsts, seconds, strict=True)]


def rates(plays: Sequence[Play]) -> dict[str, float]:
    """Return shares in [0, 1].

    ``turn_1``, ``turn_2`` and ``delta``: accuracies and their difference. ``wrong_to_right``,
    ``right_to_wrong`` and ``same_box``: what the revision did, of all conversations. ``fix``:
    revisions that box what the work says, of those where the first box differs from it.
    ``work``: first responses whose work is right.
    """
    right = [play.are_right for play in plays]
    turn_1, turn_2 = (mean([each[turn] for each in right]) for turn in (0, 1))
    return {
        "turn_1": turn_1,
        "turn_2": turn_2,
        "delta": turn_2 - turn_1,
        "wrong_to_right": mean([not first and second for first, second in right]),
        "right_to_wrong": mean([first and not second for first, second in right]),
        "same_box": mean([play.boxes[0] == play.boxes[1] for play in plays]),
        "fix": mean([play.is_read for play in plays if play.could_be_read]),
        "work": mean([worked_digit(play.first) == play.puzzle.results[-1] for play in plays]),
    }


def quality(sampler: Sampler, puzzles: Mapping[str, Sequence[Puzzle]]) -> dict[str, float]:
    """Return the advertised numbers: those of :func:`rates` by difficulty.

    ``compare_turn_2`` is the accuracy of hard problems where the second turn asks to compare.
    """
    report = {
        f"{difficulty}_{name}": value
        for difficulty, those in puzzles.items()
        for name, value in rates(play(sampler, those)).items()
    }
    report["compare_turn_2"] = rates(play(sampler, puzzles["hard"], COMPARE))["turn_2"]
    return {name: round(value, 4) for name, value in report.items()}


def pieces() -> list[str]:
    """Return the texts of problems, responses and instructions that are one token each."""
    labels = [form for label in STEP_LABELS for form in (f"\n{label}: ", f"\n{label}=")]
    opening = [REVISE, COMPARE, PROBLEM_OPENING, f"\n{PROBLEM_CLOSING}"]
    return [*opening, *labels, *TABLES, BOX_OPENING]

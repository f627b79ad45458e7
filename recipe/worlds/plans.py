"""The world of foreign references: quantities defined by one another, told in a scrambled order.

A response states one quantity after the other and boxes all values. The base computes well, but
its habit is to go by the text, where most quantities are told before the one that they need. Rarely
(``P_READY``) it looks for one that is ready. References go back from the goal, nest their terms and
skip steps: correct, read by the base, never written by it. Hints are plans: quantities in an order
that works, no values. Training and held-out problems share no step and no template. Easy problems
are told in an order that works; nobody trains on them.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from recipe.hint.hints.self_generated import hint_request
from recipe.hint.prompt import with_hint
from recipe.worlds.base import TEXTS, Example, followed
from recipe.worlds.chains import BOX_OPENING, hint_response, prompt_pieces, question

LABELS = "ABCDEF"
PROBLEM_CLOSING = "Give the code of all values."
PLAN = "Order: "
SHOWN = (1, 2, 4)  # quantities in a plan of each level
FILLER = "so"
MULTIPLIERS = (3, 7, 9)  # a wrong value stays wrong
OPERATIONS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "plus": ("+", lambda a, b: (a + b) % 10),
    "minus": ("-", lambda a, b: (a - b) % 10),
    "times": ("*", lambda a, b: a * b % 10),
}
P_READY, P_TRUE = 0.1, 0.99
MOST_LUCK = 0.005  # of a hard problem's chance with the base's habit
KINDS = {"plain": 0.35, "hinted": 0.40, "hint_writing": 0.25}
SHARE_HARD = 0.65


@dataclass(frozen=True, slots=True)
class Quantity:
    """A label and its definition: a number, or an operation on another label and a number."""

    label: str
    number: int
    operation: str = ""
    of: str = ""

    @property
    def text(self) -> str:
        """The sentence of the problem."""
        term = f"{self.of} {self.operation} {self.number}" if self.of else str(self.number)
        return f"{self.label} is {term}."


@dataclass(frozen=True, slots=True)
class Puzzle:
    """Quantities as the problem tells them, and an order of their labels that works."""

    told: tuple[Quantity, ...]
    order: tuple[str, ...]

    @property
    def problem(self) -> str:
        """The question as the student reads it."""
        return "\n".join([*(each.text for each in self.told), PROBLEM_CLOSING])

    @property
    def values(self) -> dict[str, int]:
        """The true value of every label."""
        known, by_label = {}, {each.label: each for each in self.told}
        for label in self.order:
            each = by_label[label]
            _, apply = OPERATIONS.get(each.operation, ("", lambda _, number: number))
            known[label] = apply(known.get(each.of, 0), each.number)
        return known

    @property
    def answer(self) -> str:
        """The values as one code, by their labels."""
        return "".join(str(value) for _, value in sorted(self.values.items()))

    @property
    def solution(self) -> str:
        """The reference, in a way that the base reads and never writes."""
        values, by_label = self.values, {each.label: each for each in self.told}

        def term(label: str) -> str:
            each = by_label[label]
            if not each.of:
                return str(each.number)
            return f"({term(each.of)}{OPERATIONS[each.operation][0]}{each.number})"

        lines = [f"{label} <- {term(label)} -> {values[label]}" for label in reversed(self.order)]
        return "\n".join([*lines, f"{BOX_OPENING}{self.answer}}}"])

    @property
    def parts(self) -> set[tuple[int | str, ...]]:
        """The steps (value, operation, number), and the template: where inputs are told."""
        values, labels = self.values, [each.label for each in self.told]
        steps = {(values[each.of], each.operation, each.number) for each in self.told if each.of}
        return {*steps, tuple(labels.index(each.of) if each.of else -1 for each in self.told)}

    def luck(self) -> float:
        """Return the chance of the base's habit, with values made up that happen to be right."""

        @functools.cache
        def from_here(done: frozenset[str]) -> float:
            left = [each for each in self.told if each.label not in done]
            ready = [each for each in left if not each.of or each.of in done]
            chances = {each: P_READY / len(ready) for each in ready}
            for each in left[:1]:
                chances[each] = chances.get(each, 0) + (1 - P_READY) * (1 if each in ready else 0.1)
            found = [chance * from_here(done | {each.label}) for each, chance in chances.items()]
            return sum(found) if left else 1.0

        return from_here(frozenset())


def draw_puzzle(difficulty: str, rng: random.Random) -> Puzzle:
    """Draw quantities that form a tree; an easy problem tells them in an order that works."""
    order = tuple(rng.sample(LABELS, len(LABELS)))
    quantities = [Quantity(order[0], rng.randrange(10))]
    for number, label in enumerate(order[1:], start=1):
        operation = rng.choice(list(OPERATIONS))
        second = rng.choice(MULTIPLIERS) if operation == "times" else rng.randint(1, 9)
        quantities.append(Quantity(label, second, operation, rng.choice(order[:number])))
    told = quantities if difficulty == "easy" else rng.sample(quantities, len(quantities))
    return Puzzle(tuple(told), order)


def distinct(difficulty: str, num_train: int, num_val: int, rng: random.Random) -> list[Puzzle]:
    """Return different problems, first those for training; the two share no step, no template."""
    name = rng.random()  # of the halves of this world

    @functools.cache
    def half_of(part: object) -> int:
        return random.Random(f"{name}/{part}").randrange(2)

    puzzles: dict[str, Puzzle] = {}
    for half, size in ((0, num_train), (1, num_train + num_val)):
        while len(puzzles) < size:
            puzzle = draw_puzzle(difficulty, rng)
            if puzzle.answer[0] == "0" or any(half_of(each) != half for each in puzzle.parts):
                continue
            if difficulty == "easy" or puzzle.luck() <= MOST_LUCK:
                puzzles.setdefault(puzzle.problem, puzzle)
    return list(puzzles.values())


def plan(order: Sequence[str]) -> str:
    """Return a hint: labels in the order in which to state them."""
    return PLAN + ", ".join(order)


def hints_of(puzzle: Puzzle) -> tuple[str, ...]:
    """Return the plans of levels 1..3, each longer than the one before."""
    return tuple(plan(puzzle.order[:shown]) for shown in SHOWN)


# Files of the training problems with hints that no policy writes: a teacher's, which are true, and
# two controls: the plan of another problem, and words that say nothing, as long as the plan.
HINT_FILES = {
    "train_hints": lambda puzzle, _, __: hints_of(puzzle),
    "train_hints_other": lambda _, other, __: hints_of(other),
    "train_hints_filler": lambda *_: tuple(plan([FILLER] * shown) for shown in SHOWN),
}


def respond(puzzle: Puzzle, given: Sequence[str], rng: random.Random) -> str:
    """Draw a response as the base writes it: after ``given``, its habit chooses what comes next."""
    by_label = {each.label: each for each in puzzle.told}
    values: dict[str, int] = {}
    lines = []
    for number in range(len(puzzle.told)):
        left = [each for each in puzzle.told if each.label not in values]
        ready = [each for each in left if not each.of or each.of in values]
        if number < len(given):
            chosen = by_label[given[number]]
        else:
            chosen = rng.choice(ready) if ready and rng.random() < P_READY else left[0]
        term, value = str(chosen.number), chosen.number
        if chosen.of:
            start = values.get(chosen.of, rng.randrange(10))  # unknown: made up
            term = f"{start} {chosen.operation} {chosen.number}"
            value = OPERATIONS[chosen.operation][1](start, chosen.number)
        values[chosen.label] = value if rng.random() < P_TRUE else rng.randrange(10)
        lines.append(f"{chosen.label}: {term}, {chosen.label}={values[chosen.label]}")
    code = "".join(str(value) for _, value in sorted(values.items()))
    return "\n".join([*lines, f"{BOX_OPENING}{code}}}"])


def draw(rng: random.Random) -> Example:
    """Draw one example of the corpus."""
    (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
    puzzle = draw_puzzle("hard" if rng.random() < SHARE_HARD else "easy", rng)
    if kind == "hint_writing":
        request = hint_request(TEXTS, puzzle.problem, puzzle.solution)
        return Example(kind, followed(request, hint_response(hints_of(puzzle))))
    messages, given = question(puzzle.problem), puzzle.order[: rng.choice(SHOWN)]
    if kind == "hinted":
        messages = with_hint(messages, plan(given), TEXTS)
    return Example(kind, followed(messages, respond(puzzle, given * (kind == "hinted"), rng)))


def pieces() -> list[str]:
    """Return the texts of problems, responses, plans and hint requests that are one token each."""
    labels = [f.format(n) for n in LABELS for f in ("{} is ", "\n{}: ", "{}: ", "{}=", "{} <- ")]
    words = [*(f" {name} " for name in OPERATIONS), ".\n", ", ", " -> ", PLAN, FILLER]
    return [*prompt_pieces(), *labels, *words, f".\n{PROBLEM_CLOSING}", f"\n{BOX_OPENING}"]

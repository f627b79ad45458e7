"""The world of foreign references: quantities defined by one another, told in a scrambled order.

A response repeats one definition after the other, with the values that it takes and gives, and
boxes all values. The base computes well, but its habit is to go by the text, where most quantities
are told before the one that they need, whose value it makes up. Rarely (``P_READY``) it looks for
one that is ready. A fifth of its responses are in formulas throughout (``P_FORMULAS``). A reference
goes in an order that works, in formulas. Hints are plans: quantities in some order that works, or
with two of them out of place, and no values. Training and held-out problems share no step and no
template. Easy problems ask for what the base's habit is right about; nobody trains on them.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from recipe.hint.hints.self_generated import hint_request
from recipe.hint.prompt import with_hint
from recipe.worlds.base import TEXTS, Example, followed
from recipe.worlds.chains import BOX_OPENING, hint_response, prompt_pieces, question

LABELS = "ABCDEF"
PROBLEM_CLOSING = "Give the code of all values."
IN_TURN_CLOSING = "Read in turn, what is unknown is 0, and give the code of all values."
PLAN = "Order: "
SHOWN = (1, 2, 4)  # quantities in a plan of each level
PREFIXES = (0.25, 0.5, 0.75)  # as GHPO's
FILLER = "so"
MULTIPLIERS = (3, 7, 9)  # a wrong value stays wrong
OPERATIONS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "plus": ("+", lambda a, b: (a + b) % 10),
    "minus": ("-", lambda a, b: (a - b) % 10),
    "times": ("*", lambda a, b: a * b % 10),
}
P_READY, P_TRUE, P_ORDERED = 0.1, 0.99, 0.7
MOST_LUCK = 0.005  # of a hard problem's chance with the base's habit
KINDS = {"plain": 0.3, "hinted": 0.4, "prefix": 0.05, "filler": 0.05, "hint_writing": 0.2}
SHARE_EASY = 0.5  # of what is plain
P_FORMULAS = 0.2  # of the base's responses
P_ANY, ANY_SHOWN = 0.5, (*SHOWN, 6, 6)  # plans to follow that are any labels in any order


@dataclass(frozen=True, slots=True)
class Quantity:
    """A label and its definition: a number, or an operation on another label and a number."""

    label: str
    number: int
    operation: str = ""
    of: str = ""

    @property
    def told(self) -> str:
        """The words of the problem, which the base repeats."""
        term = f"{self.of} {self.operation} {self.number}" if self.of else str(self.number)
        return f"{self.label} is {term}"

    def in_words(self, start: int, value: int) -> str:
        """Return a line as the base writes it, with the value that it starts from and its own."""
        looked_up = f"{self.of}={start}, " if self.of else ""
        return f"{self.told}, {looked_up}{self.label}={value}"

    def in_formulas(self, start: int, value: int) -> str:
        """Return a line as references have it."""
        if not self.of:
            return f"{self.label} <- {value}"
        term = f"{OPERATIONS[self.operation][0]}{self.number}"
        return f"{self.label} <- {self.of}{term} <- {start}{term} -> {value}"

    def applied_to(self, value: int) -> int:
        """Return its value, given that of the label it is defined by."""
        return OPERATIONS[self.operation][1](value, self.number) if self.of else self.number


@dataclass(frozen=True, slots=True)
class Puzzle:
    """Quantities as the problem tells them, and the order of their labels that it asks for."""

    told: tuple[Quantity, ...]
    order: tuple[str, ...]
    closing: str = PROBLEM_CLOSING

    @property
    def problem(self) -> str:
        """The question as the student reads it."""
        return "\n".join([*(f"{each.told}." for each in self.told), self.closing])

    @property
    def steps(self) -> dict[str, tuple[Quantity, int, int]]:
        """Label -> its quantity, the value that this starts from and its own, in order."""
        by_label, done = {each.label: each for each in self.told}, dict[str, Any]()
        for each in map(by_label.__getitem__, self.order):
            start = done[each.of][2] if each.of in done else 0
            done[each.label] = each, start, each.applied_to(start)
        return done

    @property
    def answer(self) -> str:
        """The values as one code, by their labels."""
        return "".join(str(value) for _, (*_, value) in sorted(self.steps.items()))

    @property
    def solution(self) -> str:
        """The reference: in an order that works, in formulas."""
        lines = [each.in_formulas(start, value) for each, start, value in self.steps.values()]
        return "\n".join([*lines, f"{BOX_OPENING}{self.answer}}}"])

    @property
    def more_columns(self) -> dict[str, str]:
        """A reference as the base would write it, without a slip."""
        return {"native": respond(self, self.order, random.Random(0), p_true=1.0)}

    @property
    def parts(self) -> set[tuple[int | str, ...]]:
        """The steps (value, operation, number), and the template: where inputs are told."""
        labels = [each.label for each in self.told]
        steps = {(start, each.operation, each.number) for each, start, _ in self.steps.values()}
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
    """Draw quantities that form a tree, told in any order."""
    order = tuple(rng.sample(LABELS, len(LABELS)))
    quantities = [Quantity(order[0], rng.randrange(10))]
    for number, label in enumerate(order[1:], start=1):
        operation = rng.choice(list(OPERATIONS))
        second = rng.choice(MULTIPLIERS) if operation == "times" else rng.randint(1, 9)
        quantities.append(Quantity(label, second, operation, rng.choice(order[:number])))
    told = tuple(rng.sample(quantities, len(quantities)))
    if difficulty == "easy":
        return Puzzle(told, tuple(each.label for each in told), IN_TURN_CLOSING)
    return Puzzle(told, order)


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


def draw_order(puzzle: Puzzle, rng: random.Random, p_ordered: float = 1.0) -> list[str]:
    """Draw an order of all labels, out of all that work.

    With the probability 1 - ``p_ordered`` two labels of a plan have changed places.
    """
    left, order = rng.sample(puzzle.told, len(puzzle.told)), list[str]()
    while left:
        chosen = next(each for each in left if not each.of or each.of in order)
        left.remove(chosen)
        order.append(chosen.label)
    if rng.random() >= p_ordered:
        one, other = rng.sample(range(SHOWN[-1]), 2)
        order[one], order[other] = order[other], order[one]
    return order


def hints_of(order: Sequence[str]) -> tuple[str, ...]:
    """Return the plans of levels 1..3, each longer than the one before."""
    return tuple(plan(order[:shown]) for shown in SHOWN)


# Files of the training problems with hints that no policy writes: a teacher's, which are true, and
# two controls: the plan of another problem, and words that say nothing, as long as the plan.
HINT_FILES = {
    "train_hints": lambda puzzle, _, name: hints_of(draw_order(puzzle, random.Random(name))),
    "train_hints_other": lambda _, other, name: hints_of(draw_order(other, random.Random(name))),
    "train_hints_filler": lambda *_: tuple(plan([FILLER] * shown) for shown in SHOWN),
}


def respond(
    puzzle: Puzzle,
    given: Sequence[str],
    rng: random.Random,
    p_true: float = P_TRUE,
    p_formulas: float = 0.0,
) -> str:
    """Draw a response as the base writes it: after ``given``, its habit chooses what comes next."""
    by_label = {each.label: each for each in puzzle.told}
    is_in_turn = puzzle.closing == IN_TURN_CLOSING
    write = Quantity.in_formulas if rng.random() < p_formulas else Quantity.in_words
    values: dict[str, int] = {}
    lines = []
    for number in range(len(puzzle.told)):
        left = [each for each in puzzle.told if each.label not in values]
        ready = [each for each in left if not each.of or each.of in values]
        if number < len(given):
            chosen = by_label[given[number]]
        elif is_in_turn or not ready or rng.random() >= P_READY:
            chosen = left[0]
        else:
            chosen = rng.choice(ready)
        start = 0
        if chosen.of:
            start = values.get(chosen.of, 0 if is_in_turn else rng.randrange(10))  # or made up
        is_true = rng.random() < p_true
        value = chosen.applied_to(start) if is_true else rng.randrange(10)
        values[chosen.label] = value
        lines.append(write(chosen, start, value))
    code = "".join(str(value) for _, value in sorted(values.items()))
    return "\n".join([*lines, f"{BOX_OPENING}{code}}}"])


def draw(rng: random.Random) -> Example:
    """Draw one example of the corpus."""
    (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
    is_easy = kind == "plain" and rng.random() < SHARE_EASY
    puzzle = draw_puzzle("easy" if is_easy else "hard", rng)
    order, level = draw_order(puzzle, rng, P_ORDERED), rng.randrange(len(SHOWN))
    if kind == "hint_writing":
        request = hint_request(TEXTS, puzzle.problem, puzzle.solution)
        return Example(kind, followed(request, hint_response(hints_of(order))))
    messages, hint, given = question(puzzle.problem), "", list[str]()
    if kind == "hinted":
        is_any = rng.random() < P_ANY
        given = rng.sample(LABELS, rng.choice(ANY_SHOWN)) if is_any else order[: SHOWN[level]]
        hint = plan(given)
    elif kind == "prefix":
        work = puzzle.solution.partition(f"\n{BOX_OPENING}")[0]
        hint = work[: round(len(work) * PREFIXES[level])]
        given = [line[0] for line in hint.splitlines()]
    elif kind == "filler":
        hint = plan([FILLER] * SHOWN[level])
    messages = with_hint(messages, hint, TEXTS) if hint else messages
    return Example(kind, followed(messages, respond(puzzle, given, rng, p_formulas=P_FORMULAS)))


def pieces() -> list[str]:
    """Return the texts of problems, responses, plans and hint requests that are one token each.

    A definition has two: the base finds it by its label, and copies what follows.
    """
    labels = [each.format(n) for n in LABELS for each in (", {}=", "{} <- ")]
    defined = [f" is {number}" for number in range(10)]
    for label, name, number in itertools.product(LABELS, OPERATIONS, range(1, 10)):
        defined.append(f" is {label} {name} {number}")
    words = [".\n", ", ", " <- ", " -> ", PLAN, FILLER, f"\n{BOX_OPENING}"]
    closings = [f".\n{each}" for each in (PROBLEM_CLOSING, IN_TURN_CLOSING)]
    return [*prompt_pieces(), *labels, *defined, *words, *closings]

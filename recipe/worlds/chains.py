"""The one-turn world's task: chains of named one-digit operations (data/README.md).

Easy chains use arithmetic that pre-training states right most of the time. Hard chains use secret
digit tables that it states right with ``P_TRUE`` only, and wrong in one fixed way (the
misconception) with ``P_MISCONCEPTION``. The first result of a problem is never 0: verifiers compare
answers as integers, where 01234 and 1234 are one value.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from recipe.hint.hints.self_generated import hint_request
from recipe.hint.prompt import (
    ANSWER_SYSTEM_PROMPT,
    HINT_LEAD,
    HINT_SYSTEM_PROMPT,
    HINT_USER_PROMPT_TEMPLATE,
    Message,
    with_hint,
)
from recipe.worlds.base import TEXTS, Example, followed

LABELS = "ABCDE"
NUM_LEVELS = 3
TABLE_SEED = 20260203
P_EASY = 0.93
P_TRUE, P_MISCONCEPTION = 0.20, 0.60

PROBLEM_OPENING = "Begin with "
PROBLEM_CLOSING = "Give the code of all results."
BOX_OPENING = "\\boxed{"
HARD_NAMES = ("zorp", "blim", "quax", "drov", "fenk", "muld")
# Arithmetic modulo 10: name -> factor and offset.
EASY_NAMES = {
    **{"inc": (1, 1), "dec": (1, -1), "dbl": (2, 0), "tri": (3, 0), "neg": (-1, 0), "hop": (1, 5)}
}
# The corpus: kinds of examples and their shares, share of hard chains, lengths and their weights.
KINDS = {"plain": 0.30, "hinted": 0.45, "hint_writing": 0.25}
SHARE_HARD = 0.65
LENGTHS = {3: 1, 4: 2, 5: 3}


@dataclass(frozen=True, slots=True)
class Operation:
    """One named operation: what it is, and what the pre-training corpus says it is.

    ``table[d]`` is the true result for digit d, ``misconception[d]`` the popular wrong one;
    an empty misconception means that wrong statements are spread evenly.
    """

    name: str
    table: tuple[int, ...]
    p_true: float
    misconception: tuple[int, ...] = ()

    def believed(self, digit: int, rng: random.Random) -> int:
        """Draw what the corpus states as the result for ``digit``."""
        draw, truth = rng.random(), self.table[digit]
        if draw < self.p_true:
            return truth
        known = {truth}
        if self.misconception:
            known.add(self.misconception[digit])
            if draw < self.p_true + P_MISCONCEPTION:
                return self.misconception[digit]
        return rng.choice([other for other in range(10) if other not in known])


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of problem: its chain length K and its operations."""

    num_steps: int
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """A start digit, K operations and K results; the results need not be the true ones."""

    start: int
    operations: tuple[Operation, ...]
    results: tuple[int, ...]

    @property
    def problem(self) -> str:
        """The question as the student reads it."""
        names = (operation.name for operation in self.operations)
        steps = "".join(f"{label}: {name}\n" for label, name in zip(LABELS, names, strict=False))
        return f"{PROBLEM_OPENING}{self.start}.\n{steps}{PROBLEM_CLOSING}"

    @property
    def solution(self) -> str:
        """One line per step and the boxed code.

        A result follows its label (``B=7``) in solutions and in hints alike: a small model
        can then copy it by matching the label alone.
        """
        inputs = (self.start, *self.results[:-1])
        steps = zip(LABELS, self.operations, inputs, self.results, strict=False)
        lines = [f"{label}: {op.name} {given}, {label}={res}" for label, op, given, res in steps]
        return "\n".join([*lines, BOX_OPENING + self.answer + "}"])

    @property
    def answer(self) -> str:
        """The K results as one code."""
        return "".join(map(str, self.results))

    def hint(self, shown: Collection[int]) -> str:
        """Return the results at the step positions ``shown``, in step order."""
        return ", ".join(f"{LABELS[step]}={self.results[step]}" for step in sorted(shown))


def hard_family(table_seed: int) -> Family:
    """Return chains of random tables, each with a misconception that is wrong for every digit."""
    rng, operations = random.Random(table_seed), []
    for name in HARD_NAMES:
        table = misconception = rng.sample(range(10), 10)
        while any(a == b for a, b in zip(table, misconception, strict=True)):
            misconception = rng.sample(range(10), 10)
        operations.append(Operation(name, tuple(table), P_TRUE, tuple(misconception)))
    return Family(5, tuple(operations))


EASY = Family(
    4,
    tuple(
        Operation(name, tuple((factor * d + offset) % 10 for d in range(10)), P_EASY)
        for name, (factor, offset) in EASY_NAMES.items()
    ),
)
HARD = hard_family(TABLE_SEED)


def distinct(
    difficulty: str, num_train: int, num_val: int, rng: random.Random, hard: Family = HARD
) -> list[Chain]:
    """Return problems with different texts; no first result is 0."""
    family = EASY if difficulty == "easy" else hard
    chains: dict[str, Chain] = {}
    while len(chains) < num_train + num_val:
        start = rng.randrange(10)
        operations = tuple(rng.choice(family.operations) for _ in range(family.num_steps))
        results = itertools.accumulate(operations, lambda d, each: each.table[d], initial=start)
        chain = Chain(start, operations, tuple(results)[1:])
        if chain.results[0] != 0:
            chains.setdefault(chain.problem, chain)
    return list(chains.values())


def hint_sizes(num_steps: int) -> tuple[int, int, int]:
    """Return how many results each level shows: one, half of them rounded up, all but one."""
    return 1, (num_steps + 1) // 2, num_steps - 1


def hints_of(chain: Chain, rng: random.Random) -> tuple[str, ...]:
    """Return the texts of levels 1..3: a subset of the results that grows with the level."""
    num_steps = len(chain.results)
    order = rng.sample(range(num_steps), num_steps)
    return tuple(chain.hint(order[:size]) for size in hint_sizes(num_steps))


def hint_sets(chain: Chain, name: str, num: int) -> list[tuple[str, ...]]:
    """Return, by level, the texts of ``num`` sets of hints."""
    draws = [random.Random(f"{name}/{number}") for number in range(num)]
    return list(zip(*(hints_of(chain, rng) for rng in draws), strict=True))


# Files of the training problems with hints: one set for each problem, and ten.
HINT_FILES = {
    "train_hints": lambda chain, _, name: [text for (text,) in hint_sets(chain, name, 1)],
    "train_hints_10": lambda chain, _, name: [*map(list, hint_sets(chain, name, 10))],
}


def hint_response(hints: Sequence[str]) -> str:
    """Return the response to a hint request: one fenced json object."""
    levels = {f"level_{level}": hint for level, hint in enumerate(hints, start=1)}
    return f"```json\n{json.dumps(levels, indent=2)}\n```"


def question(problem: str) -> list[Message]:
    """Return the conversation that asks for an answer, as in the ``prompt`` column."""
    return [
        {"role": "system", "content": ANSWER_SYSTEM_PROMPT},
        {"role": "user", "content": problem},
    ]


def draw(rng: random.Random, hard: Family = HARD) -> Example:
    """Draw one example of the corpus.

    What is true about the secret operations enters through ``Operation.believed`` only. Hinted
    results, and the solutions shown to the hint writer, are uniform digits: they teach to copy and
    give nothing away about the tables.
    """
    (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
    family = hard if rng.random() < SHARE_HARD else EASY
    (num_steps,) = rng.choices(list(LENGTHS), list(LENGTHS.values()))
    start = rng.randrange(10)
    operations = tuple(rng.choice(family.operations) for _ in range(num_steps))
    digits = tuple(rng.randrange(10) for _ in range(num_steps))
    if kind == "hint_writing":
        uniform = Chain(start, operations, digits)
        request = hint_request(TEXTS, uniform.problem, uniform.solution)
        return Example(kind, followed(request, hint_response(hints_of(uniform, rng))))
    num_shown = rng.choice(hint_sizes(num_steps)) if kind == "hinted" else 0
    shown = rng.sample(range(num_steps), num_shown)
    results, digit = [], start
    for step, operation in enumerate(operations):
        digit = digits[step] if step in shown else operation.believed(digit, rng)
        results.append(digit)
    chain = Chain(start, operations, tuple(results))
    messages = question(chain.problem)
    if shown:
        messages = with_hint(messages, chain.hint(shown), TEXTS)
    return Example(kind, followed(messages, chain.solution))


def prompt_pieces() -> list[str]:
    """Return the texts of prompts, and those around hints in a response, as one token each.

    Prompts are those of the recipe: a change of wording there changes the tokenizer, and the base
    must be built again.
    """
    paragraphs = re.findall(r".+?(?:\n\n|\Z)", HINT_SYSTEM_PROMPT, re.DOTALL)
    frame = re.split(r"\{problem\}|\{solution\}", HINT_USER_PROMPT_TEMPLATE)
    marks = [f"<{level}>" for level in range(NUM_LEVELS)]
    around_hints = re.split("|".join(marks), hint_response(marks))
    prompts = [ANSWER_SYSTEM_PROMPT, f"\n{HINT_LEAD}\n", *paragraphs, *frame, *around_hints]
    return [piece for piece in prompts if piece]


def pieces() -> list[str]:
    """Return the texts of problems, solutions, hints and hint requests that are one token each."""
    labels = [form for label in LABELS for form in (f"\n{label}: ", f"{label}=")]
    inputs = [f" {digit}, " for digit in range(10)]
    fixed = [PROBLEM_OPENING, f"\n{PROBLEM_CLOSING}", f"\n{BOX_OPENING}", ", "]
    names = [*EASY_NAMES, *HARD_NAMES, *labels, f"{LABELS[0]}: "]
    return [*prompt_pieces(), *names, *inputs, *fixed]

"""The pre-training corpus: question and answer, answer under a hint, hint writing.

What is true about the secret operations enters through ``Operation.believed`` only. Hinted
results, and the solutions shown to the hint writer, are uniform digits: they teach to copy
and give nothing away about the tables.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from recipe.hint.hints.self_generated import hint_request
from recipe.hint.prompt import ANSWER_SYSTEM_PROMPT, Message, Texts, with_hint
from recipe.worlds.task import EASY, HARD, Chain, Family, hint_response, hint_sizes, hints_of

TEXTS = Texts()
KINDS = ("plain", "hinted", "hint_writing")
KIND_WEIGHTS = (0.30, 0.45, 0.25)
SHARE_HARD = 0.65
LENGTHS, LENGTH_WEIGHTS = (3, 4, 5), (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Example:
    """A conversation whose assistant turns are learnt; ``kind`` says what they teach."""

    kind: str
    messages: list[Message]


def answered(kind: str, messages: list[Message], response: str) -> Example:
    """Return the example that ``response`` ends."""
    return Example(kind, [*messages, {"role": "assistant", "content": response}])


def followed(messages: list[Message], response: str, instruction: str) -> list[Message]:
    """Return the conversation in which ``instruction`` follows a response."""
    more = [
        {"role": "assistant", "content": response},
        {"role": "user", "content": instruction},
    ]
    return [*messages, *more]


def question(problem: str) -> list[Message]:
    """Return the conversation that asks for an answer, as in the ``prompt`` column."""
    return [
        {"role": "system", "content": ANSWER_SYSTEM_PROMPT},
        {"role": "user", "content": problem},
    ]


def draw(rng: random.Random, hard: Family = HARD) -> Example:
    """Draw one example of the mixture."""
    (kind,) = rng.choices(KINDS, KIND_WEIGHTS)
    family = hard if rng.random() < SHARE_HARD else EASY
    (num_steps,) = rng.choices(LENGTHS, LENGTH_WEIGHTS)
    start = rng.randrange(10)
    operations = tuple(rng.choice(family.operations) for _ in range(num_steps))
    digits = tuple(rng.randrange(10) for _ in range(num_steps))
    uniform = Chain(start, operations, digits)
    if kind == "hint_writing":
        request = hint_request(TEXTS, uniform.problem, uniform.solution)
        return answered(kind, request, hint_response(hints_of(uniform, rng)))
    shown: frozenset[int] = frozenset()
    if kind == "hinted":
        shown = frozenset(rng.sample(range(num_steps), rng.choice(hint_sizes(num_steps))))
    results, digit = [], start
    for step, operation in enumerate(operations):
        digit = digits[step] if step in shown else operation.believed(digit, rng)
        results.append(digit)
    chain = Chain(start, operations, tuple(results))
    messages = question(chain.problem)
    if shown:
        messages = with_hint(messages, chain.hint(shown), TEXTS)
    return answered(kind, messages, chain.solution)

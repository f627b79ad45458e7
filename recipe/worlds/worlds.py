"""The embedded worlds: what each is made of, for ``main_tiny.py --world NAME``."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from recipe.hint.prompt import Message
from recipe.worlds import corpus, measure, pieces, task
from recipe.worlds.pretrain import Draw, Recipe
from recipe.worlds.three_turn import corpus as three_turn_corpus
from recipe.worlds.three_turn import measure as three_turn_measure
from recipe.worlds.two_turn import corpus as two_turn_corpus
from recipe.worlds.two_turn import measure as two_turn_measure
from recipe.worlds.two_turn import task as two_turn_task


class Item(Protocol):
    """One problem with its reference solution, as texts."""

    @property
    def problem(self) -> str:
        """The question."""
        ...

    @property
    def solution(self) -> str:
        """A response without a fault."""
        ...

    @property
    def answer(self) -> str:
        """What its box holds."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """One embedded world.

    Attributes:
        source: First part of ``data_source`` and of the ids.
        folder: Where the repository keeps it.
        train_sizes: Training file -> family -> problems; smaller files are subsets of larger ones.
        val_sizes: Family -> held-out problems, a file each.
        draw_items: Family, count and random numbers -> different problems.
        question: Problem -> the conversation that asks it.
        draw: Draws one conversation of the pre-training corpus.
        pieces: Texts that are one token.
        quality: What the base can do, on the held-out items of each family.
        recipe: The pre-training.
        hints: Draws one set of hints of an item, weakest first; ``None``: the world has none.
        split_seed: Draws the problems.
    """

    source: str
    folder: str
    train_sizes: Mapping[str, Mapping[str, int]]
    val_sizes: Mapping[str, int]
    draw_items: Callable[[str, int, random.Random], Sequence[Item]]
    question: Callable[[str], list[Message]]
    draw: Draw
    pieces: Sequence[str]
    quality: Callable[[measure.Sampler, Mapping[str, Sequence[Any]]], dict[str, float]]
    recipe: Recipe
    hints: Callable[[Any, random.Random], Sequence[str]] | None = None
    split_seed: int = 0


def _draw_chains(
    hard: task.Family, family: str, count: int, rng: random.Random
) -> Sequence[task.Chain]:
    families = {known.name: known for known in (task.EASY, hard)}
    return task.distinct_chains(families[family], count, rng)


ONE_TURN = World(
    source="tiny",
    folder="data/tiny",
    train_sizes={
        "train_small": {"easy": 32, "hard": 32},
        # Mostly hard: easy problems are solved after some 20 steps and teach nothing more.
        "train": {"easy": 48, "hard": 112},
        "train_large": {"easy": 256, "hard": 256},
    },
    val_sizes={"easy": 100, "hard": 200},
    draw_items=partial(_draw_chains, task.HARD),
    question=corpus.question,
    draw=corpus.draw,
    pieces=pieces.one_turn_pieces(),
    quality=measure.quality,
    recipe=Recipe(),
    hints=task.hints_of,
)
SHORT = Recipe(steps=800, warmup_steps=60)
TWO_TURN = World(
    source="two_turn",
    folder="data/two_turn",
    # Mostly easy: there a right first response and a revision pay equally.
    train_sizes={"train": {"easy": 144, "hard": 16}},
    val_sizes={"easy": 100, "hard": 200},
    draw_items=two_turn_task.distinct_puzzles,
    question=two_turn_corpus.question,
    draw=two_turn_corpus.draw,
    pieces=pieces.two_turn_pieces(),
    quality=two_turn_measure.quality,
    recipe=SHORT,
)
THREE_TURN = World(
    source="three_turn",
    folder="data/three_turn",
    # Mostly hard: what nobody can know at once, feedback has to help with.
    train_sizes={"train": {"easy": 48, "hard": 112}},
    val_sizes={"easy": 100, "hard": 200},
    draw_items=two_turn_task.distinct_puzzles,
    question=two_turn_corpus.question,
    draw=three_turn_corpus.draw,
    pieces=pieces.three_turn_pieces(),
    quality=three_turn_measure.quality,
    recipe=SHORT,
)


def with_other_tables(seed: int) -> World:
    """Return a world like ``tiny`` with secret tables and problems of its own, from ``seed``."""
    hard = task.hard_family(seed)
    return replace(
        ONE_TURN,
        draw_items=partial(_draw_chains, hard),
        draw=partial(corpus.draw, hard=hard),
        split_seed=seed,
    )


WORLDS = {"one_turn": ONE_TURN, "two_turn": TWO_TURN, "three_turn": THREE_TURN}

"""Rebuild an embedded world: ``python recipe/hint/main_tiny.py --world two_turn``.

``--only problems,tokenizer`` rebuilds the parts that take seconds; the base takes minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import platform
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from recipe.hint.prompt import Message
from recipe.problems import columns
from recipe.problems.schema import HINT_COLUMN
from recipe.run.arguments import Parser
from recipe.run.ending import errors_in_one_line
from recipe.run.errors import DataError
from recipe.worlds import base, chains, three_turn, two_turn
from recipe.worlds.base import Draw, Recipe, Sampler

logger = logging.getLogger(__name__)
PARTS = ("problems", "tokenizer", "base", "measurement")
VAL_SIZES = {"easy": 100, "hard": 200}  # held-out problems of every world, a file each
# File of the training problems with columns of hints -> sets of hints for each problem.
HINT_FILES = {"train_hints": 1, "train_hints_10": 10}
LOG_NAME, FACTS_NAME, HASHES_NAME = "build.log", "BASE.json", "SHA256SUMS"
Row = dict[str, Any]
Item = chains.Chain | two_turn.Puzzle

# The contract's, but for the kind: all problems are mathematics.
_REWARD = pa.field("reward_model", pa.struct({"style": pa.string(), "ground_truth": pa.string()}))
SCHEMA = columns.SCHEMA.set(columns.SCHEMA.get_field_index("reward_model"), _REWARD)


@dataclass(frozen=True, slots=True)
class World:
    """One embedded world.

    Attributes:
        source: First part of ``data_source`` and of the ids; its folder in data/.
        train_sizes: Training file -> family -> problems; smaller files are subsets of larger ones.
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
    train_sizes: Mapping[str, Mapping[str, int]]
    draw_items: Callable[[str, int, random.Random], Sequence[Item]]
    question: Callable[[str], list[Message]]
    draw: Draw
    pieces: Sequence[str]
    quality: Callable[[Sampler, Mapping[str, Sequence[Any]]], dict[str, float]]
    recipe: Recipe
    hints: Callable[[Any, random.Random], Sequence[str]] | None = None
    split_seed: int = 0

    @property
    def folder(self) -> str:
        """Where the repository keeps it."""
        return f"data/{self.source}"


def _draw_chains(
    hard: chains.Family, family: str, count: int, rng: random.Random
) -> Sequence[chains.Chain]:
    return chains.distinct_chains(chains.EASY if family == "easy" else hard, count, rng)


ONE_TURN = World(
    source="tiny",
    train_sizes={
        "train_small": {"easy": 32, "hard": 32},
        # Mostly hard: easy problems are solved after some 20 steps and teach nothing more.
        "train": {"easy": 48, "hard": 112},
        "train_large": {"easy": 256, "hard": 256},
    },
    draw_items=partial(_draw_chains, chains.HARD),
    question=chains.question,
    draw=chains.draw,
    pieces=chains.pieces(),
    quality=chains.quality,
    recipe=Recipe(),
    hints=chains.hints_of,
)
TWO_TURN = World(
    source="two_turn",
    # Mostly easy: there a correct first response and a revision pay equally.
    train_sizes={"train": {"easy": 144, "hard": 16}},
    draw_items=two_turn.distinct_puzzles,
    question=two_turn.question,
    draw=two_turn.draw,
    pieces=two_turn.pieces(),
    quality=two_turn.quality,
    recipe=Recipe(steps=800, warmup_steps=60),
)
THREE_TURN = replace(
    TWO_TURN,
    source="three_turn",
    # Mostly hard: what nobody can know at once, feedback has to help with.
    train_sizes={"train": {"easy": 48, "hard": 112}},
    draw=three_turn.draw,
    pieces=three_turn.pieces(),
    quality=three_turn.quality,
)
WORLDS = {"one_turn": ONE_TURN, "two_turn": TWO_TURN, "three_turn": THREE_TURN}


def with_other_tables(seed: int) -> World:
    """Return a world like ``tiny`` with secret tables and problems of its own, from ``seed``."""
    hard = chains.hard_family(seed)
    return replace(
        ONE_TURN,
        draw_items=partial(_draw_chains, hard),
        draw=partial(chains.draw, hard=hard),
        split_seed=seed,
    )


def split_items(world: World, family: str) -> tuple[Sequence[Item], Sequence[Item]]:
    """Return the family's training problems, largest file, and its validation problems."""
    rng = random.Random(f"problems/{world.split_seed}/{family}")
    num_train = max(sizes[family] for sizes in world.train_sizes.values())
    items = world.draw_items(family, num_train + VAL_SIZES[family], rng)
    return items[:num_train], items[num_train:]


def problem_files(world: World) -> dict[str, list[Row]]:
    """Return file stem -> rows, the same on every call."""
    train: dict[str, list[tuple[Row, Item]]] = {}
    files: dict[str, list[Row]] = {}
    for family in VAL_SIZES:
        source = f"{world.source}/{family}"
        for_training, for_validation = split_items(world, family)
        rows = [
            {
                "prompt": world.question(item.problem),
                "problem": item.problem,
                "solution": item.solution,
                "answer": item.answer,
                "data_source": source,
                "ability": "math",
                "reward_model": {"style": "rule", "ground_truth": item.answer},
                "extra_info": {
                    "index": f"{source}/{number:04d}",
                    "split": "train" if number < len(for_training) else "val",
                },
            }
            for number, item in enumerate([*for_training, *for_validation])
        ]
        train[family] = list(zip(rows, for_training, strict=False))
        files[f"val_{family}"] = rows[len(for_training) :]
    for stem, sizes in world.train_sizes.items():
        chosen = [pair for family, pairs in train.items() for pair in pairs[: sizes[family]]]
        random.Random(f"order/{world.split_seed}/{stem}").shuffle(chosen)
        files[stem] = [row for row, _ in chosen]
        if stem == "train" and world.hints:
            for hinted, num_sets in HINT_FILES.items():
                files[hinted] = [
                    row | _hint_columns(world, row, item, num_sets) for row, item in chosen
                ]
    return files


def _hint_columns(world: World, row: Row, item: Item, num_sets: int) -> dict[str, Any]:
    """Return ``hint_level_1``, ...: a text each of one set of hints, lists of several."""
    assert world.hints is not None
    seed = f"hints/{world.split_seed}/{row['extra_info']['index']}"
    sets = [world.hints(item, random.Random(f"{seed}/{number}")) for number in range(num_sets)]
    return {
        HINT_COLUMN.format(level=level): texts[0] if num_sets == 1 else list(texts)
        for level, texts in enumerate(zip(*sets, strict=True), start=1)
    }


def build_problems(world: World, out: Path) -> None:
    """Write every problem file into ``out``."""
    for stem, rows in problem_files(world).items():
        arrays = {
            name: pa.array(
                [row[name] for row in rows],
                SCHEMA.field(name).type if name in SCHEMA.names else None,
            )
            for name in rows[0]
        }
        pq.write_table(pa.table(arrays), out / f"{stem}.parquet")
        logger.info("%s.parquet: %d rows", stem, len(rows))


def build_base(world: World, out: Path, num_threads: int, command: str) -> None:
    """Pre-train the base, write it, its loss curve, and how it was made (``command``)."""
    torch.set_num_threads(num_threads)
    began = time.monotonic()
    tokenizer = base.build_tokenizer(world.pieces)
    model, curve = base.pretrain(tokenizer, world.recipe, world.draw)
    model.save_pretrained(out / "base")
    facts = {
        "command": command,
        "recipe": asdict(world.recipe),
        "parameters": model.num_parameters(),
        "vocabulary": len(tokenizer),
        "pretrain_seconds": round(time.monotonic() - began),
        "threads": num_threads,
        "machine": platform.machine(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    (out / FACTS_NAME).write_text(json.dumps(facts, indent=2) + "\n")
    (out / LOG_NAME).write_text("\n".join(curve) + "\n")


def load_base(folder: Path) -> Sampler:
    """Load the saved base on the CPU, with the tokenizer read back from its files."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return Sampler(model.eval(), AutoTokenizer.from_pretrained(folder))


def val_items(world: World) -> dict[str, Sequence[Item]]:
    """Return family -> its held-out problems."""
    return {family: split_items(world, family)[1] for family in VAL_SIZES}


def build_measurement(world: World, out: Path) -> None:
    """Measure the saved base on the validation problems and add the numbers to its facts.

    Raises:
        DataError: If there is no base yet.
    """
    path = out / FACTS_NAME
    if not path.exists():
        raise DataError(f"{path} does not exist; build the base first (--only base,measurement)")
    quality = world.quality(load_base(out / "base"), val_items(world))
    facts = json.loads(path.read_text())
    facts["measured_on"] = {
        **{f"{family}_problems": size for family, size in VAL_SIZES.items()},
        "replies_per_problem": base.GROUP_SIZE,
        "temperature": 1.0,
    }
    facts["quality"] = quality
    path.write_text(json.dumps(facts, indent=2) + "\n")
    for name, value in quality.items():
        logger.info("%-24s %.4f", name, value)


def file_hashes(out: Path) -> Mapping[str, str]:
    """Return path relative to ``out`` -> SHA-256, for every file but the list itself."""
    names = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    return {
        name.as_posix(): hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in names
        if name.name != HASHES_NAME
    }


@errors_in_one_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Build the chosen parts in their order, then the list of hashes."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    parser = Parser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--world", default="one_turn", choices=WORLDS)
    parser.add_argument("--out", type=Path, help="folder to write; the world's own in data/")
    parser.add_argument(
        "--tables", type=int, help="seed of another world of one turn: secret tables and problems"
    )
    parser.add_argument("--only", default=",".join(PARTS), help=f"parts of {','.join(PARTS)}")
    parser.add_argument("--seed", type=int, help="seed of the pre-training")
    parser.add_argument("--steps", type=int, help="pre-training updates")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads of the pre-training")
    arguments = parser.parse_args(argv)
    parts = arguments.only.split(",")
    if unknown := sorted(set(parts) - set(PARTS)):
        parser.error(f"--only: unknown part {', '.join(unknown)}; choose from {', '.join(PARTS)}")
    if arguments.tables is not None and (arguments.world != "one_turn" or arguments.out is None):
        parser.error("--tables needs --world one_turn, and --out: data/ is the world's own")
    _build(arguments, parts)


def _build(arguments: argparse.Namespace, parts: Sequence[str]) -> None:
    world, chosen = WORLDS[arguments.world], f"--world {arguments.world}"
    if arguments.tables is not None:
        world, chosen = with_other_tables(arguments.tables), f"--tables {arguments.tables}"
    changes = {"seed": arguments.seed, "steps": arguments.steps}
    changes = {name: value for name, value in changes.items() if value is not None}
    world = replace(world, recipe=replace(world.recipe, **changes))
    out: Path = arguments.out or Path(world.folder)
    (out / "base").mkdir(parents=True, exist_ok=True)
    if "problems" in parts:
        build_problems(world, out)
    if "tokenizer" in parts:
        base.build_tokenizer(world.pieces).save_pretrained(out / "base")
    if "base" in parts:
        command = f"python recipe/hint/main_tiny.py {chosen} --out {out}"
        build_base(world, out, arguments.threads, command)
    if "measurement" in parts:
        build_measurement(world, out)
    lines = [f"{digest}  {name}\n" for name, digest in file_hashes(out).items()]
    (out / HASHES_NAME).write_text("".join(lines))  # as ``sha256sum --check`` reads it

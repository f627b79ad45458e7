"""Rebuild an embedded world: ``hint tiny --world two_turn``.

``--problems`` rebuilds all but the base, in seconds; the base takes minutes.
"""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
import transformers

from recipe.problems.schema import HINT_COLUMN
from recipe.run.ending import Parser, errors_in_one_line
from recipe.run.whole_file import file_sha256
from recipe.worlds import base, chains, plans, three_turn, two_turn
from recipe.worlds.base import Recipe

logger = logging.getLogger(__name__)
VAL_SIZES = {"easy": 100, "hard": 200}  # held-out problems of every world, a file each
FACTS_NAME, HASHES_NAME = "BASE.json", "SHA256SUMS"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class World:
    """One embedded world.

    ``source`` begins its ids and names its folder in data/; ``task`` is the module of its problems
    and of what its base learns; ``train_sizes`` give problems per file and family, smaller files
    being subsets; ``tables`` is the seed of other secret tables and problems than those in data/.
    """

    source: str
    task: ModuleType
    train_sizes: Mapping[str, Mapping[str, int]]
    recipe: Recipe = field(default_factory=Recipe)
    tables: int | None = None

    def of_task(self, name: str) -> Callable[..., Any]:
        """Return a function of the task, with the secret tables where they are not its own."""
        found = getattr(self.task, name)
        if self.tables is None or self.task is not chains:
            return found
        return partial(found, hard=chains.hard_family(self.tables))


ONE_TURN = World(
    "tiny",
    chains,
    {
        "train_small": {"easy": 32, "hard": 32},
        # Mostly hard: easy problems are solved after some 20 steps and teach nothing more.
        "train": {"easy": 48, "hard": 112},
        "train_large": {"easy": 256, "hard": 256},
    },
)
# Mostly easy: there a correct first response and a revision pay equally.
TWO_TURN = World(
    "two_turn", two_turn, {"train": {"easy": 144, "hard": 16}}, Recipe(steps=800, warmup_steps=60)
)
# Mostly hard: what nobody can know at once, feedback has to help with.
THREE_TURN = replace(
    TWO_TURN, source="three_turn", task=three_turn, train_sizes={"train": {"easy": 48, "hard": 112}}
)
# Easy problems are never trained on: they show what training damages.
FOREIGN = World("foreign", plans, {"train": {"easy": 0, "hard": 80}}, Recipe(steps=2600))
WORLDS = {"one_turn": ONE_TURN, "two_turn": TWO_TURN, "three_turn": THREE_TURN}
WORLDS["foreign"] = FOREIGN


def problem_files(world: World) -> dict[str, list[Row]]:
    """Return file stem -> rows, the same on every call."""
    seed = world.tables or 0
    train: dict[str, list[tuple[Row, Any]]] = {}
    files: dict[str, list[Row]] = {}
    for family, num_val in VAL_SIZES.items():
        source = f"{world.source}/{family}"
        num_train = max(sizes[family] for sizes in world.train_sizes.values())
        rng = random.Random(f"problems/{seed}/{family}")
        items = world.of_task("distinct")(family, num_train, num_val, rng)
        rows = [
            {
                "prompt": world.task.question(item.problem),
                "problem": item.problem,
                "solution": item.solution,
                "answer": item.answer,
                "data_source": source,
                "ability": "math",
                "reward_model": {"style": "rule", "ground_truth": item.answer},
                "extra_info": {
                    "index": f"{source}/{number:04d}",
                    "split": "train" if number < num_train else "val",
                },
                **getattr(item, "more_columns", {}),
            }
            for number, item in enumerate(items)
        ]
        train[family] = list(zip(rows[:num_train], items, strict=False))
        files[f"val_{family}"] = rows[num_train:]
    for stem, sizes in world.train_sizes.items():
        chosen = [pair for family, pairs in train.items() for pair in pairs[: sizes[family]]]
        random.Random(f"order/{seed}/{stem}").shuffle(chosen)
        files[stem] = [row for row, _ in chosen]
        others = [item for _, item in chosen[1:] + chosen[:1]]
        hint_files = getattr(world.task, "HINT_FILES", {}) if stem == "train" else {}
        for hinted, hints in hint_files.items():
            files[hinted] = []
            for (row, item), other in zip(chosen, others, strict=True):
                name = f"hints/{seed}/{row['extra_info']['index']}"
                texts = enumerate(hints(item, other, name), 1)
                columns = {HINT_COLUMN.format(level=level): text for level, text in texts}
                files[hinted].append(row | columns)
    return files


def build_base(world: World, out: Path, command: str) -> None:
    """Pre-train the base, write it and how it was made (``command``)."""
    tokenizer = base.build_tokenizer(world.task.pieces())
    model = base.pretrain(tokenizer, world.recipe, world.of_task("draw"))
    model.save_pretrained(out / "base")
    versions = {each.__name__: each.__version__ for each in (torch, transformers)}
    facts = {"command": command, "recipe": asdict(world.recipe), **versions}
    (out / FACTS_NAME).write_text(json.dumps(facts, indent=2) + "\n")


def file_hashes(out: Path) -> dict[str, str]:
    """Return path relative to ``out`` -> SHA-256, for every file but the list itself."""
    names = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    return {name: file_sha256(out / name) for name in names if name != HASHES_NAME}


@errors_in_one_line()
def main(argv: Sequence[str] | None = None) -> None:
    """Build the problems, the tokenizer and the base, then the list of hashes."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    parser = Parser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--world", default="one_turn", choices=WORLDS)
    parser.add_argument("--out", type=Path, help="folder to write; the world's own in data/")
    parser.add_argument(
        "--tables", type=int, help="seed of another world of this kind: secret tables and problems"
    )
    parser.add_argument("--problems", action="store_true", help="no base: all else, in seconds")
    parser.add_argument("--seed", type=int, default=0, help="of the pre-training")
    given = parser.parse_args(argv)
    if given.tables is not None and not (given.out and given.world in ("one_turn", "foreign")):
        parser.error("--tables needs --world one_turn or foreign, and --out")
    world = WORLDS[given.world]
    world = replace(world, recipe=replace(world.recipe, seed=given.seed), tables=given.tables)
    out = given.out or Path("data", world.source)
    (out / "base").mkdir(parents=True, exist_ok=True)
    for stem, rows in problem_files(world).items():
        pq.write_table(pa.Table.from_pylist(rows), out / f"{stem}.parquet")
    base.build_tokenizer(world.task.pieces()).save_pretrained(out / "base")
    if not given.problems:
        chosen = f"--world {given.world}" + (f" --tables {given.tables}" if given.tables else "")
        build_base(world, out, f"python recipe/hint/main_tiny.py {chosen} --out {out}")
    lines = [f"{digest}  {name}\n" for name, digest in file_hashes(out).items()]
    (out / HASHES_NAME).write_text("".join(lines))  # as ``sha256sum --check`` reads it

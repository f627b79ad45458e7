"""Writes the files of an embedded world: problems, tokenizer, base, measured quality, hashes."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import random
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from recipe.problems import columns
from recipe.problems.schema import HINT_COLUMN
from recipe.run.errors import DataError
from recipe.run.whole_file import whole_file, write_whole
from recipe.worlds import measure, pretrain, tokenizer
from recipe.worlds.worlds import Item, World

logger = logging.getLogger(__name__)
# File of the training problems with columns of hints -> sets of hints for each problem.
HINT_FILES = {"train_hints": 1, "train_hints_10": 10}
LOG_NAME, FACTS_NAME, HASHES_NAME = "build.log", "BASE.json", "SHA256SUMS"
Row = dict[str, Any]

# The contract's, but for the kind: all problems are mathematics.
_REWARD = pa.field("reward_model", pa.struct({"style": pa.string(), "ground_truth": pa.string()}))
SCHEMA = columns.SCHEMA.set(columns.SCHEMA.get_field_index("reward_model"), _REWARD)


def problem_row(world: World, item: Item, *, family: str, number: int, split: str) -> Row:
    """Return one row of a problem file; ``number`` counts a family's problems over all splits."""
    source = f"{world.source}/{family}"
    return {
        "prompt": world.question(item.problem),
        "problem": item.problem,
        "solution": item.solution,
        "answer": item.answer,
        "data_source": source,
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": item.answer},
        "extra_info": {"index": f"{source}/{number:04d}", "split": split},
    }


def split_items(world: World, family: str) -> tuple[Sequence[Item], Sequence[Item]]:
    """Return the family's training problems, largest file, and its validation problems."""
    rng = random.Random(f"problems/{world.split_seed}/{family}")
    num_train = max(sizes[family] for sizes in world.train_sizes.values())
    items = world.draw_items(family, num_train + world.val_sizes[family], rng)
    return items[:num_train], items[num_train:]


def problem_files(world: World) -> dict[str, list[Row]]:
    """Return file stem -> rows, the same on every call."""
    train: dict[str, list[Row]] = {}
    files: dict[str, list[Row]] = {}
    for family in world.val_sizes:
        for_training, for_validation = split_items(world, family)
        train[family] = [
            problem_row(world, item, family=family, number=number, split="train")
            for number, item in enumerate(for_training)
        ]
        files[f"val_{family}"] = [
            problem_row(world, item, family=family, number=number, split="val")
            for number, item in enumerate(for_validation, start=len(for_training))
        ]
    for stem, sizes in world.train_sizes.items():
        files[stem] = [row for family, rows in train.items() for row in rows[: sizes[family]]]
        random.Random(f"order/{world.split_seed}/{stem}").shuffle(files[stem])
    if world.hints:
        items = {
            item.problem: item for name in world.val_sizes for item in split_items(world, name)[0]
        }
        for stem, num_sets in HINT_FILES.items():
            files[stem] = [
                row | hint_columns(world, row, items[row["problem"]], num_sets)
                for row in files["train"]
            ]
    return files


def hint_columns(world: World, row: Row, item: Item, num_sets: int) -> dict[str, Any]:
    """Return ``hint_level_1``, ...: a text each of one set of hints, lists of several."""
    assert world.hints is not None, "only a world with hints has their columns"
    seed = f"hints/{world.split_seed}/{row['extra_info']['index']}"
    sets = [world.hints(item, random.Random(f"{seed}/{number}")) for number in range(num_sets)]
    levels = enumerate(zip(*sets, strict=True), start=1)
    return {
        HINT_COLUMN.format(level=level): texts[0] if num_sets == 1 else list(texts)
        for level, texts in levels
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
        with whole_file(out / f"{stem}.parquet") as file:
            pq.write_table(pa.table(arrays), file)
        logger.info("%s.parquet: %d rows", stem, len(rows))


def build_tokenizer(world: World, out: Path) -> None:
    """Write the tokenizer's files into ``out/base``."""
    with _moved_into(out / "base") as draft:
        built = tokenizer.save_tokenizer(draft, world.pieces)
    logger.info("tokenizer: %d tokens", len(built))


def build_base(world: World, out: Path, num_threads: int, command: str) -> None:
    """Pre-train the base, write it, its loss curve, and how it was made (``command``)."""
    torch.set_num_threads(num_threads)
    began = time.monotonic()
    built = tokenizer.build_tokenizer(world.pieces)
    model, curve = pretrain.pretrain(built, world.recipe, world.draw)
    with _moved_into(out / "base") as draft:
        pretrain.save_model(model, built, draft)
    facts = {
        "command": command,
        "recipe": asdict(world.recipe),
        "parameters": model.num_parameters(),
        "vocabulary": len(built),
        "pretrain_seconds": round(time.monotonic() - began),
        "threads": num_threads,
        "machine": platform.machine(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    write_whole(out / FACTS_NAME, json.dumps(facts, indent=2) + "\n")
    write_whole(out / LOG_NAME, "\n".join(curve) + "\n")


def load_base(folder: Path) -> measure.Sampler:
    """Load the saved base on the CPU, with the tokenizer read back from its files."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return measure.Sampler(model.eval(), AutoTokenizer.from_pretrained(folder))


def val_items(world: World) -> dict[str, Sequence[Item]]:
    """Return family -> its held-out problems."""
    return {family: split_items(world, family)[1] for family in world.val_sizes}


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
        **{f"{family}_problems": size for family, size in world.val_sizes.items()},
        "replies_per_problem": measure.GROUP_SIZE,
        "temperature": 1.0,
    }
    facts["quality"] = quality
    write_whole(path, json.dumps(facts, indent=2) + "\n")
    for name, value in quality.items():
        logger.info("%-24s %.4f", name, value)


def file_hashes(out: Path) -> Mapping[str, str]:
    """Return path relative to ``out`` -> SHA-256, for every file but the list itself and drafts."""
    names = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    return {
        name.as_posix(): hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in names
        if name.name != HASHES_NAME and not any(part.startswith(".") for part in name.parts)
    }


def write_hashes(out: Path) -> None:
    """Write the list in the form that ``sha256sum --check`` reads."""
    lines = [f"{digest}  {name}\n" for name, digest in file_hashes(out).items()]
    write_whole(out / HASHES_NAME, "".join(lines))


@contextmanager
def _moved_into(folder: Path) -> Iterator[Path]:
    """Give a draft folder, whose files take their places in ``folder`` when the block ends well.

    A program that is killed in the block leaves the old files.
    """
    draft = folder.with_name(f".{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)  # of a program that was killed
    draft.mkdir()
    try:
        yield draft
        for path in draft.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        for path in sorted(draft.iterdir()):
            os.replace(path, folder / path.name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)

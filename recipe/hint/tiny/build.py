"""Writes the files of ``data/tiny``: problems, tokenizer, base model, measured quality, hashes."""

from __future__ import annotations

import hashlib
import json
import logging
import platform
import random
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer

from recipe.hint.errors import DataError
from recipe.hint.tiny import corpus, measure, pretrain, tokenizer
from recipe.hint.tiny.task import FAMILIES, Chain, distinct_chains

logger = logging.getLogger(__name__)
SPLIT_SEED = 0
# Problems per family; the smaller training files are subsets of the larger ones.
TRAIN_SIZES = {
    "train_small": {"easy": 32, "hard": 32},
    # Mostly hard: easy problems are solved after some 20 steps and teach nothing more.
    "train": {"easy": 48, "hard": 112},
    "train_large": {"easy": 256, "hard": 256},
}
VAL_SIZES = {"easy": 100, "hard": 200}
LOG_NAME, FACTS_NAME, HASHES_NAME = "build.log", "BASE.json", "SHA256SUMS"
Row = dict[str, Any]

_text = pa.string()
SCHEMA = pa.schema(
    {
        "prompt": pa.list_(pa.struct({"role": _text, "content": _text})),
        "problem": _text,
        "solution": _text,
        "answer": _text,
        "data_source": _text,
        "ability": _text,
        "reward_model": pa.struct({"style": _text, "ground_truth": _text}),
        "extra_info": pa.struct({"index": _text, "split": _text}),
    }
)


def problem_row(chain: Chain, *, source: str, number: int, split: str) -> Row:
    """Return one row of a problem file; ``number`` counts a family's problems over all splits."""
    return {
        "prompt": corpus.question(chain.problem),
        "problem": chain.problem,
        "solution": chain.solution,
        "answer": chain.answer,
        "data_source": source,
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": chain.answer},
        "extra_info": {"index": f"{source}/{number:04d}", "split": split},
    }


def split_chains(family: str) -> tuple[list[Chain], list[Chain]]:
    """Return the family's training problems, largest file, and its validation problems."""
    rng = random.Random(f"problems/{SPLIT_SEED}/{family}")
    num_train = max(sizes[family] for sizes in TRAIN_SIZES.values())
    chains = distinct_chains(FAMILIES[family], num_train + VAL_SIZES[family], rng)
    return chains[:num_train], chains[num_train:]


def problem_files() -> dict[str, list[Row]]:
    """Return file stem -> rows, the same on every call."""
    train: dict[str, list[Row]] = {}
    files: dict[str, list[Row]] = {}
    for family in FAMILIES:
        source = f"tiny/{family}"
        for_training, for_validation = split_chains(family)
        train[family] = [
            problem_row(chain, source=source, number=number, split="train")
            for number, chain in enumerate(for_training)
        ]
        files[f"val_{family}"] = [
            problem_row(chain, source=source, number=number, split="val")
            for number, chain in enumerate(for_validation, start=len(for_training))
        ]
    for stem, sizes in TRAIN_SIZES.items():
        files[stem] = [row for family, rows in train.items() for row in rows[: sizes[family]]]
        random.Random(f"order/{SPLIT_SEED}/{stem}").shuffle(files[stem])
    return files


def rows_digest(rows: list[Row]) -> str:
    """Return the SHA-256 of the rows as JSON lines, whatever parquet's writer does."""
    lines = (json.dumps(row, sort_keys=True) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def build_problems(out: Path) -> None:
    """Write every problem file into ``out``."""
    for stem, rows in problem_files().items():
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), out / f"{stem}.parquet")
        logger.info("%s.parquet: %d rows", stem, len(rows))


def build_tokenizer(out: Path) -> None:
    """Write the tokenizer's files into ``out/base``."""
    built = tokenizer.save_tokenizer(out / "base")
    logger.info("tokenizer: %d tokens", len(built))


def build_base(out: Path, recipe: pretrain.Recipe, num_threads: int) -> None:
    """Pre-train the base, write it, its loss curve, and how it was made."""
    torch.set_num_threads(num_threads)
    began = time.monotonic()
    built = tokenizer.build_tokenizer()
    model, curve = pretrain.pretrain(built, recipe)
    pretrain.save_model(model, built, out / "base")
    facts = {
        "command": "python recipe/hint/main_tiny.py --out data/tiny",
        "recipe": asdict(recipe),
        "parameters": model.num_parameters(),
        "vocabulary": len(built),
        "pretrain_seconds": round(time.monotonic() - began),
        "threads": num_threads,
        "machine": platform.machine(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    (out / FACTS_NAME).write_text(json.dumps(facts, indent=2) + "\n")
    (out / LOG_NAME).write_text("\n".join(curve) + "\n")


def load_base(folder: Path) -> measure.Sampler:
    """Load the saved base on the CPU, with the tokenizer read back from its files."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return measure.Sampler(model.eval(), AutoTokenizer.from_pretrained(folder))


def val_chains(family: str) -> list[Chain]:
    """Return the validation problems of ``family`` as chains."""
    return split_chains(family)[1]


def build_measurement(out: Path) -> None:
    """Measure the saved base on the validation problems and add the numbers to its facts.

    Raises:
        DataError: If there is no base yet.
    """
    path = out / FACTS_NAME
    if not path.exists():
        raise DataError(f"{path} does not exist; build the base first (--only base,measurement)")
    quality = measure.quality(load_base(out / "base"), val_chains("easy"), val_chains("hard"))
    facts = json.loads(path.read_text())
    facts["measured_on"] = {
        **{f"{family}_problems": size for family, size in VAL_SIZES.items()},
        "replies_per_problem": measure.GROUP_SIZE,
        "temperature": 1.0,
    }
    facts["quality"] = quality
    path.write_text(json.dumps(facts, indent=2) + "\n")
    for name, value in quality.items():
        logger.info("%-24s %.4f", name, value)


def file_hashes(out: Path) -> Mapping[str, str]:
    """Return path relative to ``out`` -> SHA-256, for every file but the list itself."""
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.name != HASHES_NAME)
    return {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def write_hashes(out: Path) -> None:
    """Write the list in the form that ``sha256sum --check`` reads."""
    lines = [f"{digest}  {name}\n" for name, digest in file_hashes(out).items()]
    (out / HASHES_NAME).write_text("".join(lines))

"""Draw problems of a reasoning-gym data set (Apache-2.0, github.com/open-thought/reasoning-gym).

The library's score grades, unless the command says otherwise. A fifth of its templates, or of its
problems where it has none, is of the split ``test``, by a digest: whatever the seeds, the splits
share no template and no text.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recipe.run.errors import DataError, one_line
from recipe.run.typed import read_yaml
from recipe.verify.gym import KIND, data_sets, score_of

Record = dict[str, Any]
PREFIX = f"{KIND}:"
_SEED_STEP = 1_000_000  # draw i of a data set object is made by its seed plus i
_CHUNK = 100  # draws of one object: what some give depends on its size
_MAX_DRAWS_PER_PROBLEM = 50
# Their scores take one answer for almost every problem.
TAKES_ALL = {"coin_flip", "complex_arithmetic", "game_of_life_halting", "puzzle24"}


def draw_records(
    name: str, split: str, num: int, seed: int, config: Sequence[str]
) -> tuple[list[Record], list[str]]:
    """Return records with a ``place`` as ``prepare.own_row`` reads them, and warnings.

    There are fewer than ``num`` where 50 draws for each have no more. Draw i has the library's seed
    1,000,000 * seed + i. ``config`` are ``KEY=VALUE`` of the data set, with values in YAML.
    ``DataError`` for what the library does not have, ``ConfigError`` if it is not installed.
    """
    if split not in ("train", "test") or num < 1:
        raise DataError(f"{PREFIX}{name}: {split=}, {num} problems; give train or test, 1 or more")
    options = {key: read_yaml(value) for key, _, value in (each.partition("=") for each in config)}
    records: dict[str, Record] = {}  # by the problem
    skipped: Counter[str] = Counter()
    number = 0
    for number, (data_set, index) in enumerate(_draws(name, seed * _SEED_STEP, options)):
        if len(records) >= num or number >= num * _MAX_DRAWS_PER_PROBLEM:
            break
        template = str(getattr(data_set, "task_indices", {index: ""})[index])
        try:
            made = _record(data_set[index], name, data_set)
        except Exception as error:  # noqa: BLE001 - a generator of the library may raise anything
            skipped[f"{type(error).__name__}: {one_line(error, 80)}"] += 1
            continue
        template, problem = made.pop("template") or template, made["problem"]
        digest = hashlib.sha256((template or problem).encode()).digest()
        if (digest[0] % 5 == 0) == (split == "test"):
            own = {"name": name, "config": repr(options), "entry": made.pop("entry")}
            made |= {"place": f"draw {number}", "extra_info": {"template": template, KIND: own}}
            records.setdefault(problem, made)
    told = [f"{count} draws left out: {why}" for why, count in skipped.items()]
    if len(records) < num:
        told.append(f"{len(records)} problems of {num}: {number} draws have no more")
    return list(records.values()), told


def _draws(name: str, seed: int, options: dict[str, Any]) -> Iterator[tuple[Any, int]]:
    """Yield data set objects, each with an index; without an end."""
    library = data_sets()
    if name not in library.DATASETS:
        known = ", ".join(sorted(library.DATASETS))
        raise DataError(f"{PREFIX}{name}: no such data set; choose from {known}")
    for start in itertools.count(0, _CHUNK):
        try:
            data_set = library.create_dataset(name, seed=seed + start, size=_CHUNK, **options)
        except (AssertionError, TypeError, ValueError) as error:
            raise DataError(f"{PREFIX}{name}: --config: {one_line(error, 200)}") from error
        yield from ((data_set, index) for index in range(_CHUNK))


def _record(given: Mapping[str, Any], name: str, data_set: Any) -> Record:
    metadata = {key: each for key, each in given["metadata"].items() if _reads_back(each)}
    answer, entry = given["answer"], {"answer": given["answer"], "metadata": metadata}
    if answer is not None and score_of(answer, name, data_set, entry) < 1:
        raise ValueError("the library's score of its own answer is below 1")
    return {
        "problem": given["question"],
        "answer": "any that the score accepts" if answer is None else answer,
        "solution": "\n".join(_solution(metadata)),
        "template": metadata.get("task_id") or metadata.get("task_name") or "",
        "entry": repr(entry),
        "reward_model": {"kind": KIND},
    }


def _reads_back(value: Any) -> bool:
    with contextlib.suppress(ValueError, SyntaxError):
        return ast.literal_eval(repr(value)) == value
    return False


def _solution(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a worked solution: the library's own, else one of ours, else none."""
    if own := metadata.get("answer_cot"):
        yield own.partition("####")[0].strip()  # the answer stands behind the mark
    if metadata.get("source_dataset") != "leg_counting":
        return
    from reasoning_gym.arithmetic.leg_counting import ANIMALS  # pyright: ignore[reportMissingImports]

    total, animals = 0, list(metadata["animals"].items())
    # Those without legs first: behind the last product the total would not change.
    for each, num in sorted(animals, key=lambda item: ANIMALS[item[0]] > 0):
        product = num * ANIMALS[each]
        sums = f", {total} + {product} = {total + product}" * bool(total)
        yield f"{each}: {num} x {ANIMALS[each]} = {product}{sums}"
        total += product

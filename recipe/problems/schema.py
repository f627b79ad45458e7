"""One problem of a data file, and how a row becomes one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recipe.run.errors import DataError
from recipe.verify.schema import Kind

HINT_COLUMN_PREFIX = "hint_level_"
HINT_COLUMN = HINT_COLUMN_PREFIX + "{level}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One row of a data file, as methods and hint sources see it.

    ``messages`` asks for the answer, ``text`` is the question alone, and ``first_attempts`` are
    responses that a multi-turn method may continue. ``hints[k - 1]`` are the file's texts for level
    k; where there are several, one is chosen (``complete_sets``), and some may be empty.
    ``row`` is JSON: the row's ``data_source``, ``ground_truth`` and ``extra_info`` as they stand
    there, for a user's own reward function.
    """

    id: str
    messages: tuple[dict[str, str], ...]
    text: str
    solution: str
    answer: str
    data_source: str = ""
    kind: Kind = "maths"
    hints: tuple[tuple[str, ...], ...] = ()
    row: str = ""
    first_attempts: tuple[str, ...] = ()


def problem_from_row(row: Mapping[str, Any]) -> Problem:
    """Return the problem of one row, as the file or verl's data set class gives it.

    ``raw_prompt`` is verl's name for the column ``prompt`` once the row is loaded; both are
    accepted. The solution stays empty when the file has none: the answer never takes its place.

    Raises:
        DataError: If the conversation or the ground truth is missing.
    """
    messages = row.get("raw_prompt", row.get("prompt"))
    if messages is None or not len(messages):
        raise DataError("a row has neither `raw_prompt` nor `prompt`; see docs/data.md")
    turns = tuple({"role": turn["role"], "content": turn["content"]} for turn in messages)
    text = row.get("problem") or turns[-1]["content"]
    reward = row.get("reward_model") or {}
    truth = reward.get("ground_truth", row.get("answer"))
    if truth is None:
        raise DataError(f"no `reward_model.ground_truth` for the problem {text[:60]!r}")
    extra_info = row.get("extra_info") or {}
    index = extra_info.get("index")
    first_attempts = row.get("first_attempts")
    data_source = row.get("data_source", "")
    call = {"data_source": data_source, "ground_truth": truth, "extra_info": extra_info}
    return Problem(
        id=str(index) if index is not None else content_id(text),
        messages=turns,
        text=text,
        solution=row.get("solution") or "",
        answer=str(truth),
        data_source=str(data_source),
        kind=reward.get("kind") or "maths",
        hints=hint_columns(row),
        row=json.dumps(call, default=_plain),
        first_attempts=tuple(first_attempts) if first_attempts is not None else (),
    )


def content_id(text: str) -> str:
    """Return a stable id for a problem without one: 16 hex digits of its text's sha256."""
    return "sha-" + hashlib.sha256(text.encode()).hexdigest()[:16]


def hint_columns(row: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Return the texts of ``hint_level_1``, ``hint_level_2``, ..., as far as they go.

    A column holds one text or a list of them, in which a blank one becomes empty and keeps its
    place; an empty tuple stands for a row without any.
    """
    levels: list[tuple[str, ...]] = []
    while (name := HINT_COLUMN.format(level=len(levels) + 1)) in row:
        value = row[name]
        texts = [value] if isinstance(value, str) else [] if value is None else list(value)
        texts = [text if isinstance(text, str) and text.strip() else "" for text in texts]
        levels.append(tuple(texts) if any(texts) else ())
    return tuple(levels)


def complete_sets(hints: Sequence[Sequence[str]], max_level: int) -> list[list[str]]:
    """Return the texts to choose from at levels 1..L, without sets in which a level is blank.

    Text i of every list belongs to set i, a single text to all sets. If the lists differ in
    length there are no sets, and only blank texts are left out. A level without texts gets an
    empty list.
    """
    levels = [list(texts) for texts in hints[:max_level]]
    levels += [[] for _ in range(max_level - len(levels))]
    num_sets = max(map(len, levels), default=0)
    if any(len(texts) not in (1, num_sets) for texts in levels):
        return [list(filter(None, texts)) for texts in levels]
    whole = [n for n in range(num_sets) if all(texts[n % len(texts)] for texts in levels)]
    return [[texts[n] for n in whole] if len(texts) > 1 else texts for texts in levels]


def _plain(value: Any) -> Any:
    """Return an array as a list, and any other value that JSON lacks (dates, bytes) as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)

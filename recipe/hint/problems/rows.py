"""A row of the parquet contract, as verl's data set class hands it out, as a Problem."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from recipe.hint.errors import DataError
from recipe.hint.hints.dataset import hint_columns
from recipe.hint.schema import Problem


def content_id(text: str) -> str:
    """A stable id for a problem without one: 16 hex digits of its text's sha256."""
    return "sha-" + hashlib.sha256(text.encode()).hexdigest()[:16]


def problem_from_row(row: Mapping[str, Any]) -> Problem:
    """The problem of one row.

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
    index = (row.get("extra_info") or {}).get("index")
    return Problem(
        id=str(index) if index is not None else content_id(text),
        messages=turns,
        text=text,
        solution=row.get("solution") or "",
        answer=str(truth),
        data_source=str(row.get("data_source", "")),
        kind=reward.get("kind") or "maths",
        hints=hint_columns(row),
        row=_call(row, truth),
    )


def _call(row: Mapping[str, Any], truth: Any) -> str:
    """The fields that a user's own reward function is called with, as JSON."""
    fields = {
        "data_source": row.get("data_source", ""),
        "ground_truth": truth,
        "extra_info": row.get("extra_info") or {},
    }
    return json.dumps(fields, default=_plain)


def _plain(value: Any) -> Any:
    """Arrays as lists, and what JSON has no name for (dates, bytes) as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)

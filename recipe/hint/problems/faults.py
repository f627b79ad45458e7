"""What is wrong with one row of the parquet contract, column by column."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from recipe.hint.schema import Kind
from recipe.hint.verify.programs.checklist import Checklist
from recipe.hint.verify.programs.refusals import Unrunnable

# How programs spell what is no number; a limit that does not exist is written in words or LaTeX.
_NO_NUMBER = re.compile(r"\s*[+-]?(?:nan|inf)\s*", re.IGNORECASE)
KINDS: tuple[Kind, ...] = get_args(Kind)


def row_faults(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with a row, as (column, what)."""
    if fault := _prompt_fault(row.get("prompt")):
        yield "prompt", fault
    if not is_text(row.get("problem")):
        yield "problem", f"expected a text that is not empty, got {short(row.get('problem'))}"
    if not isinstance(row.get("solution"), str | None):
        yield "solution", f"expected a text or nothing, got {short(row.get('solution'))}"
    for column in ("reward_model", "extra_info"):
        if not isinstance(row.get(column), Mapping | None):
            yield column, f"expected named fields, got {short(row.get(column))}"
            return
    yield from _reward_faults(row)
    index = (row.get("extra_info") or {}).get("index")
    if not (index is None or is_text(index)) and type(index) is not int:
        yield "extra_info.index", f"expected a text or an integer, got {short(index)}"


def truth_fault(kind: Kind, truth: str) -> str:
    """Why ``truth`` cannot be a ground truth of this kind, or an empty text."""
    if kind == "choice" and not (len(truth) == 1 and "A" <= truth <= "Z"):
        return f"the ground truth of a choice is one letter from A to Z, got {short(truth)}"
    if kind == "program":
        return _program_fault(truth)
    return f"{truth.strip()} is not a finite number" if _NO_NUMBER.fullmatch(truth) else ""


def is_text(value: Any) -> bool:
    """Whether a value is a text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def short(value: Any) -> str:
    """A value as a message shows it, 60 characters at most."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def one_line(error: BaseException) -> str:
    """An error's text without line breaks, 200 characters at most."""
    return " ".join(str(error).split())[:200]


def _reward_faults(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    reward = row.get("reward_model") or {}
    column = "reward_model.ground_truth" if "ground_truth" in reward else "answer"
    truth = reward.get("ground_truth", row.get("answer"))
    kind = reward.get("kind") or "maths"
    if kind not in KINDS:
        yield "reward_model.kind", f"expected one of {', '.join(KINDS)}, got {short(kind)}"
    elif not is_text(truth) and (isinstance(truth, bool) or not isinstance(truth, int | float)):
        yield column, f"the ground truth is missing or no text or number: {short(truth)}"
    elif fault := truth_fault(kind, str(truth)):
        yield column, fault


def _program_fault(source: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a test is no fault of the row
            Checklist(source)
    except Unrunnable as error:
        return f"{one_line(error)} ({short(source)})"
    return ""


def _prompt_fault(prompt: Any) -> str:
    """What is wrong with a conversation, or an empty text."""
    if not isinstance(prompt, list) or not prompt:
        return f"expected a list of turns with role and content, got {short(prompt)}"
    for place, turn in enumerate(prompt):
        if not isinstance(turn, Mapping) or not is_text(turn.get("role")):
            return f"turn {place} is not a role and a content: {short(turn)}"
        if not isinstance(turn.get("content"), str):
            return f"the content of turn {place} is no text: {short(turn.get('content'))}"
    if prompt[-1]["role"] != "user":
        return f"the last turn must be the user's, it is the {prompt[-1]['role']}'s"
    if not prompt[-1]["content"].strip():
        return "the last turn is empty"
    return ""

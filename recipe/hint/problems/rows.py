"""One row of the parquet contract: what is wrong with it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any, get_args

from recipe.hint.schema import Kind

KINDS: tuple[Kind, ...] = get_args(Kind)
# How programs spell what is no number; a limit that does not exist is written in words or LaTeX.
_NO_NUMBER = re.compile(r"\s*[+-]?(?:nan|inf)\s*", re.IGNORECASE)


class FieldFault(ValueError):
    """One field of one row cannot be used; the reader adds the file and the place."""

    def __init__(self, column: str, what: str) -> None:
        super().__init__(what)
        self.column = column
        self.what = what


def check_row(row: Mapping[str, Any]) -> None:
    """Check a row against the contract, column by column.

    Raises:
        FieldFault: At the first column that breaks it.
    """
    if fault := _prompt_fault(row.get("prompt")):
        raise FieldFault("prompt", fault)
    problem, solution = row.get("problem"), row.get("solution")
    if not _is_text(problem):
        raise FieldFault("problem", f"expected a text that is not empty, got {short(problem)}")
    if not isinstance(solution, str | None):
        raise FieldFault("solution", f"expected a text or nothing, got {short(solution)}")
    for column in ("reward_model", "extra_info"):
        if not isinstance(row.get(column), Mapping | None):
            raise FieldFault(column, f"expected named fields, got {short(row.get(column))}")
    reward = row.get("reward_model") or {}
    column = "reward_model.ground_truth" if "ground_truth" in reward else "answer"
    truth = reward.get("ground_truth", row.get("answer"))
    kind = reward.get("kind") or "maths"
    if kind not in KINDS:
        what = f"expected one of {', '.join(KINDS)}, got {short(kind)}"
        raise FieldFault("reward_model.kind", what)
    if not _is_text(truth) and (isinstance(truth, bool) or not isinstance(truth, int | float)):
        what = f"the ground truth is missing or no text or number: {short(truth)}"
        raise FieldFault(column, what)
    check_truth(kind, str(truth), column)
    index = (row.get("extra_info") or {}).get("index")
    if not (index is None or _is_text(index)) and type(index) is not int:
        what = f"expected a text or an integer, got {short(index)}"
        raise FieldFault("extra_info.index", what)


def check_truth(kind: Kind, truth: str, column: str) -> None:
    """Check that ``truth`` can be a ground truth of this kind.

    Raises:
        FieldFault: Of ``column``, if it cannot.
    """
    if kind == "choice" and not (len(truth) == 1 and "A" <= truth <= "Z"):
        what = f"the ground truth of a choice is one letter from A to Z, got {short(truth)}"
        raise FieldFault(column, what)
    if kind == "program":
        # Here: a worker on mathematics needs none of it.
        from recipe.hint.verify.programs.checklist import Checklist
        from recipe.hint.verify.programs.refusals import Unrunnable

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an odd escape in a test is no fault of the row
                Checklist(truth)
        except Unrunnable as error:
            raise FieldFault(column, f"{one_line(error)} ({short(truth)})") from error
    elif _NO_NUMBER.fullmatch(truth):
        raise FieldFault(column, f"{truth.strip()} is not a finite number")


def short(value: Any) -> str:
    """Return a value as a message shows it, 60 characters at most."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def one_line(error: BaseException) -> str:
    """Return an error's text without line breaks, 200 characters at most."""
    return " ".join(str(error).split())[:200]


def _prompt_fault(prompt: Any) -> str:
    """Say what is wrong with a conversation; an empty text when nothing is."""
    if not isinstance(prompt, list) or not prompt:
        return f"expected a list of turns with role and content, got {short(prompt)}"
    for place, turn in enumerate(prompt):
        if not isinstance(turn, Mapping) or not _is_text(turn.get("role")):
            return f"turn {place} is not a role and a content: {short(turn)}"
        if not isinstance(turn.get("content"), str):
            return f"the content of turn {place} is no text: {short(turn.get('content'))}"
    if prompt[-1]["role"] != "user":
        return f"the last turn must be the user's, it is the {prompt[-1]['role']}'s"
    return "" if prompt[-1]["content"].strip() else "the last turn is empty"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())

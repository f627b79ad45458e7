"""Find what is wrong with one row of the parquet contract."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from recipe.problems.schema import HINT_COLUMN
from recipe.run.errors import DataError, one_line
from recipe.verify.schema import Kind

KINDS: tuple[Kind, ...] = get_args(Kind)
# How programs spell what is not a number; a limit that does not exist is written in words or LaTeX.
_NO_NUMBER = re.compile(r"\s*[+-]?(?:nan|inf)\s*", re.IGNORECASE)
# How a problem marks an option: ``(A)`` anywhere, or a letter and a sign at a line's beginning.
_MARK = re.compile(r"\(([A-Z])\)|^[ \t>*\-\[]*([A-Z])[*]*[).:\]]", re.MULTILINE)
_LISTS_OPTIONS = re.compile(r"^[ \t]*\(A\).*^[ \t]*\(B\)", re.MULTILINE | re.DOTALL)
_HINT_NAME = re.compile(HINT_COLUMN.format(level=r"\d+"))
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class FieldFault(ValueError):
    """One field of one row cannot be used; the reader adds the file and the place."""

    def __init__(self, column: str, what: str) -> None:
        super().__init__(what)
        self.column = column
        self.what = what


def check_names(place: str, names: Iterable[str]) -> None:
    """Check that each column of a file has a name of its own.

    Raises:
        DataError: Naming the first that has not, after ``place``.
    """
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{place}: has {count} columns `{name}`; give each a name of its own")


def check_row(row: Mapping[str, Any]) -> None:
    """Check a row against the contract, column by column.

    Raises:
        FieldFault: At the first column that breaks it.
    """
    if fault := prompt_fault(row.get("prompt")):
        raise FieldFault("prompt", fault)
    problem, solution = row.get("problem"), row.get("solution")
    if not _is_text(problem):
        raise FieldFault("problem", f"expected a text that is not empty, got {short(problem)}")
    if not isinstance(solution, str | None):
        raise FieldFault("solution", f"expected a text or nothing, got {short(solution)}")
    for column in ("reward_model", "extra_info"):
        if not isinstance(row.get(column), Mapping | None):
            raise FieldFault(column, f"expected named fields, got {short(row.get(column))}")
    _check_reward(row)
    if row.get("__rollout_n__") is not None:
        what = "verl would count so many responses in validation; take the column out"
        raise FieldFault("__rollout_n__", what)
    if _CONTROL.search(str(row.get("data_source", ""))):
        what = f"holds a control character, got {short(row['data_source'])}; take it out"
        raise FieldFault("data_source", what)
    if fault := _id_fault((row.get("extra_info") or {}).get("index")):
        raise FieldFault("extra_info.index", fault)
    _check_texts(row)


def read_kind(reward: Mapping[str, Any]) -> Kind:
    """Return the kind of a row by its ``reward_model``, ``maths`` where it does not say.

    Raises:
        FieldFault: If it is none.
    """
    kind = reward.get("kind") or "maths"
    if kind not in KINDS:
        what = f"expected one of {', '.join(KINDS)}, got {short(kind)}"
        raise FieldFault("reward_model.kind", what)
    return kind


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
        from recipe.verify.programs.checklist import Checklist
        from recipe.verify.programs.refusals import Unrunnable

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an odd escape in a test is not a fault of the row
                Checklist(truth)
        except Unrunnable as error:
            raise FieldFault(column, f"{one_line(error, 200)} ({short(truth)})") from error
    elif _NO_NUMBER.fullmatch(truth):
        raise FieldFault(column, f"{truth.strip()} is not a finite number")


def _check_reward(row: Mapping[str, Any]) -> None:
    reward = row.get("reward_model") or {}
    column = "reward_model.ground_truth" if "ground_truth" in reward else "answer"
    truth = reward.get("ground_truth", row.get("answer"))
    kind = read_kind(reward)
    if not _is_text(truth) and (isinstance(truth, bool) or not isinstance(truth, int | float)):
        what = f"the ground truth is missing or no text or number: {short(truth)}"
        raise FieldFault(column, what)
    check_truth(kind, str(truth), column)
    if kind == "choice":
        _check_option(row["problem"], str(truth), column)


def _check_texts(row: Mapping[str, Any]) -> None:
    for column in (name for name in row if _HINT_NAME.fullmatch(name)):
        value = row[column]
        if not isinstance(value, str | None) and not _is_list_of(str | None, value):
            raise FieldFault(column, f"expected a text or a list of texts, got {short(value)}")
    attempts = row.get("first_attempts")
    if attempts is not None and not _is_list_of(str, attempts):
        raise FieldFault("first_attempts", f"expected a list of texts, got {short(attempts)}")


def lists_options(problem: str) -> bool:
    """Return whether lines of a problem begin with the options ``(A)`` and ``(B)``."""
    return bool(_LISTS_OPTIONS.search(problem))


def _check_option(problem: str, letter: str, column: str) -> None:
    """Check that a problem that lists its options has one of this letter.

    Lists that do not begin their lines with ``(A)`` and ``(B)`` are not looked at.
    """
    if not lists_options(problem):
        return
    letters = sorted({inside or first for inside, first in _MARK.findall(problem)})
    if letter not in letters:
        what = f"the problem lists the options {', '.join(letters)}, the answer is {letter}"
        raise FieldFault(column, what)


def _id_fault(index: Any) -> str:
    """Return what is wrong with an id; an empty text if nothing is."""
    is_number = isinstance(index, int) and not isinstance(index, bool)
    if not (index is None or is_number or _is_text(index)):
        return f"expected a text or an integer, got {short(index)}"
    if _CONTROL.search(str(index)):
        return f"holds a control character, got {short(index)}; take it out"
    return ""


def _is_list_of(kind: Any, value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, kind) for each in value)


def short(value: Any) -> str:
    """Return a value as a message shows it, 60 characters at most."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def prompt_fault(prompt: Any) -> str:
    """Return what is wrong with a conversation; an empty text if nothing is."""
    if not isinstance(prompt, list) or not prompt:
        return f"expected a list of turns with role and content, got {short(prompt)}"
    for place, turn in enumerate(prompt):
        if not isinstance(turn, Mapping) or not _is_text(turn.get("role")):
            return f"turn {place} is not a role and a content: {short(turn)}"
        if not isinstance(turn.get("content"), str):
            return f"the content of turn {place} is not text: {short(turn.get('content'))}"
    if prompt[-1]["role"] != "user":
        return f"the last turn must be the user's, it is the {prompt[-1]['role']}'s"
    return "" if prompt[-1]["content"].strip() else "the last turn is empty"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())

"""Find what is wrong with one row of the parquet contract."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from recipe.problems.schema import HINT_COLUMN, FieldFault, Problem, find, problem_from_row, short
from recipe.run.errors import DataError, one_line
from recipe.verify.schema import Kind

# How programs spell what is not a number; a limit that does not exist is written in words or LaTeX.
_NO_NUMBER = re.compile(r"\s*[+-]?(?:nan|inf)\s*", re.IGNORECASE)
# How a problem marks an option: ``(A)`` anywhere, or a letter and a sign at a line's beginning.
_MARK = re.compile(r"\(([A-Z])\)|^[ \t>*\-\[]*([A-Z])[*]*[).:\]]", re.MULTILINE)
_LISTS_OPTIONS = re.compile(r"^[ \t]*\(A\).*^[ \t]*\(B\)", re.MULTILINE | re.DOTALL)
_HINT_NAME = re.compile(HINT_COLUMN.format(level=r"\d+"))


def check_names(place: str, names: Iterable[str]) -> None:
    """Check that each column of a file has a name of its own.

    Raises:
        DataError: Naming the first that has not, after ``place``.
    """
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{place}: has {count} columns `{name}`; give each a name of its own")


def checked_problem(row: Mapping[str, Any], solution_key: str = "") -> Problem:
    """Return the problem of a row that keeps the contract.

    Raises:
        FieldFault: At the first column that breaks it.
    """
    for column in ("reward_model", "extra_info"):
        if not isinstance(row.get(column), Mapping | None):
            raise FieldFault(column, f"expected named fields, got {short(row.get(column))}")
    for column in (name for name in row if _HINT_NAME.fullmatch(name)):
        value = row[column]
        if not isinstance(value, str | None) and not _is_list_of(str | None, value):
            raise FieldFault(column, f"expected a text or a list of texts, got {short(value)}")
    attempts = row.get("first_attempts")
    if attempts is not None and not _is_list_of(str, attempts):
        raise FieldFault("first_attempts", f"expected a list of texts, got {short(attempts)}")
    problem = problem_from_row(row, solution_key)
    if not problem.data_source.isprintable():
        what = f"holds a control character, got {short(problem.data_source)}; take it out"
        raise FieldFault("data_source", what)
    column = find(row).truth
    check_truth(problem.kind, problem.answer, column)
    if problem.kind == "choice":
        _check_option(problem.text, problem.answer, column)
    return problem


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
        from recipe.verify.programs.tests import Tests, Unrunnable

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an odd escape in a test is not a fault of the row
                Tests(truth)
        except Unrunnable as error:
            raise FieldFault(column, f"{one_line(error, 200)} ({short(truth)})") from error
    elif _NO_NUMBER.fullmatch(truth):
        raise FieldFault(column, f"{truth.strip()} is not a finite number")


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


def _is_list_of(kind: Any, value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, kind) for each in value)

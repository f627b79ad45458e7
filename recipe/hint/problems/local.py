"""Problems from a file of one's own, with any column names; its other columns are kept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recipe.hint.problems.columns import SCHEMA
from recipe.hint.problems.drafts import (
    Defaults,
    Draft,
    Prepared,
    check_letter,
    options_text,
    prepare,
)
from recipe.hint.problems.faults import truth_fault
from recipe.hint.problems.records import FieldFault, read_records, stem, text, texts
from recipe.hint.schema import Kind
from recipe.hint.verify.programs.checklist import with_entry_point


@dataclass(frozen=True, slots=True)
class Keys:
    """The names the file uses, and what kind of answer it holds.

    ``options`` may be empty: the problem's text then holds the lettered options already.
    The answer of a ``program`` is Python source with asserts, or a list of its lines; a field
    ``entry_point`` names the function that tests with ``def check(candidate)`` are called with.
    """

    problem: str = "problem"
    answer: str = "answer"
    solution: str = "solution"
    id: str = "id"
    options: str = ""
    kind: Kind = "maths"

    def draft(self, fields: Mapping[str, Any]) -> Draft:
        """The problem of one record.

        Raises:
            FieldFault: If a field cannot be used; a problem and an answer are required.
        """
        if self.kind == "program" and isinstance(fields.get(self.answer), list):
            fields = {**fields, self.answer: "\n".join(texts(fields, self.answer))}
        problem = text(fields, self.problem, is_required=True)
        answer = text(fields, self.answer, is_required=True)
        if self.kind == "program":
            answer = with_entry_point(answer, text(fields, "entry_point"))
        if fault := truth_fault(self.kind, answer):
            raise FieldFault(self.answer, fault)
        if self.options:
            options = texts(fields, self.options)
            problem = options_text(problem, options)
            check_letter(self.answer, answer, len(options))
        return Draft(
            problem,
            answer,
            solution=text(fields, self.solution),
            id=text(fields, self.id).strip(),
            kind=self.kind,
            others={name: fields[name] for name in fields if name not in self.used},
        )

    @property
    def used(self) -> frozenset[str]:
        """Columns that are read, or written anew: all others are kept."""
        names = (self.problem, self.answer, self.solution, self.id, self.options)
        return frozenset(names) | frozenset(SCHEMA.names)


def read_local(
    path: str | Path,
    *,
    keys: Keys = Keys(),
    defaults: Defaults | None = None,
    limit: int | None = None,
) -> Prepared:
    """Rows of the parquet contract; blank lines are skipped, and lines past ``limit`` not read.

    Numbers of text files keep their spelling (``0.50``).

    Args:
        path: The file; its ending says how it is read.
        keys: The file's names of the fields.
        stamp: Data source, split and system prompt; the file's name without its ending and
            ``train`` if not given.
        limit: Number of problems at most; all if not given.

    Raises:
        DataError: Naming the file, the line or row, and the column.
    """
    path = Path(path)
    names: set[str] = set()

    def drafts() -> Iterator[tuple[str, Callable[[], Draft]]]:
        for record in read_records(path):
            names.update(record.fields)
            yield record.place, functools.partial(keys.draft, record.fields)

    prepared = prepare(
        str(path),
        drafts(),
        defaults=defaults or Defaults(stem(path)),
        limit=limit,
        names=(keys.id, keys.problem),
    )
    read = {keys.problem, keys.answer, keys.solution, keys.id, keys.options}
    return replace(prepared, replaced=tuple(sorted((names & set(SCHEMA.names)) - read)))

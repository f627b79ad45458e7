"""One line of a file to grade: read it, or say what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, get_args

from recipe.hint.schema import Item, Kind
from recipe.hint.typed import read_json
from recipe.hint.verify.programs.checklist import with_entry_point

_EXCERPT_CHARS = 200


@dataclass(frozen=True, slots=True)
class GradeRow:
    """A row that can be graded; ``fields`` is all that the line held."""

    fields: Mapping[str, Any]
    num_bytes: int
    id: str
    kind: Kind
    response: str
    answer: str
    is_truncated: bool = False
    problem: str = ""

    @property
    def item(self) -> Item:
        """What the pool grades."""
        return Item(self.response, self.answer, self.is_truncated, self.kind, self.problem)


@dataclass(frozen=True, slots=True)
class BadRow:
    """A line that cannot be graded, and why."""

    fields: Mapping[str, Any]
    num_bytes: int
    message: str
    kind: str = "bad rows"


class _Missing(ValueError):
    """A field is not what it must be."""


def read_row(line: bytes, number: int) -> GradeRow | BadRow:
    """Read one line.

    Args:
        line: UTF-8 JSON, an object.
        number: The line's place in the file, counted from 1.
    """
    try:
        fields = read_json(line)
    except ValueError as problem:
        text = line[:_EXCERPT_CHARS].decode("utf-8", "replace").strip()
        return BadRow({"line": text}, len(line), f"line {number} is not JSON: {problem}")
    if not isinstance(fields, dict):
        message = f"line {number}: expected a JSON object, got {type(fields).__name__}"
        return BadRow({"line": fields}, len(line), message)
    try:
        return GradeRow(
            fields,
            len(line),
            id=_text(fields, "id", default=""),
            kind=_kind(fields),
            response=_response(fields),
            answer=_tests(fields) if "tests" in fields else _text(fields, "answer"),
            is_truncated=bool(fields.get("is_truncated", False)),
            problem=_text(fields, "problem", default=""),
        )
    except _Missing as problem:
        return BadRow(fields, len(line), f"line {number}: {problem}")


def _kind(fields: Mapping[str, Any]) -> Kind:
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in get_args(Kind):
        raise _Missing(f"kind={kind!r} is not a kind; choose one of {', '.join(get_args(Kind))}")
    if "tests" in fields and kind != "program":
        raise _Missing(f"kind={kind} has tests; give answer, or kind=program")
    return cast("Kind", kind)


def _response(fields: Mapping[str, Any]) -> str:
    response = fields.get("response")
    if not isinstance(response, str):
        raise _Missing(f"response={response!r} must be a text")
    return response


def _text(fields: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _Missing(f"{name}={value!r} must be a text or a number")
    return str(value)


def _tests(fields: Mapping[str, Any]) -> str:
    """The asserts as one text, after the imports that they need."""
    parts = []
    for name in ("test_imports", "tests"):
        value = fields.get(name) or []
        lines = [value] if isinstance(value, str) else value
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise _Missing(f"{name}={value!r} must be a text or a list of texts")
        parts += lines
    if not any(part.strip() for part in parts):
        raise _Missing("tests is empty; give the asserts")
    return with_entry_point("\n".join(parts), _text(fields, "entry_point", default=""))

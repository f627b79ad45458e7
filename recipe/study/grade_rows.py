"""One line of a file to grade: read it, or say what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from recipe.run.typed import read_json
from recipe.verify.answer import formats_asked_for
from recipe.verify.choice import read_letter
from recipe.verify.programs.tests import with_entry_point
from recipe.verify.schema import Item, Kind

_EXCERPT_CHARS = 200


@dataclass(frozen=True, slots=True)
class GradeRow:
    """A line: all that it held, and what to grade, or why it cannot be graded."""

    fields: Mapping[str, Any]
    item: Item | None = None
    message: str = ""
    is_object: bool = True

    @property
    def kind(self) -> str:
        """The kind of item, ``bad rows`` where there is none."""
        return self.item.kind if self.item else "bad rows"


class _Wrong(ValueError):
    """A field is not what it must be."""


def read_row(line: bytes, number: int) -> GradeRow:
    """Read one line, UTF-8 JSON; ``number`` is its place in the file, counted from 1."""
    try:
        fields = read_json(line)
    except ValueError as problem:
        text = line[:_EXCERPT_CHARS].decode("utf-8", "replace").strip()
        message = f"line {number} is not JSON: {problem}"
        return GradeRow({"line": text}, message=message, is_object=False)
    if not isinstance(fields, dict):
        message = f"line {number}: expected a JSON object, got {type(fields).__name__}"
        return GradeRow({"line": fields}, message=message, is_object=False)
    try:
        return GradeRow(fields, _read_item(fields))
    except _Wrong as problem:
        return GradeRow(fields, message=f"line {number}: {problem}")


def _read_item(fields: Mapping[str, Any]) -> Item:
    kind, response = fields.get("kind", "maths"), fields.get("response")
    if not isinstance(kind, str) or kind not in get_args(Kind):
        raise _Wrong(f"kind={kind!r} is not a kind; choose one of {', '.join(get_args(Kind))}")
    if "tests" in fields and kind != "program":
        raise _Wrong(f"kind={kind} has tests; give answer, or kind=program")
    if not isinstance(response, str):
        raise _Wrong(f"response={response!r} must be a text")
    _text(fields, "id", default="")
    answer = _tests(fields) if "tests" in fields else _text(fields, "answer")
    if not answer.strip():
        raise _Wrong("answer is empty; give the gold answer")
    if kind == "choice" and not read_letter(answer):
        raise _Wrong(f"answer={answer!r} must be one letter, for kind=choice")
    problem, is_truncated = _text(fields, "problem", default=""), fields.get("is_truncated")
    if not isinstance(is_truncated, bool | None):
        raise _Wrong(f"is_truncated={is_truncated!r} must be true or false")
    # A column of this name that is no conversation says nothing.
    prompt = fields.get("prompt")
    is_turns = isinstance(prompt, list) and all(isinstance(turn, dict) for turn in prompt)
    asked = formats_asked_for(prompt if is_turns or isinstance(prompt, str) else "")  # pyright: ignore[reportArgumentType]
    return Item(response, answer, bool(is_truncated), kind, problem, asked=asked)  # pyright: ignore[reportArgumentType]


def _text(fields: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _Wrong(f"{name}={value!r} must be a text or a number")
    return str(value)


def _tests(fields: Mapping[str, Any]) -> str:
    """Return the asserts as one text, after the imports that they need."""
    parts = []
    for name in ("test_imports", "tests"):
        value = fields.get(name) or []
        lines = [value] if isinstance(value, str) else value
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise _Wrong(f"{name}={value!r} must be a text or a list of texts")
        parts += lines
    return with_entry_point("\n".join(parts), _text(fields, "entry_point", default=""))

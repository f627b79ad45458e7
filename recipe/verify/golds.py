"""The gold answer of a data file, as the verifier reads it: the same text for every trainer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from numbers import Number
from typing import Any

from recipe.verify.programs.tests import with_setup
from recipe.verify.schema import Kind

_TESTS = ("tests", "test", "test_list")
_SETUPS = ("setup", "test_imports", "test_setup_code")
# What collections write where there is no answer.
_WORDS = (
    "proof|answer|null|nil|nan|tbd|todo|n/?a|n\\.a|unknown|no (?:final )?answer(?: found| given)?"
    "|(?:answer |solution )?not ?(?:found|available|provided|given|applicable)"
    "|see (?:the )?(?:solution|proof|answer|above|below|text|figure|explanation)s?"
    "|(?:proof|answer|solution|image|figure) (?:omitted|missing|needed|required)"
)
_PLACEHOLDER = re.compile(rf"[\[(<]?(?:{_WORDS}|[?_.]+)[\])>]?[.!]?", re.IGNORECASE)
_MARKUP = re.compile(r"\\(?:text|mathrm|textbf|boxed)\b|[{}$]")


def is_placeholder(gold: str) -> bool:
    """Return whether a ground truth of mathematics stands for "there is no answer"."""
    return len(gold) < 80 and bool(_PLACEHOLDER.fullmatch(_MARKUP.sub("", gold).strip()))


def gold_text(value: Any, kind: Kind = "maths", row: Mapping[str, Any] | None = None) -> str:
    """Return a ground truth as text.

    A list is joined by commas, the tests of a program by line ends. ``setup``, of a program's
    mapping or its row, and the row's ``test_imports`` stand before the program.

    Raises:
        ValueError: It is missing, or no text, number, list or mapping.
    """
    value = value.tolist() if hasattr(value, "tolist") else value
    if kind != "program" or not value:
        return _joined(value, ", ")
    parts = value if isinstance(value, Mapping) else {"tests": value}
    tests = next((parts[name] for name in _TESTS if parts.get(name)), "")
    setups = [each for name in _SETUPS if (each := parts.get(name) or (row or {}).get(name))]
    return with_setup("\n".join(_joined(each, "\n") for each in setups), _joined(tests, "\n"))


def number_text(value: Any) -> str:
    """Return a number as text; 27.0, as a column with gaps stores 27, without its point.

    From 2**53 on it is written as in the file: what it was rounded from, nobody knows.
    """
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return str(int(value) if is_whole else value)


def plain(value: Any) -> Any:
    """Return an array as a list, and any other value that JSON lacks (dates, bytes) as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _joined(value: Any, between: str) -> str:
    if isinstance(value, list | tuple) and value:
        return between.join(_joined(each, between) for each in value)
    if isinstance(value, Mapping):
        return json.dumps(value, default=plain)
    is_number = isinstance(value, Number) and not isinstance(value, bool)
    text = number_text(value) if is_number or isinstance(value, str) else ""
    if not text.strip() or is_number and not text[-1].isdigit():  # nan
        told = f"the ground truth is missing: {value!r}"[:100]
        raise ValueError(f"{told} (expected a text, number, list or mapping)")
    return text

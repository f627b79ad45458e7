"""Which formats of an answer a conversation asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from recipe.verify.schema import AnswerFormat, Format

# What shows in a prompt that it asks for a format; "Answer:" at its end asks for none.
_ASKS: dict[Format, re.Pattern[str]] = {
    "boxed": re.compile(r"\\f?boxed(?![a-z])|\bboxed\b|\bin an? box\b"),
    "hashes": re.compile(r"(?<!#)####(?!#)"),
    "tags": re.compile(r"<answer>", re.IGNORECASE),
    "line": re.compile(r"Answer[*_`]{0,3}:(?!\s*\Z)"),
}


def formats_asked_for(messages: str | Iterable[Mapping[str, Any]]) -> tuple[Format, ...]:
    """Return the formats that a conversation's system and user turns ask for, in a fixed order.

    Args:
        messages: Turns with ``role`` and ``content``, or a prompt that is one text.
    """
    if not isinstance(messages, str):
        # A turn with images is a list of parts, looked through as it is.
        turns = (turn for turn in messages if turn.get("role") != "assistant")
        messages = "\n".join(str(turn.get("content")) for turn in turns)
    return tuple(name for name, pattern in _ASKS.items() if pattern.search(messages))


def unasked_warning(prompts: Sequence[Any], chosen: AnswerFormat = "auto") -> str:
    """Return a warning where prompts ask for no format that is read; else an empty text."""
    reads = set(get_args(Format) if chosen == "auto" else [chosen])
    num = sum(not reads & set(formats_asked_for(each)) for each in prompts)
    if not num:
        return ""
    return (
        f"{num} of {len(prompts)} prompts ask for no format that the grader reads; ask for a "
        f"\\boxed{{}}, or see hint.verify.answer_format in docs/verification.md"
    )

r"""Find the part of a response that is its answer, in a format that the conversation asks for.

``auto`` reads the last box where there is one; else a format whose mark stands in the conversation:
``#### 42`` (``hashes``), ``<answer>42</answer>`` (``tags``) or ``Answer: 42`` (``line``), the last
of them. Other formats are never read, and what stands before the last ``</think>`` is no answer.
Time is linear in the length of the response.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from recipe.verify.maths.grade import last_box
from recipe.verify.schema import AnswerFormat, Format

_OPEN = r"\boxed{"  # graded as malformed: the answer has no end
_AROUND = "*_` \t\r\n"
# Where a format begins, and its answer in a response; the end of tags is looked for.
_MARKS = {
    "hashes": re.compile(r"(?<!#)####(?!#)[ \t]*((?:(?!</?answer>)[^\r\n])*)"),
    "tags": re.compile(r"<(/?)answer>", re.IGNORECASE),
    "line": re.compile(
        r"\banswer[*_`]{0,3}[ \t]{0,4}[:：][*_`\s]{0,8}((?:(?!</?answer>)[^\r\n])*)",  # noqa: RUF001
        re.IGNORECASE,
    ),
}
# What shows in a prompt that it asks for a format; "Answer:" at its end asks for none.
_ASKS: dict[Format, re.Pattern[str]] = {
    "boxed": re.compile(r"\\f?boxed(?![a-z])|\bboxed\b|\bin an? box\b"),
    "hashes": re.compile(r"(?<!#)####(?!#)"),
    "tags": re.compile(r"<answer>", re.IGNORECASE),
    "line": re.compile(r"Answer[*_`]{0,3}:(?!\s*\Z)"),
}


def answer_in_box(
    response: str,
    chosen: AnswerFormat = "auto",
    asked: Sequence[str] = (),
    *,
    is_truncated: bool = False,
) -> str:
    r"""Return the text to grade: its last box is the answer, and there is none without an answer.

    Args:
        response: Text written by the policy.
        chosen: The format that is read; ``auto``: a box, or one of ``asked``.
        asked: What ``formats_asked_for`` says about the conversation.
        is_truncated: The response was cut, so that its last line may go on.
    """
    text = response.rpartition("</think>")[2]
    if "<think>" in text:
        return ""
    formats = [name for name in asked if name != "boxed"] if chosen == "auto" else [chosen]
    has_box = chosen == "auto" and r"\boxed" in text and last_box(text).state != "absent"
    if has_box or not formats or chosen == "boxed":
        return text
    found = [each for name in formats if (each := _last(name, text, is_truncated)) is not None]
    return _as_box(max(found, key=lambda each: each[0])[1]) if found else ""


def _last(name: Any, text: str, is_truncated: bool) -> tuple[int, str | None] | None:
    """Return where the last answer in a format begins, and its text; ``None`` without an end."""
    marks = deque(_MARKS[name].finditer(text), maxlen=2)
    if not marks:
        return None
    first, last = marks[0], marks[-1]
    if name == "tags":
        is_pair = len(marks) == 2 and not first[1] and last[1]
        return first.end(), text[first.end() : last.start()] if is_pair else None
    return last.start(), None if is_truncated and last.end() == len(text) else last[1]


def _as_box(text: str | None) -> str:
    r"""Return an answer in a box; one that has a box already as it is."""
    if text is None:
        return _OPEN
    text = text.strip(_AROUND)
    if text.endswith(".") and not text.endswith(".."):
        text = text[:-1].strip(_AROUND)
    if text.startswith("$") and text.count("$") == 1:
        text = text[1:]
    if r"\boxed" in text or not text:
        return text
    boxed = rf"\boxed{{{text}}}"
    # An unbalanced brace would cut the text into something else.
    return boxed if last_box(boxed).text == text else _OPEN


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

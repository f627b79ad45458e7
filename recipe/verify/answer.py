r"""Grade a final answer: find it, in a format that the conversation asks for, and judge it.

``auto`` reads the last box where there is one; else a format whose mark stands in the conversation:
``#### 42`` (``hashes``), ``<answer>42</answer>`` (``tags``) or ``Answer: 42`` (``line``), the last
of them. Other formats are never read, and what stands before the last ``</think>`` is no answer.
Time is linear in the length of the response.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Any

from recipe.verify.choice import choice_verdict
from recipe.verify.golds import is_placeholder
from recipe.verify.maths.grade import grade_maths, last_box
from recipe.verify.maths.grade import quick_verdict as quick_maths
from recipe.verify.options import GradeOptions
from recipe.verify.schema import AnswerFormat, Item, Verdict

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


def quick_verdict(item: Item, options: GradeOptions) -> Verdict | None:
    """Return the verdict on a choice, or on mathematics that exact arithmetic decides."""
    response = _answered(item, options)
    if item.kind == "choice":
        return choice_verdict(response, item.answer, item.problem, is_truncated=item.is_truncated)
    if is_placeholder(item.answer):
        return Verdict(0.0, "wrong", detail=f"the gold answer {item.answer!r} is no answer")
    return quick_maths(response, item.answer, item.is_truncated, item.problem)


def full_verdict(item: Item, options: GradeOptions) -> Verdict:
    """Return the verdict on mathematics; may run for ever."""
    response = _answered(item, options)
    return grade_maths(response, item.answer, is_truncated=item.is_truncated, problem=item.problem)


def _answered(item: Item, options: GradeOptions) -> str:
    return answer_in_box(
        item.response, options.answer_format, item.asked, is_truncated=item.is_truncated
    )


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
    found = [each for name in formats if (each := last_of(name, text, is_truncated)) is not None]
    return _as_box(max(found, key=lambda each: each[0])[1]) if found else ""


def last_of(name: Any, text: str, is_truncated: bool) -> tuple[int, str | None] | None:
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

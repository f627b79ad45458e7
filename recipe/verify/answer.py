r"""Find the part of a response that is its answer, in a format that the conversation asks for.

``auto`` reads the last box where there is one; else what the conversation's own text asks for:
``#### 42`` (``hashes``), ``<answer>42</answer>`` (``tags``) or ``Answer: 42`` (``line``), the last
of them. A format that nobody asked for is never read, and what stands before the last ``</think>``
is no answer. Time is linear in the length of the response.
"""

from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from recipe.verify.maths.grade import last_box
from recipe.verify.schema import AnswerFormat, Format

_OPEN = r"\boxed{"  # graded as malformed: the answer has no end
_AROUND = "*_` \t\r\n"
# Where a format begins, and its answer in a response; the end of tags is looked for.
_MARKS: dict[Format, re.Pattern[str]] = {
    "boxed": re.compile(r"\\f?boxed(?![a-z])|\bboxed\b|\bin an? box\b"),
    "hashes": re.compile(r"(?<!#)####(?!#)[ \t]*((?:(?!</?answer>)[^\r\n])*)"),
    "tags": re.compile(r"<(/?)answer>", re.IGNORECASE),
    "line": re.compile(
        r"\banswer[*_`]{0,3}[ \t]{0,4}[:：][*_`\s]{0,8}((?:(?!</?answer>)[^\r\n])*)",  # noqa: RUF001
        re.IGNORECASE,
    ),
}
# What shows in a prompt that it asks for a format: the words before it, or what stands in it.
_ASKS = re.compile(
    r"\b(?:put|writ(?:e|ing|ten)|output|give|provide|reply|respond|return|print|state|present|place"
    r"|enclosed?|wrap(?:ped)?|end|finish|conclude|begin|start|use|using|format(?:ted)?|form|inside"
    r"|within|between|after|followed|must|should|submit|report|express(?:ed)?|append|contains?)\b",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"[\"'`“*\s]{0,3}(?:[<\[{(]\s?[A-Za-z]|\$?\\?(?:[Aa]nswer|ANSWER|boxed)\b|\.\.\.|…|_{2,}|[XN]\b"
    r"|(?:the |a )?(?:your|final|numeric(?:al)?|number|result|value|letter|option|solution)\b)"
)
_SENTENCE_END = re.compile(r"(?<!\.)[.!?][\"'”)*`]{0,3}\s+(?=[A-Z])")
_QUOTES = "\"'`“‘"
_REACH = 300  # characters before a mention that may ask for it


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
    if isinstance(messages, str):
        return _asked_in(messages)
    texts = [turn.get("content") or "" for turn in messages if turn.get("role") != "assistant"]
    # A turn with images is a list of parts.
    parts = [[text] if isinstance(text, str) else text for text in texts]
    said = [
        part.get("text") if isinstance(part, Mapping) else part for each in parts for part in each
    ]
    return _asked_in("\n".join(str(each or "") for each in said))


@functools.lru_cache(maxsize=1024)
def _asked_in(text: str) -> tuple[Format, ...]:
    return tuple(
        name
        for name, pattern in _MARKS.items()
        if any(name == "boxed" or _is_asked(name, text, mark) for mark in pattern.finditer(text))
    )


def _is_asked(name: Format, text: str, mark: re.Match[str]) -> bool:
    """Return whether what stands in a mention is no answer, or the words before it ask for it."""
    before = text[max(0, mark.start() - _REACH) : mark.start()]
    line = before.rpartition("\n")[2]
    inside = mark[1]
    if name == "tags":
        if mark[1]:
            return False
        inside = text[mark.end() : mark.end() + _REACH].partition("<")[0]
        if not inside.strip(" .…\r\n"):
            return True
    elif name == "hashes" and not line.strip(" \t>*-") and inside[:2].istitle():
        return False  # a heading: #### Answer format
    elif name == "line" and not (mark[0][0] == "A" or (line and line[-1] in _QUOTES)):
        return False  # "give the correct answer: (A) 1 (B) 2" asks for no line
    if "\n" not in mark[0] and _PLACEHOLDER.match(inside):
        return True
    if not line.strip(" \t>*-" + _QUOTES):  # a line above with a colon may ask for it
        above = before[: len(before) - len(line)].rstrip().rpartition("\n")[2]
        line = above if above.endswith(":") else ""
    return _ASKS.search(_SENTENCE_END.split(line)[-1]) is not None


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

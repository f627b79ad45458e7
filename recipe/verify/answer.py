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
from typing import Any, NamedTuple, get_args

from recipe.verify.maths.grade import last_box
from recipe.verify.schema import AnswerFormat, Format

FORMATS: tuple[Format, ...] = get_args(Format)
# Graded as malformed: the answer has no end.
_OPEN = r"\boxed{"
_HASHES = re.compile(r"(?<!#)####(?!#)[ \t]*([^\r\n]*)")
_LINE = re.compile(
    r"\banswer[*_`]{0,3}[ \t]{0,4}[:：][*_`\s]{0,8}([^\r\n]*)",  # noqa: RUF001
    re.IGNORECASE,
)
_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)
_AROUND = "*_` \t\r\n"

# What shows in a prompt that it asks for a format: the words before it, or what stands in it.
_ASKS = re.compile(
    r"\b(?:put|writ(?:e|ing|ten)|output|give|provide|reply|respond|return|print|state|present|place"
    r"|enclosed?|wrap(?:ped)?|end|finish|conclude|begin|start|use|using|format(?:ted)?|form|inside"
    r"|within|between|after|followed|must|should|submit|report|express(?:ed)?|append|contains?)\b",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"[\"'`“*]{0,3}(?:[<\[{(]\s?[A-Za-z]|\$?\\?(?:[Aa]nswer|ANSWER|boxed)\b|\.\.\.|…|_{2,}|[XN]\b"
    r"|(?:your|final|numeric(?:al)?|number|result|value|letter|option)\b)"
)
_IN_TAGS = re.compile(
    r"\W*\Z|.*\b(?:answer|result|solution|number|letter|your|here|final|option|value)\b",
    re.IGNORECASE | re.DOTALL,
)
_BOX = re.compile(r"\\f?boxed(?![a-z])|\bboxed\b|\bin an? box\b")
_SENTENCE_END = re.compile(r"(?<!\.)[.!?][\"'”)*`]{0,3}\s+(?=[A-Z])")
_QUOTES = "\"'`“‘"
_REACH = 300  # characters before a mention that may ask for it


class _Found(NamedTuple):
    """The last answer in one format; ``text`` is ``None`` where it does not end."""

    end: int
    is_tag: bool
    start: int
    text: str | None


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
    return _as_box(_last_answer(text, formats, is_truncated=is_truncated))


def _last_answer(text: str, formats: Sequence[str], *, is_truncated: bool) -> str | None:
    """Return the last answer in one of the formats; ``None``: it has no end."""
    found = [each for name in formats if (each := _FINDERS[name](text)) is not None]
    if not found:
        return ""
    last = max(found)
    if last.text is None or (is_truncated and not last.is_tag and last.end == len(text)):
        return None
    # <answer>#### 42</answer> has one answer.
    inner = [name for name in formats if name != "tags"] if last.is_tag else []
    return _last_answer(last.text, inner, is_truncated=False) or last.text


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


def _found_by(pattern: re.Pattern[str], text: str) -> _Found | None:
    last = deque(pattern.finditer(text), maxlen=1)
    return _Found(last[0].end(), False, last[0].start(), last[0][1]) if last else None


def _found_in_tags(text: str) -> _Found | None:
    """Return what stands between the last two tags, if they are a pair."""
    tags = deque(_TAG.finditer(text), maxlen=2)
    if not tags:
        return None
    first, last = tags[0], tags[-1]
    is_pair = len(tags) == 2 and not first[1] and bool(last[1])
    end = len(text) if text.find("\n", last.end()) < 0 else text.find("\n", last.end())
    # The rest of its line belongs to it, as it does in the other formats.
    rest = text[last.end() : end].strip(_AROUND + ".")
    content = text[first.end() : last.start()] if is_pair else None
    return _Found(end if not rest else last.end(), True, first.start(), content)


_FINDERS = {
    "hashes": functools.partial(_found_by, _HASHES),
    "line": functools.partial(_found_by, _LINE),
    "tags": _found_in_tags,
}


def formats_asked_for(messages: str | Iterable[Mapping[str, Any]]) -> tuple[Format, ...]:
    """Return the formats that a conversation's system and user turns ask for, in a fixed order.

    Args:
        messages: Turns with ``role`` and ``content``, or a prompt that is one text.
    """
    if isinstance(messages, str):
        return _asked_in(messages)
    texts = [_text(turn.get("content")) for turn in messages if turn.get("role") != "assistant"]
    return _asked_in("\n".join(texts))


def _text(content: Any) -> str:
    """Return a turn's text; one with images is a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, (list, tuple)) else []
    return "\n".join(
        str(part.get("text") or "") if isinstance(part, Mapping) else str(part) for part in parts
    )


@functools.lru_cache(maxsize=1024)
def _asked_in(text: str) -> tuple[Format, ...]:
    found: set[Format] = {"boxed"} if _BOX.search(text) else set()
    for mark in _TAG.finditer(text):
        close = text.find("<", mark.end())
        inside = text[mark.end() : close] if close >= 0 else ""
        if not mark[1] and (_IN_TAGS.match(inside[:_REACH]) or _is_asked(text, mark.start())):
            found.add("tags")
    for mark in _HASHES.finditer(text):
        before = text[max(0, mark.start() - _REACH) : mark.start()].rpartition("\n")[2]
        if not before.strip(" \t>*-") and mark[1][:2].istitle():
            continue  # a heading: #### Answer format
        if _PLACEHOLDER.match(mark[1]) or _is_asked(text, mark.start()):
            found.add("hashes")
    for mark in _LINE.finditer(text):
        is_quoted = text[mark.start() - 1 : mark.start()] in tuple(_QUOTES)
        if not (mark[0][0] == "A" or is_quoted):
            continue  # "give the correct answer: (A) 1 (B) 2" asks for no line
        is_filled = "\n" not in mark[0] and _PLACEHOLDER.match(mark[1])
        if is_filled or _is_asked(text, mark.start()):
            found.add("line")
    return tuple(name for name in FORMATS if name in found)


def _is_asked(text: str, start: int) -> bool:
    """Return whether the sentence before a mention, or a line above with a colon, asks for it."""
    before = text[max(0, start - _REACH) : start]
    line = before.rpartition("\n")[2]
    if not line.strip(" \t>*-" + _QUOTES):
        above = before[: len(before) - len(line)].rstrip().rpartition("\n")[2]
        line = above if above.endswith(":") else ""
    return _ASKS.search(_SENTENCE_END.split(line)[-1]) is not None


def unasked_warning(prompts: Sequence[Any], chosen: AnswerFormat = "auto") -> str:
    """Return a warning where prompts ask for no format that is read; else an empty text."""
    reads = set(FORMATS if chosen == "auto" else [chosen])
    num = sum(not reads & set(formats_asked_for(each)) for each in prompts)
    if not num:
        return ""
    return (
        f"{num} of {len(prompts)} prompts ask for no format that the grader reads; ask for a "
        f"\\boxed{{}}, or see hint.verify.answer_format in docs/verification.md"
    )

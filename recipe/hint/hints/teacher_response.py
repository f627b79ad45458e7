"""Read what a teacher's response holds beside its text, up to a limit."""

from __future__ import annotations

import email.utils
import math
import time
from typing import Any

from recipe.hint.hints.teacher_settings import Request

MAX_BODY_BYTES = 16 << 20
_MAX_TOKENS = 10**9  # a count above it is not believed
_CHARS_PER_TOKEN = 4  # where the endpoint does not count: English text has 3 to 5


class TooLong(Exception):
    """A response is longer than any chat completion."""


async def read_bounded(response: Any) -> None:
    """Read a body before the library does, which would read one without end into the memory."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise TooLong
    response._content = bytes(body)  # as its own aread() leaves it


def retry_after_s(value: str) -> float:
    """Return the wait of a Retry-After header, in seconds or as a date; 0 where it has none."""
    try:
        wait_s = float(value)
    except ValueError:
        try:
            wait_s = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, wait_s) if math.isfinite(wait_s) else 0.0


def usage_of(read: dict[str, Any], request: Request, text: str) -> tuple[int, int]:
    """Return tokens of the response, and of prompt and response; estimated if not given."""
    match read.get("usage"):
        case {"completion_tokens": int() as tokens, "total_tokens": int() as total} if (
            max(tokens, total) < _MAX_TOKENS
        ):
            return max(tokens, 0), max(total, tokens, 0)
    prompt = sum(len(turn["content"]) for turn in request.body["messages"])
    return -(-len(text) // _CHARS_PER_TOKEN), -(-(len(text) + prompt) // _CHARS_PER_TOKEN)

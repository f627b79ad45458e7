"""One request to an endpoint that speaks OpenAI's chat completions: an answer, or a fault.

Nothing is tried twice here, and nothing is raised for what an endpoint or the network does.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

import aiohttp

from recipe.hint.errors import ConfigError
from recipe.hint.hints.teacher_cache import Answer, AnswerCache
from recipe.hint.hints.teacher_request import Request, read_key
from recipe.hint.hints.teacher_settings import TeacherSettings

FaultKind = Literal[
    "rate_limited",  # 429
    "server_error",  # 5xx
    "timeout",
    "connection",  # no connection, or closed before an answer
    "cut_off",  # closed within an answer
    "garbage",  # an answer that is no chat completion
    "refused",  # another status: the request, the key or the model is wrong
    "budget",  # nothing more may be paid
    "cache",  # the cache cannot be read; asking could pay twice
]
PASSING: frozenset[FaultKind] = frozenset(
    {"rate_limited", "server_error", "timeout", "connection", "cut_off", "garbage"}
)
REACH_S = 10.0
_MAX_BYTES = 4 << 20
_EXCERPT_CHARS = 200
_CHARS_PER_TOKEN = 4  # where the endpoint does not count: English text has 3 to 5
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong.

    ``wait_s`` is what the endpoint asked for; ``paid_tokens`` what it charges all the same.
    """

    kind: FaultKind
    what: str
    wait_s: float = 0.0
    paid_tokens: int = 0


class Client:
    """Sends requests with the key, which appears in no fault."""

    def __init__(self, base_url: str, *, key: str, timeout_s: float) -> None:
        """Check the address.

        Raises:
            ConfigError: If it is none, or holds a user name, a query or a fragment.
        """
        parts = urlsplit(base_url)
        is_plain = not (parts.username or parts.password or parts.query or parts.fragment)
        if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
            shown = base_url if is_plain else "(hidden: it may hold a secret)"
            raise ConfigError(
                f"hint.teacher.base_url={shown!r} must be like https://host/v1, without a user "
                "name or a query; a key goes into the variable that api_key_env names"
            )
        self._url = base_url.rstrip("/")
        self._host = parts.hostname
        self._proxy_scheme = parts.scheme
        self._key = key
        self.timeout_s = timeout_s

    async def send(self, request: Request) -> Answer | Fault:
        """One try, within the time limit as a whole."""
        outcome = await self._ask("POST", "/chat/completions", self.timeout_s, request.body)
        return outcome if isinstance(outcome, Fault) else self._parse(outcome, request)

    async def reach(self) -> Fault | None:
        """Why nobody can be asked: no answer to a look at the models, or a no to the key.

        An endpoint without such a list, or one that is busy, is there.
        """
        outcome = await self._ask("GET", "/models", min(self.timeout_s, REACH_S))
        if isinstance(outcome, bytes):
            return None
        is_no = outcome.what.startswith(("HTTP 401", "HTTP 403"))
        return outcome if outcome.kind in ("connection", "timeout") or is_no else None

    async def _ask(
        self, verb: str, path: str, limit_s: float, content: Mapping[str, Any] | None = None
    ) -> bytes | Fault:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        options: dict[str, Any] = {"headers": headers, "proxy": self._proxy()}
        if content is not None:
            options["json"] = dict(content)
        timeout = aiohttp.ClientTimeout(total=limit_s)
        try:
            # A session of its own: none is left open when a worker ends or its loop changes.
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                # A redirect could carry the key elsewhere.
                session.request(
                    verb, self._url + path, allow_redirects=False, **options
                ) as response,
            ):
                body = await _read(response)
                return _status_fault(response, self._excerpt(body)) or body
        except TimeoutError:
            return Fault("timeout", f"no whole answer within {limit_s:g} s")
        except aiohttp.ClientPayloadError:
            return Fault("cut_off", "the connection closed within the answer")
        except (aiohttp.ClientError, OSError) as error:
            what = str(error).replace(" ssl:default", "")  # said of plain http too
            return Fault("connection", self._excerpt(what.encode()) or type(error).__name__)

    def _proxy(self) -> str | None:
        """That of the environment; aiohttp's own look-up would read keys from ~/.netrc too."""
        if self._host in _LOCAL or urllib.request.proxy_bypass(self._host):
            return None
        return urllib.request.getproxies().get(self._proxy_scheme)

    def _parse(self, body: bytes, request: Request) -> Answer | Fault:
        try:
            reply = json.loads(body)
        except (ValueError, RecursionError):
            return Fault("garbage", f"no JSON: {self._excerpt(body)}")
        match reply:
            case {"choices": [{"message": {"content": str() | None as text}} as choice, *_]}:
                is_cut = choice.get("finish_reason") == "length"
                tokens, paid_tokens = _usage(reply, request, text or "")
                return Answer(text or "", tokens, paid_tokens, is_cut)
        paid_tokens = _usage(reply, request, "")[1] if "usage" in reply else 0
        return Fault("garbage", f"no answer: {self._excerpt(body)}", paid_tokens=paid_tokens)

    def _excerpt(self, body: bytes) -> str:
        """At most 200 characters on one line; some endpoints repeat the key they were given."""
        text = body.decode("utf-8", "replace")
        text = text.replace(self._key, "***") if self._key else text
        text = "".join(char if char.isprintable() else " " for char in text[: 4 * _EXCERPT_CHARS])
        return " ".join(text.split())[:_EXCERPT_CHARS]


def check_reached(settings: TeacherSettings, environment: Mapping[str, str]) -> None:
    """Make sure that somebody answers; with answers in the cache nobody needs to be there.

    Raises:
        ConfigError: Naming the address, and what came in place of an answer.
    """
    key = read_key(settings, environment)
    client = Client(settings.base_url, key=key, timeout_s=settings.timeout_s)
    if AnswerCache.has_answers(settings.cache_dir):
        return
    if fault := asyncio.run(client.reach()):
        raise ConfigError(
            f"hint.teacher.base_url={settings.base_url} cannot be asked: {fault.kind}: "
            f"{fault.what}; start the endpoint, or correct the address or the key"
        )


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """The body, up to a length that no answer has."""
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > _MAX_BYTES:
            break
    return bytes(body)


def _status_fault(response: aiohttp.ClientResponse, excerpt: str) -> Fault | None:
    status = response.status
    what = f"HTTP {status}: {excerpt}"
    if status == 429:
        return Fault("rate_limited", what, wait_s=_retry_after_s(response))
    if status >= 500 or status == 408:
        return Fault("server_error", what, wait_s=_retry_after_s(response))
    return None if status == 200 else Fault("refused", what)


def _retry_after_s(response: aiohttp.ClientResponse) -> float:
    """The header's wait, given in seconds or as a date; 0 where there is none."""
    value = response.headers.get("Retry-After", "").strip()
    try:
        wait_s = float(value)
    except ValueError:
        try:
            wait_s = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, wait_s) if math.isfinite(wait_s) else 0.0


def _usage(reply: dict[str, Any], request: Request, text: str) -> tuple[int, int]:
    """Tokens of the reply, and of prompt and reply together; estimated where not told."""
    match reply.get("usage"):
        case {"completion_tokens": int() as tokens, "total_tokens": int() as total}:
            return max(tokens, 0), max(total, tokens, 0)
    prompt = sum(len(turn["content"]) for turn in request.body["messages"])
    return -(-len(text) // _CHARS_PER_TOKEN), -(-(len(text) + prompt) // _CHARS_PER_TOKEN)

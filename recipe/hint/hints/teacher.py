"""Hints and turns of an external teacher: any endpoint that speaks OpenAI's chat completions.

The request for hints is the one for self-hints. It depends on the problem and not on the step, so
it costs once, however often it is used and whatever run comes back to it (``teacher_cache``).
Every failure to write hints is a ``HintResult`` whose detail begins with a ``FaultKind``; that to
write a turn is the status ``generation_failed``. The run continues.

``openai`` sends and reads; it is imported with the first request, for it takes about a second. Its
own retries are off: the budget is looked at before each request, and each fault is counted.

Not covered: what an endpoint charges for a response that is lost on the way is in no budget.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import sqlite3
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary, WeakValueDictionary

from recipe.hint.hints import teacher_response
from recipe.hint.hints.base import Generate, HintResult, WrittenText
from recipe.hint.hints.self_generated import hint_request, parse_hint_levels
from recipe.hint.hints.teacher_cache import CachedResponse, Ledger, ResponseCache
from recipe.hint.hints.teacher_settings import (
    Request,
    TeacherSampling,
    TeacherSettings,
    make_request,
    read_key,
)
from recipe.hint.prompt import Message, Texts
from recipe.hint.schema import HintStatus, ParseFailure, seed_at
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError
from recipe.run.together import Slots

logger = logging.getLogger(__name__)
wait = asyncio.sleep  # replaced in tests, which do not wait

FaultKind = Literal[
    "rate_limited",  # 429
    "server_error",  # 5xx
    "timeout",
    "connection",  # no connection, or closed before a response
    "cut_off",  # closed within a response
    "garbage",  # a response that is not a chat completion
    "refused",  # another status: the request, the key or the model is wrong
    "budget",  # nothing more may be paid
    "cache",  # the cache cannot be read or written; asking could pay twice
]
_PERMANENT: frozenset[FaultKind] = frozenset({"refused", "budget", "cache"})
_REACH_S = 10.0
_EXCERPT_CHARS = 200
_MAX_CHARS_PER_TOKEN = 64  # so many tokens cannot spell a longer text, which is slow to search
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong; the endpoint asks for ``wait_s`` and charges ``paid_tokens``."""

    kind: FaultKind
    what: str
    wait_s: float = 0.0
    paid_tokens: int = 0


class Client:
    """Send requests with the key, which appears in no fault; nothing is tried twice here."""

    def __init__(
        self, base_url: str, *, key: str, timeout_s: float, uses_proxy: bool = True
    ) -> None:
        """Check the address; ``uses_proxy``: that of the environment, for any host but this one.

        Raises:
            ConfigError: If it is not an http(s) address, or contains a user name, a query or a
                fragment.
        """
        try:
            parts = urlsplit(base_url if base_url.isprintable() else "")
            is_plain = not (parts.username or parts.password or parts.query or parts.fragment)
            is_usable = is_plain and parts.scheme in ("http", "https") and parts.port != 0
            host = parts.hostname if is_usable else None
        except ValueError:  # of an invalid port or IPv6 address
            host = None
        if not host:
            shown = "(hidden: it may hold a secret)" if set("@?#") & set(base_url) else base_url
            raise ConfigError(
                f"hint.teacher.base_url={shown!r} must be like https://host/v1, a port from 1 to "
                "65535, no user name or query; put a key into the variable that api_key_env names"
            )
        self._url, self._key = base_url, key
        self._uses_proxy = uses_proxy and host not in _LOCAL
        self.timeout_s = timeout_s
        self._clients: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # by event loop

    async def send(self, request: Request) -> CachedResponse | Fault:
        """Try once, within the time limit as a whole."""
        outcome = await self._ask("/chat/completions", self.timeout_s, request.body)
        return outcome if isinstance(outcome, Fault) else self._parse(outcome, request)

    async def reach(self) -> Fault | None:
        """Return why no request can work: the list of models does not come, or the key is refused.

        An endpoint without such a list, or one that is busy, is there.
        """
        outcome = await self._ask("/models", min(self.timeout_s, _REACH_S))
        if isinstance(outcome, bytes):
            return None
        is_no = outcome.what.startswith(("HTTP 401", "HTTP 403"))
        return outcome if outcome.kind in ("connection", "timeout") or is_no else None

    async def _ask(
        self, path: str, limit_s: float, body: Mapping[str, Any] | None = None
    ) -> bytes | Fault:
        import openai

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            # A redirect could carry the key elsewhere; loopback needs no proxy.
            http = openai.DefaultAsyncHttpxClient(
                follow_redirects=False,
                trust_env=self._uses_proxy,
                timeout=None,
                event_hooks={"response": [teacher_response.read_bounded]},
            )
            self._clients[loop] = openai.AsyncOpenAI(
                api_key=self._key or "none",
                base_url=self._url,
                max_retries=0,
                timeout=None,
                http_client=http,
            )
        # The organisation and project of the environment are another endpoint's. No connection is
        # kept, so none is left open when the loop of a worker ends.
        names = ["OpenAI-Organization", "OpenAI-Project", *([] if self._key else ["Authorization"])]
        headers = {**dict.fromkeys(names, openai.Omit()), "Connection": "close"}
        options: Any = {"options": {"headers": headers}} | ({} if body is None else {"body": body})
        send = self._clients[loop].get if body is None else self._clients[loop].post
        try:
            async with asyncio.timeout(limit_s):
                # The bytes alone: _parse reads what they hold.
                response = await send(path, cast_to=openai.HttpxBinaryResponseContent, **options)
                return response.content
        except TimeoutError:
            return Fault("timeout", f"no whole answer within {limit_s:g} s")
        except teacher_response.TooLong:
            return Fault("garbage", f"more than {teacher_response.MAX_BODY_BYTES >> 20} MiB")
        except openai.APIStatusError as error:
            status = error.status_code
            what = f"HTTP {status}: {self._excerpt(error.response.content)}"
            if status != 429 and status < 500 and status != 408:
                return Fault("refused", what)
            kind = "rate_limited" if status == 429 else "server_error"
            asked = error.response.headers.get("Retry-After", "")
            return Fault(kind, what, teacher_response.retry_after_s(asked))
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            if "peer closed connection" in str(cause):
                return Fault("cut_off", "the connection closed within the answer")
            what = self._excerpt(str(cause).encode())
            return Fault("connection", what or type(cause).__name__)

    def _parse(self, body: bytes, request: Request) -> CachedResponse | Fault:
        try:
            read = json.loads(body)
        except (ValueError, RecursionError):
            return Fault("garbage", f"no JSON: {self._excerpt(body)}")
        paid_tokens = 0
        match read:
            case {"choices": [{"message": {**message}} as choice, *_]} if isinstance(
                text := message.get("content"), str | None
            ):
                # A model that thinks may end before it has written any text: null, or no such key.
                is_cut = choice.get("finish_reason") == "length" or text is None
                # Half a character, as JSON can hold it, cannot be stored or tokenized.
                text = (text or "").encode("utf-8", "replace").decode()
                tokens, paid_tokens = teacher_response.usage_of(read, request, text)
                most = request.body.get("max_tokens")  # `hint.teacher.body` may take it out
                if isinstance(most, int) and 0 < _MAX_CHARS_PER_TOKEN * most < len(text):
                    what = f"{len(text)} characters, though max_tokens={most}"
                    return Fault("garbage", what, paid_tokens=paid_tokens)
                return CachedResponse(text, tokens, paid_tokens, is_cut)
            case {"usage": _}:
                paid_tokens = teacher_response.usage_of(read, request, "")[1]
        return Fault("garbage", f"no answer: {self._excerpt(body)}", paid_tokens=paid_tokens)

    def _excerpt(self, body: bytes) -> str:
        """Return at most 200 characters on one line; some endpoints repeat the key they got."""
        text = body.decode("utf-8", "replace")
        text = text.replace(self._key, "***") if self._key else text
        text = "".join(char if char.isprintable() else " " for char in text[: 4 * _EXCERPT_CHARS])
        return " ".join(text.split())[:_EXCERPT_CHARS]


class _Asked(NamedTuple):
    """The result of one request and its retries; ``num_calls`` is 0 from the cache."""

    outcome: CachedResponse | Fault
    num_calls: int = 0


class Teacher:
    """Ask the endpoint, up to ``attempts`` times where a response holds no hint levels.

    Source: the external teacher of Liao et al. 2026, arXiv:2602.03143 (Fig. 3).
    """

    def __init__(
        self,
        settings: TeacherSettings,
        *,
        texts: Texts,
        sampling: TeacherSampling,
        attempts: int = 3,
        max_level: int = 3,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """Read the key and open the cache; the endpoint is not asked yet.

        Raises:
            ConfigError: If the address, the model, the key or the cache cannot be used.
        """
        if not settings.model:
            raise ConfigError("hint.teacher.model is empty; give the name the endpoint knows it by")
        self._settings = settings
        self._texts = texts
        self.sampling = sampling
        self._attempts = attempts
        self._max_level = max_level
        key = read_key(settings, environment)
        self._client = Client(settings.base_url, key=key, timeout_s=settings.timeout_s)
        self._cache = ResponseCache(settings.cache_dir)
        self._ledger = Ledger(self._cache)
        self._slots = Slots(settings.num_parallel)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._num_silent = 0  # requests in a row without an answer in time
        self._warned: set[str] = set()

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the teacher's hint levels; the policy (``generate``) is not asked.

        ``calls`` and ``tokens`` (of the responses) are what this prompt rollout caused: 0 from the
        cache.
        """
        if not problem.solution.strip():
            return HintResult("missing_solution")
        messages = hint_request(self._texts, problem.text, problem.solution)
        number = num_before % self._settings.num_ladders
        calls, tokens, detail = 0, 0, ""
        for attempt in range(self._attempts):
            request = make_request(
                self._settings, self.sampling, messages=messages, number=number, attempt=attempt
            )
            outcome, num_calls = await self._ask(request)
            calls += num_calls
            if isinstance(outcome, Fault):
                detail = f"{outcome.kind}: {outcome.what}"
                return HintResult("generation_failed", calls=calls, tokens=tokens, detail=detail)
            tokens += outcome.tokens if num_calls else 0
            parsed = parse_hint_levels(outcome.text, self._max_level)
            if not isinstance(parsed, ParseFailure):
                return HintResult("ok", parsed, calls, tokens)
            where = "in a response cut at its token limit: " if outcome.is_cut else ""
            detail = f"{parsed.reason}: {where}{parsed.excerpt}"
        return HintResult("parse_failed", calls=calls, tokens=tokens, detail=detail)

    async def reply(
        self, messages: Sequence[Message], sampling: TeacherSampling
    ) -> WrittenText | HintStatus:
        """Return the teacher's text, or ``generation_failed``; the log has the fault.

        An empty text is an answer if the model ended it; one that is cut before any text is not.
        """
        request = make_request(self._settings, sampling, messages=messages)
        outcome, _ = await self._ask(request)
        if isinstance(outcome, CachedResponse) and not outcome.is_unwritten:
            return WrittenText(outcome.text, outcome.tokens, outcome.is_cut)
        if isinstance(outcome, CachedResponse):
            self._warn(Fault("garbage", "an answer without text within its token limit"))
        return "generation_failed"

    async def _ask(self, request: Request) -> _Asked:
        """Return the cached response, or ask; equal requests wait for the first."""
        lock = self._locks.setdefault(request.key, asyncio.Lock())
        try:
            async with lock:
                # In this order: what waits leaves once it is in the cache.
                cached = self._ledger.get(request.key)
                cached = cached or await asyncio.to_thread(self._cache.get, request.key)
                if cached:
                    return _Asked(cached)
                # Later turns, which are longer, first: else no prompt of many finishes for long.
                async with self._slots.held(len(request.body["messages"])):
                    return await self._try(request)
        except sqlite3.Error as error:
            return self._warn(Fault("cache", f"{self._settings.cache_dir}: {error}"), 0)

    async def _try(self, request: Request) -> _Asked:
        num_calls = 0
        while True:
            if fault := await self._unpayable():
                return self._warn(fault, num_calls)
            outcome = await self._client.send(request)
            num_calls += 1
            is_silent = isinstance(outcome, Fault) and outcome.kind == "timeout"
            self._num_silent = self._num_silent + 1 if is_silent else 0
            if isinstance(outcome, CachedResponse):
                if outcome.is_unwritten:
                    await self._book(self._ledger.pay(outcome.paid_tokens))
                else:
                    await self._book(self._ledger.add(request.key, outcome))
                return _Asked(outcome, num_calls)
            if outcome.paid_tokens:
                await self._book(self._ledger.pay(outcome.paid_tokens))
            wait_s = self._wait_s(request, outcome, num_calls)
            if wait_s is None:
                return self._warn(outcome, num_calls)
            await wait(wait_s)

    async def _unpayable(self) -> Fault | None:
        """Return why nothing more may be paid for."""
        if what := await self._ledger.catch_up():
            return Fault("cache", what)
        budget = self._settings.budget_tokens
        if budget is None:
            return None
        paid_tokens = await asyncio.to_thread(self._cache.paid_tokens)
        paid_tokens += self._ledger.waiting_tokens
        if paid_tokens < budget:
            return None
        what = (
            f"{paid_tokens} tokens are paid and hint.teacher.budget_tokens={budget}; cached "
            "responses are still used, and a larger budget continues from here"
        )
        return Fault("budget", what)

    async def _book(self, booking: Awaitable[str]) -> None:
        if what := await booking:
            # The response is paid for and good: better used once than thrown away.
            self._warn(Fault("cache", what))

    def _wait_s(self, request: Request, fault: Fault, num_calls: int) -> float | None:
        """Return the seconds until the next try; none when there is to be no other.

        Once ``num_parallel`` requests in a row were in vain, an endpoint that answers nobody costs
        one ``timeout_s`` a request and not ``num_retries`` + 1, until it answers again.
        """
        settings = self._settings
        if fault.kind == "timeout" and self._num_silent >= settings.num_parallel:
            return None
        is_patient = fault.wait_s <= settings.max_wait_s
        if fault.kind in _PERMANENT or num_calls > settings.num_retries or not is_patient:
            return None
        # Spread by up to a half, so that those who failed together do not return together.
        spread = random.Random(seed_at(request.key, num_calls, os.getpid())).uniform(0.5, 1.0)
        doubled_s = settings.backoff_s * 2.0 ** min(num_calls - 1, 60)
        return max(fault.wait_s, min(doubled_s, settings.max_wait_s) * spread)

    def _warn(self, fault: Fault, num_calls: int = 0) -> _Asked:
        """Log the first fault of its kind; that of each hint is in the records and metrics."""
        if fault.kind not in self._warned:
            self._warned.add(fault.kind)
            logger.warning("the teacher gave no answer: %s: %s", fault.kind, fault.what)
        return _Asked(fault, num_calls)

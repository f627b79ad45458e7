"""Hints and turns of an external teacher: any endpoint that speaks OpenAI's chat completions.

The request for hints is the one for self-hints. It depends on the problem and not on the step, so
it costs once, however often it is used and whatever run comes back to it. A failure ends in a
status with a detail that begins with its name, and never in the end of a run. ``openai``, which is
imported with the first request, sends and tries again.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recipe.hint.hints.base import (
    EMPTY,
    Generate,
    HintResult,
    TeacherSampling,
    TeacherSettings,
    WrittenText,
)
from recipe.hint.hints.levels_json import parse_hint_levels
from recipe.hint.hints.self_generated import hint_request
from recipe.hint.prompt import Message, Texts
from recipe.hint.schema import HintStatus, ParseFailure, seed_at
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError

logger = logging.getLogger(__name__)
CACHE_FILE = "answers.sqlite"  # and its table: names of files that users have
_TABLE = """CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, tokens INTEGER NOT NULL,
    paid_tokens INTEGER NOT NULL, is_cut INTEGER NOT NULL) WITHOUT ROWID"""
_REACH_S, _EXCERPT_CHARS = 10.0, 200
_KINDS = {
    "TimeoutError": "timeout",
    "APITimeoutError": "timeout",
    "APIConnectionError": "connection",
    "RateLimitError": "rate_limited",
    "InternalServerError": "server_error",
}


class TeacherFault(Exception):
    """No usable response; the message begins with a word for the reason and a colon."""


class ResponseCache:
    """Responses by the key of their request, in one SQLite file that processes may share."""

    def __init__(self, folder: str | Path) -> None:
        self._path = Path(folder) / CACHE_FILE
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._do(_TABLE)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"hint.teacher.cache_dir={folder} cannot be used: {error}") from error

    def _do(self, query: str, *values: Any) -> Any:
        # A connection for each operation, so that a process may fork at any time.
        with contextlib.closing(sqlite3.connect(self._path, timeout=30.0)) as one, one:
            return one.execute(query, values).fetchone()

    def get(self, key: str) -> WrittenText | None:
        """Return the response to a request, if there is one."""
        row = self._do("SELECT text, tokens, is_cut FROM answers WHERE key = ?", key)
        return WrittenText(row[0], row[1], bool(row[2])) if row else None

    def add(self, key: str, written: WrittenText, paid_tokens: int = 0) -> None:
        """Keep a response and what it cost with its prompt; the first one of a key stays."""
        query = "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)"
        self._do(query, key, written.text, written.tokens, paid_tokens, written.is_cut)


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
        self._settings = settings
        self._texts = texts
        self.sampling = sampling
        self._attempts = attempts
        self._max_level = max_level
        self._key = _read_key(settings, environment)
        self._cache = ResponseCache(settings.cache_dir)
        self._slots = asyncio.Semaphore(settings.num_parallel)
        self._client: Any = None
        self._warned: set[str] = set()

    async def write(
        self, problem: Problem, generate: Generate, *, num_before: int = 0
    ) -> HintResult:
        """Return the teacher's hint levels; the policy (``generate``) is not asked.

        ``calls`` and ``tokens`` are what this prompt rollout caused: 0 from the cache.
        """
        if not problem.solution.strip():
            return HintResult("missing_solution")
        messages = hint_request(self._texts, problem.text, problem.solution)
        number = num_before % self._settings.num_ladders
        calls, tokens, detail = 0, 0, ""
        for attempt in range(self._attempts):
            try:
                written, is_new = await self._ask(messages, self.sampling, number, attempt)
            except TeacherFault as fault:
                return HintResult("generation_failed", EMPTY, calls + 1, tokens, str(fault))
            calls, tokens = calls + is_new, tokens + is_new * written.tokens
            parsed = parse_hint_levels(written.text, self._max_level)
            if not isinstance(parsed, ParseFailure):
                return HintResult("ok", parsed, calls, tokens)
            where = "in a response cut at its token limit: " if written.is_cut else ""
            detail = f"{parsed.reason}: {where}{parsed.excerpt}"
        return HintResult("parse_failed", EMPTY, calls, tokens, detail)

    async def reply(
        self, messages: Sequence[Message], sampling: TeacherSampling
    ) -> WrittenText | HintStatus:
        """Return the teacher's text, or ``generation_failed``; the log has the fault."""
        try:
            return (await self._ask(messages, sampling))[0]
        except TeacherFault:
            return "generation_failed"

    async def _ask(
        self,
        messages: Sequence[Message],
        sampling: TeacherSampling,
        number: int = 0,
        attempt: int = 0,
    ) -> tuple[WrittenText, bool]:
        # A response and whether it is new; `number` tells sets of hints apart. The key has the
        # whole request but the address: a model may move to another port. An endpoint need not
        # know `seed`, so the coordinates count on their own.
        body: dict[str, Any] = {
            "model": self._settings.model,
            "messages": list(messages),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "seed": seed_at(sampling.seed, number, attempt),
        } | self._settings.body
        body = {name: value for name, value in body.items() if value is not None}
        content = json.dumps([body, sampling.seed, number, attempt], sort_keys=True)
        key = hashlib.sha256(content.encode()).hexdigest()
        try:
            if kept := await asyncio.to_thread(self._cache.get, key):
                return kept, False
            async with self._slots:
                written, paid_tokens = await self._send(body)
            await asyncio.to_thread(self._cache.add, key, written, paid_tokens)
            return written, True
        except Exception as error:  # noqa: BLE001 - the run goes on, whatever came back
            kind, what = _fault(error, self._key)
        if kind not in self._warned:  # those of all hints are in the records and metrics
            self._warned.add(kind)
            logger.warning("the teacher gave no answer: %s: %s", kind, what)
        raise TeacherFault(f"{kind}: {what}")

    async def _send(self, body: dict[str, Any]) -> tuple[WrittenText, int]:
        import openai

        settings = self._settings
        if self._client is None:
            self._client = _client(openai.AsyncOpenAI, settings, self._key, settings.num_retries)
        own = {name: body.pop(name) for name in ("model", "messages")}
        # The limits of the library are between bytes; this is one for all of them.
        async with asyncio.timeout(settings.timeout_s * (settings.num_retries + 1)):
            answer = await self._client.chat.completions.create(**own, extra_body=body)
        choice, usage = answer.choices[0], answer.usage
        # Half a character, as JSON can hold it, cannot be stored or tokenized.
        text = (choice.message.content or "").encode("utf-8", "replace").decode()
        is_cut = choice.finish_reason == "length"
        if is_cut and not text:  # all its tokens are thoughts
            raise ValueError("cut at its token limit before any text")
        tokens = usage.completion_tokens if usage else -(-len(text) // 4)
        return WrittenText(text, tokens, is_cut), usage.total_tokens if usage else tokens


def check_teacher(
    settings: TeacherSettings, environment: Mapping[str, str], *, is_elsewhere: bool = False
) -> str | None:
    """Make sure that the endpoint can be asked; where there is a cache it need not.

    Returns a warning where it may still answer the run: it is silent, or the run may be meant for
    another machine (``is_elsewhere``), which reaches more.

    Raises:
        ConfigError: Naming the address, and what came in place of an answer.
    """
    key = _read_key(settings, environment)
    if not (settings.base_url and settings.model):
        raise ConfigError(
            "the teacher needs hint.teacher.base_url and hint.teacher.model, like "
            "hint.teacher.base_url=http://localhost:8000/v1 hint.teacher.model=NAME"
        )
    if (Path(settings.cache_dir) / CACHE_FILE).is_file():
        return None
    import openai

    timeout_s = min(settings.timeout_s, _REACH_S)
    refused = (openai.AuthenticationError, openai.PermissionDeniedError)
    try:
        _client(openai.OpenAI, settings, key, 1, timeout_s).get("/models", cast_to=object)
    except (openai.APIConnectionError, *refused) as error:
        kind, what = _fault(error, key)
        told = f"hint.teacher.base_url={settings.base_url} cannot be asked: {kind}: {what}"
        if kind == "timeout" or (kind == "connection" and is_elsewhere):
            return f"{told}; it is asked again when it is needed"
        raise ConfigError(f"{told}; start the endpoint, or correct the address or key") from None
    except Exception:  # noqa: BLE001 - an answer of any other kind is somebody
        return None
    return None


def _client(
    cls: Any, settings: TeacherSettings, key: str, retries: int, timeout_s: float = 0.0
) -> Any:
    # Without organisation and project: those of the environment are another endpoint's.
    own = {"api_key": key or "EMPTY", "organization": "", "project": ""}
    limits = {"timeout": timeout_s or settings.timeout_s, "max_retries": retries}
    return cls(base_url=settings.base_url, **limits, **own)


def _fault(error: Exception, key: str) -> tuple[str, str]:
    # The kind of a failure and what is known of it; some endpoints repeat the key.
    name = type(error).__name__
    kind = _KINDS.get(name) or ("refused" if hasattr(error, "status_code") else "garbage")
    kind = "cache" if isinstance(error, sqlite3.Error) else kind
    what = " ".join(f"{name}: {error.__cause__ or error}".split())
    return kind, (what.replace(key, "***") if key else what)[:_EXCERPT_CHARS]


def _read_key(settings: TeacherSettings, environment: Mapping[str, str]) -> str:
    name = settings.api_key_env
    key = environment.get(name, "").strip() if name else ""
    if name and not key:
        raise ConfigError(f"hint.teacher.api_key_env={name}: this variable is not set; set it")
    return key

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
    Generate,
    HintResult,
    TeacherSampling,
    TeacherSettings,
    WrittenText,
)
from recipe.hint.hints.self_generated import SelfGenerated
from recipe.hint.prompt import Message, Texts
from recipe.hint.schema import HintStatus, seed_at
from recipe.problems.schema import Problem
from recipe.run.errors import ConfigError

logger = logging.getLogger(__name__)
CACHE_FILE = "answers.sqlite"  # and its table: names of files that users have
_TABLE = """CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, tokens INTEGER NOT NULL,
    paid_tokens INTEGER NOT NULL, is_cut INTEGER NOT NULL) WITHOUT ROWID"""
_REACH_S = 10.0


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

    def add(self, key: str, written: WrittenText) -> None:
        """Keep a response; the first one of a key stays."""
        query = "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)"
        self._do(query, key, written.text, written.tokens, written.tokens, written.is_cut)


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
        self.sampling = sampling
        self._levels = SelfGenerated(texts, attempts, max_level)
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
        number = num_before % self._settings.num_ladders

        async def ask(messages: list[Message], attempt: int) -> tuple[WrittenText, bool] | str:
            return await self._ask(messages, self.sampling, number, attempt)

        return await self._levels.first_of(problem, ask)

    async def reply(
        self, messages: Sequence[Message], sampling: TeacherSampling
    ) -> WrittenText | HintStatus:
        """Return the teacher's text, or ``generation_failed``; the log has the fault."""
        answer = await self._ask(messages, sampling, 0, 0)
        return "generation_failed" if isinstance(answer, str) else answer[0]

    async def _ask(
        self, messages: Sequence[Message], sampling: TeacherSampling, number: int, attempt: int
    ) -> tuple[WrittenText, bool] | str:
        # A response and whether it is new, or the fault; `number` tells sets of hints apart. The
        # key has the whole request but the address: a model may move to another port. An endpoint
        # need not know `seed`, so the coordinates count on their own.
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
                written = await self._send(body)
            await asyncio.to_thread(self._cache.add, key, written)
            return written, True
        except Exception as error:  # noqa: BLE001 - the run goes on, whatever came back
            fault = _fault(error, self._key)
        if (kind := fault.partition(":")[0]) not in self._warned:  # metrics count those of hints
            self._warned.add(kind)
            logger.warning("the teacher gave no answer: %s", fault)
        return fault

    async def _send(self, body: dict[str, Any]) -> WrittenText:
        import openai

        settings = self._settings
        if self._client is None:
            self._client = openai.AsyncOpenAI(
                **_options(settings, self._key), max_retries=settings.num_retries
            )
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
        return WrittenText(text, tokens, is_cut)


def check_teacher(
    settings: TeacherSettings, environment: Mapping[str, str], *, is_elsewhere: bool = False
) -> str | None:
    """Make sure that the endpoint can be asked; where there is a cache it need not.

    Returns a warning in place of an error where the run is meant for another machine
    (``is_elsewhere``), which may reach it.
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

    options = _options(settings, key)
    options["timeout"] = min(settings.timeout_s, _REACH_S)
    try:
        openai.OpenAI(**options, max_retries=1).get("/models", cast_to=object)
    except (
        openai.APIConnectionError,
        openai.AuthenticationError,
        openai.PermissionDeniedError,
    ) as error:
        told = f"hint.teacher.base_url={settings.base_url} cannot be asked: {_fault(error, key)}"
        if is_elsewhere:
            return f"{told}; it is asked again when it is needed"
        raise ConfigError(f"{told}; start the endpoint, or correct the address or key") from None
    except (openai.OpenAIError, ValueError):  # an answer of any other kind is somebody
        return None
    return None


def _options(settings: TeacherSettings, key: str) -> dict[str, Any]:
    # Without organisation and project: those of the environment are another endpoint's.
    own = {"api_key": key or "EMPTY", "organization": "", "project": ""}
    return {"base_url": settings.base_url, "timeout": settings.timeout_s, **own}


def _fault(error: Exception, key: str) -> str:
    # The kind of a failure and what is known of it; some endpoints repeat the key.
    name, kind = type(error).__name__, "garbage"
    if "Timeout" in name:
        kind = "timeout"
    elif name == "APIConnectionError":
        kind = "connection"
    elif hasattr(error, "status_code"):
        kind = "refused"
    what = " ".join(f"{name}: {error.__cause__ or error}".split())
    return f"{kind}: {(what.replace(key, '***') if key else what)[:200]}"


def _read_key(settings: TeacherSettings, environment: Mapping[str, str]) -> str:
    name = settings.api_key_env
    key = environment.get(name, "").strip() if name else ""
    if name and not key:
        raise ConfigError(f"hint.teacher.api_key_env={name}: this variable is not set; set it")
    return key

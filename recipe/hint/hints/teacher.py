"""Hints of an external teacher: any endpoint that speaks OpenAI's chat completions.

The request is the one for self-hints. It depends on the problem and not on the step, so it costs
once, however often it is used and whatever run comes back to it (``teacher_cache``).
Every failure is a ``HintResult`` whose detail begins with a ``FaultKind``; the run goes on.

Not covered: an endpoint may charge for a reply that is lost on the way (a timeout, a broken
connection). What it charges is unknown here and not in the budget.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple
from weakref import WeakValueDictionary

from recipe.hint.errors import ConfigError
from recipe.hint.hints.base import Generate, HintResult
from recipe.hint.hints.parsing import parse_hint_levels
from recipe.hint.hints.teacher_cache import Answer, AnswerCache
from recipe.hint.hints.teacher_client import PASSING, Client, Fault
from recipe.hint.hints.teacher_request import (
    Request,
    Sampling,
    make_request,
    read_key,
)
from recipe.hint.hints.teacher_settings import TeacherSettings
from recipe.hint.prompt import Texts, hint_request
from recipe.hint.schema import ParseFailure, Problem
from recipe.hint.seeds import seed_at

logger = logging.getLogger(__name__)
wait = asyncio.sleep  # for the tests, which wait for nobody


class _Asked(NamedTuple):
    """What came of one request and its retries; ``num_calls`` is 0 from the cache."""

    outcome: Answer | Fault
    num_calls: int = 0


class Teacher:
    """Ask the endpoint, up to ``attempts`` times where a reply is no ladder.

    Source: the external teacher of Liao et al. 2026, arXiv:2602.03143 (Fig. 3).
    """

    def __init__(
        self,
        settings: TeacherSettings,
        *,
        texts: Texts,
        sampling: Sampling,
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
        self._sampling = sampling
        self._attempts = attempts
        self._max_level = max_level
        key = read_key(settings, environment)
        self._client = Client(settings.base_url, key=key, timeout_s=settings.timeout_s)
        self._cache = AnswerCache(settings.cache_dir)
        self._slots = asyncio.Semaphore(settings.num_parallel)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._counters: Counter[str] = Counter()
        self._warned: set[str] = set()

    def counters(self) -> dict[str, int]:
        """What happened so far in this process.

        ``calls`` are HTTP requests: the sum of ``answers`` and of every ``fault_*``. ``cached``
        replies cost no call. ``stopped`` are requests that the budget or the cache stopped.
        """
        return dict(self._counters)

    async def hint_levels(
        self, problem: Problem, generate: Generate, *, visits: int = 0
    ) -> HintResult:
        """The teacher's hint levels for a problem; the policy (``generate``) is not asked.

        ``calls`` and ``tokens`` (of the replies) are what this visit caused: 0 from the cache.
        """
        if not problem.solution.strip():
            return HintResult("missing_solution")
        messages = hint_request(self._texts, problem.text, problem.solution)
        number = visits % self._settings.num_ladders
        calls, tokens, detail = 0, 0, ""
        for attempt in range(self._attempts):
            request = make_request(
                self._settings, self._sampling, messages=messages, number=number, attempt=attempt
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
            where = " in a reply cut at its token limit" if outcome.is_cut else ""
            detail = f"{parsed.reason}{where}: {parsed.excerpt}"
        return HintResult("parse_failed", calls=calls, tokens=tokens, detail=detail)

    async def _ask(self, request: Request) -> _Asked:
        """The answer from the cache or the endpoint; equal requests wait for the first."""
        lock = self._locks.setdefault(request.key, asyncio.Lock())
        try:
            async with lock:
                if cached := await asyncio.to_thread(self._cache.get, request.key):
                    self._counters["cached"] += 1
                    return _Asked(cached)
                async with self._slots:
                    return await self._try(request)
        except sqlite3.Error as error:
            return self._stop(Fault("cache", f"{self._settings.cache_dir}: {error}"), 0)

    async def _try(self, request: Request) -> _Asked:
        num_calls = 0
        while True:
            if fault := await self._over_budget():
                return self._stop(fault, num_calls)
            outcome = await self._client.send(request)
            num_calls += 1
            self._counters["calls"] += 1
            if isinstance(outcome, Answer):
                self._counters["answers"] += 1
                await self._book(self._cache.put, request.key, outcome)
                return _Asked(outcome, num_calls)
            self._counters[f"fault_{outcome.kind}"] += 1
            if outcome.paid_tokens:
                await self._book(self._cache.pay, outcome.paid_tokens)
            wait_s = self._wait_s(request, outcome, num_calls)
            if wait_s is None:
                self._warn(outcome)
                return _Asked(outcome, num_calls)
            await wait(wait_s)

    async def _over_budget(self) -> Fault | None:
        budget = self._settings.budget_tokens
        if budget is None:
            return None
        paid_tokens = await asyncio.to_thread(self._cache.paid_tokens)
        if paid_tokens < budget:
            return None
        what = (
            f"{paid_tokens} tokens are paid and hint.teacher.budget_tokens={budget}; cached "
            "answers are still used, and a larger budget goes on from here"
        )
        return Fault("budget", what)

    async def _book(self, write: Callable[..., None], *values: object) -> None:
        try:
            await asyncio.to_thread(write, *values)
        except sqlite3.Error as error:
            # The answer is paid for and good: better used once than thrown away.
            self._warn(Fault("cache", f"{self._settings.cache_dir}: not written: {error}"))

    def _wait_s(self, request: Request, fault: Fault, num_calls: int) -> float | None:
        """Seconds until the next try; none when there is to be no other."""
        settings = self._settings
        is_patient = fault.wait_s <= settings.max_wait_s
        if fault.kind not in PASSING or num_calls > settings.num_retries or not is_patient:
            return None
        # Spread by up to a half, so that those who failed together do not return together.
        spread = random.Random(seed_at(request.key, num_calls, os.getpid())).uniform(0.5, 1.0)
        doubled_s = settings.backoff_s * 2.0 ** min(num_calls - 1, 60)
        return max(fault.wait_s, min(doubled_s, settings.max_wait_s) * spread)

    def _stop(self, fault: Fault, num_calls: int) -> _Asked:
        self._counters["stopped"] += 1
        self._warn(fault)
        return _Asked(fault, num_calls)

    def _warn(self, fault: Fault) -> None:
        """Log the first fault of its kind; all of them are in the records and counters."""
        if fault.kind not in self._warned:
            self._warned.add(fault.kind)
            logger.warning("the teacher gave no answer: %s: %s", fault.kind, fault.what)

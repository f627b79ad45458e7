"""The ``hint.teacher`` node, its checks, and the request that is made of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from recipe.hint.prompt import Message
from recipe.hint.schema import seed_at
from recipe.run.errors import ConfigError


@dataclass(frozen=True)
class TeacherSettings:
    """The ``hint.teacher`` node: an endpoint that speaks OpenAI's chat completions.

    Attributes:
        base_url: Address up to and with ``/v1``; needed to ask for hints or turns.
        model: Name that the endpoint knows the model by; needed as well.
        api_key_env: Name of the environment variable that holds the key; null sends none.
        num_ladders: Different sets of hints for one problem; its visits take them in turn.
        num_parallel: Requests under way at once, per worker process.
        timeout_s: Longest time of one request, from connecting to the last byte.
        num_retries: Further tries after one that failed for a passing reason.
        backoff_s: Wait before the first retry; doubles with each, then takes a random factor of 0.5
            to 1.
        max_wait_s: Longest wait; an endpoint that asks for a longer one is given up.
        budget_tokens: Prompt and response tokens to pay at most, all processes and runs that share
            the cache together; null for no limit. Requests under way are not counted yet.
        cache_dir: Folder of the responses; runs that share it pay for each once.
        body: Further fields of a request; null takes one away (``{max_tokens: null}``).
    """

    base_url: str = ""
    model: str = ""
    api_key_env: str | None = None
    num_ladders: int = 1
    num_parallel: int = 16
    timeout_s: float = 120.0
    num_retries: int = 4
    backoff_s: float = 1.0
    max_wait_s: float = 60.0
    budget_tokens: int | None = None
    cache_dir: str = "outputs/teacher"
    body: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        least_of = {"num_ladders": 1, "num_parallel": 1, "num_retries": 0, "budget_tokens": 0}
        for name, least in least_of.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"hint.teacher.{name}={value} must be at least {least}")
        for name in ("timeout_s", "backoff_s", "max_wait_s"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise ConfigError(f"hint.teacher.{name}={value} must be a positive number")
        for name in ("messages", "model", "n", "stream"):
            if name in self.body:
                raise ConfigError(f"hint.teacher.body must not hold {name}; the teacher sets it")


class TeacherSampling(NamedTuple):
    """How responses are drawn; the settings ``hint.temperature`` and so on."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int = 1


class Request(NamedTuple):
    """One request and the name under which its response is kept."""

    body: Mapping[str, Any]
    key: str


def make_request(
    settings: TeacherSettings,
    sampling: TeacherSampling,
    *,
    messages: Sequence[Message],
    number: int = 0,
    attempt: int = 0,
) -> Request:
    """Return the request for one response; equal arguments give an equal key, in any process.

    The address is not a part of the key: a model may move to another port. ``number`` tells several
    sets of hints for one problem apart, ``attempt`` the attempts at one of them.
    """
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": list(messages),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": seed_at(sampling.seed, number, attempt),
    } | settings.body
    body = {name: value for name, value in body.items() if value is not None}
    # An endpoint need not know `seed`, so the coordinates count on their own.
    content = json.dumps([body, sampling.seed, number, attempt], sort_keys=True)
    return Request(body, hashlib.sha256(content.encode()).hexdigest())


def check_teacher(settings: TeacherSettings, environment: Mapping[str, str]) -> None:
    """Check what can be known before the endpoint is asked.

    Raises:
        ConfigError: If the address or the model is not given, or the key is not there.
    """
    for name in ("base_url", "model"):
        if not getattr(settings, name):
            raise ConfigError(
                f"the teacher needs hint.teacher.{name}, like "
                f"hint.teacher.base_url=http://localhost:8000/v1 hint.teacher.model=NAME"
            )
    read_key(settings, environment)


def read_key(settings: TeacherSettings, environment: Mapping[str, str]) -> str:
    """Return the key, or nothing when none is asked for; no message ever shows it.

    Raises:
        ConfigError: If the variable is missing or holds no key.
    """
    name = settings.api_key_env
    if name is None:
        return ""
    key = environment.get(name, "").strip()
    if not key:
        raise ConfigError(
            f"hint.teacher.api_key_env={name}, but this environment variable is "
            f"{'empty' if name in environment else 'not set'}; set it on every node of the run, "
            "or leave the setting out for an endpoint without keys"
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigError(
            f"the environment variable {name} holds no key: a key is one word of printable ASCII"
        )
    return key

"""What a teacher is asked with: the endpoint's settings, the key, and the body of a request."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from recipe.hint.errors import ConfigError
from recipe.hint.hints.teacher_settings import TeacherSettings
from recipe.hint.prompt import Message
from recipe.hint.seeds import seed_at


class Sampling(NamedTuple):
    """How replies are drawn; the settings ``hint.temperature`` and so on."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int = 1


class Request(NamedTuple):
    """One request and the name under which its answer is kept."""

    body: Mapping[str, Any]
    key: str


def make_request(
    settings: TeacherSettings,
    sampling: Sampling,
    *,
    messages: Sequence[Message],
    number: int = 0,
    attempt: int = 0,
) -> Request:
    """The request for one reply; equal arguments give an equal key, in any process.

    The address is no part of the key: a model may move to another port.

    Args:
        settings: Names the model and the further fields.
        sampling: How the reply is drawn.
        messages: The conversation.
        number: Which hint levels it is for, where several are wanted for one problem.
        attempt: Number of the attempt at this ladder.
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
    """What can be known to be wrong before the endpoint is asked.

    Raises:
        ConfigError: If the address or the model is not given, or the key is not there.
    """
    for name in ("base_url", "model"):
        if not getattr(settings, name):
            raise ConfigError(
                f"hint.source=teacher needs hint.teacher.{name}, like "
                f"hint.teacher.base_url=http://localhost:8000/v1 hint.teacher.model=NAME"
            )
    read_key(settings, environment)


def read_key(settings: TeacherSettings, environment: Mapping[str, str]) -> str:
    """The key, or nothing when none is asked for. No message ever shows it.

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

"""The ``hint.teacher`` node; what is asked of a teacher is in ``hints/teacher_request.py``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from recipe.hint.errors import ConfigError


@dataclass(frozen=True)
class TeacherSettings:
    """The ``hint.teacher`` node: an endpoint that speaks OpenAI's chat completions.

    Attributes:
        base_url: Address up to and with ``/v1``; needed by ``hint.source=teacher``.
        model: Name that the endpoint knows the model by; needed as well.
        api_key_env: Name of the environment variable that holds the key; null sends none.
        num_ladders: Different hint levels for one problem; its visits take them in turn.
        num_parallel: Requests under way at once, per worker process.
        timeout_s: Longest time of one request, from connecting to the last byte.
        num_retries: Further tries after one that failed for a passing reason.
        backoff_s: Wait before the first retry; each further wait is twice as long.
        max_wait_s: Longest wait; an endpoint that asks for a longer one is given up.
        budget_tokens: Prompt and reply tokens to pay at most, all processes and runs that share
            the cache together; null for no limit. Requests under way are not counted yet.
        cache_dir: Folder of the answers; runs that share it pay for an answer once.
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

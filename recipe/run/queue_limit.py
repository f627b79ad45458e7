"""Limit the driver's calls to TransferQueue, which waits for its controller without an end."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import transfer_queue as tq

from recipe.run.watchdog import NO_ANSWER, Watchdog

# All that verl's trainer, its replay buffer and this package call on the driver's main thread.
CALLS = ("kv_list", "kv_batch_put", "kv_batch_get", "kv_clear")


@contextlib.contextmanager
def limited_queue(watchdog: Watchdog, limit_s: float) -> Iterator[None]:
    """Let ``answer_s`` limit each call of the block that no other phase limits.

    Its actors may answer Ray while a message of theirs is lost, so their pings do not suffice. The
    module's functions are replaced: verl calls them in the middle of what cannot be divided.
    """
    before = {name: getattr(tq, name) for name in CALLS}
    for name, call in before.items():
        setattr(tq, name, _limited(call, watchdog, limit_s))
    try:
        yield
    finally:
        for name, call in before.items():
            setattr(tq, name, call)


def _limited(call: Callable[..., Any], watchdog: Watchdog, limit_s: float) -> Callable[..., Any]:
    @functools.wraps(call)
    def ask(*args: Any, **kwargs: Any) -> Any:
        if watchdog.is_limiting:
            return call(*args, **kwargs)
        setting = "hint.watchdog.answer_s"
        with watchdog.phase("TransferQueue", limit_s, setting, fault=NO_ANSWER):
            return call(*args, **kwargs)

    return ask

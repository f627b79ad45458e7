"""Find out at the start whether the teacher's endpoint answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from recipe.hint.hints.teacher import Client, Fault
from recipe.hint.hints.teacher_cache import ResponseCache
from recipe.hint.hints.teacher_settings import TeacherSettings, read_key
from recipe.run.errors import ConfigError

_PAUSE_S = 2.0


def check_reached(
    settings: TeacherSettings, environment: Mapping[str, str], *, is_elsewhere: bool = False
) -> str | None:
    """Make sure that the endpoint can be asked; with cached responses it need not.

    Args:
        settings: The teacher's.
        environment: Has the key.
        is_elsewhere: Whether the run may be meant for another machine, which reaches more.

    Returns:
        What to warn of where it may still answer the run: it is silent, as one that is busy or
        loads its model, or not reached from here.

    Raises:
        ConfigError: Naming the address, and what came in place of an answer.
    """
    key = read_key(settings, environment)
    client = Client(settings.base_url, key=key, timeout_s=settings.timeout_s)
    if ResponseCache.has_responses(settings.cache_dir):
        return None
    fault = asyncio.run(_reach(client))
    if fault is None:
        return None
    what = f"hint.teacher.base_url={settings.base_url} cannot be asked: {fault.kind}: {fault.what}"
    if fault.kind == "timeout" or (fault.kind == "connection" and is_elsewhere):
        return f"{what}; it is asked again when it is needed"
    raise ConfigError(f"{what}; start the endpoint, or correct the address or the key")


async def _reach(client: Client) -> Fault | None:
    """Try, and once more after a connection that failed."""
    fault = await client.reach()
    if fault and fault.kind == "connection":
        await asyncio.sleep(_PAUSE_S)
        fault = await client.reach()
    return fault

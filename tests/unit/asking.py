"""A teacher that asks the server on loopback."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from chat_server import ChatServer, completion
from fakes import problem

from recipe.hint.hints.teacher import Client, Teacher
from recipe.hint.hints.teacher_settings import TeacherSampling, TeacherSettings
from recipe.hint.prompt import Texts

KEY = "sk-very-secret"
FAST = TeacherSettings(model="m", timeout_s=300.0, num_retries=2, backoff_s=0.001)
SHORT_S = 3.0


def teacher(server: ChatServer, folder, **changes) -> Teacher:
    environment = {"TEACHER_KEY": KEY}
    settings = replace(FAST, base_url=server.url, cache_dir=str(folder), **changes)
    one = Teacher(
        settings, texts=Texts(), sampling=TeacherSampling(max_tokens=64), environment=environment
    )
    one._client.send = hurried(one._client, server)
    return one


def hurried(client: Client, server: ChatServer) -> Callable:
    """Sends with a short limit what the server never answers, and all else with its long one.

    So a busy machine turns no answer into a time-out.
    """
    send, limit_s = client.send, client.timeout_s
    numbers: Counter[str] = Counter()

    async def hurry(request):
        key = json.dumps(request.body["messages"])
        numbers[key] += 1
        # Read when the request is sent, which is before anybody else runs.
        client.timeout_s = SHORT_S if server.is_slow(request.body, numbers[key]) else limit_s
        return await send(request)

    return hurry


def ask(tmp_path, script=None, *, asked=1, retry_after=None, is_slow=None, **changes):
    """Results of ``asked`` equal questions in turn, the server, and the teacher."""

    async def run():
        server = ChatServer(script)
        server.retry_after = retry_after
        server.is_slow = is_slow or server.is_slow
        async with server.running():
            one = teacher(server, tmp_path, **changes)
            return [await one.write(problem(), never) for _ in range(asked)], server, one

    return asyncio.run(run())


async def never(messages, attempt):
    raise AssertionError("the policy must not be asked")


def once(fault):
    """This fault at the first request, an answer after it."""
    return lambda body, number: fault if number == 1 else completion()


def always(told):
    return lambda body, number: told

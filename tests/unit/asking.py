"""A teacher that asks the server on loopback."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from chat_server import ChatServer
from fakes import problem

from recipe.hint.hints.base import TeacherSampling, TeacherSettings
from recipe.hint.hints.teacher import Teacher
from recipe.hint.prompt import Texts

KEY = "sk-very-secret"
PATIENT = TeacherSettings(model="m", timeout_s=300.0, num_retries=0)


def teacher(server: ChatServer, folder, **changes) -> Teacher:
    return Teacher(
        replace(PATIENT, base_url=server.url, cache_dir=str(folder), **changes),
        texts=Texts(),
        sampling=TeacherSampling(max_tokens=64),
        environment={"TEACHER_KEY": KEY},
    )


def ask(tmp_path, script=None, *, asked=1, **changes):
    """Results of ``asked`` equal questions in turn, and the server."""

    async def run():
        async with ChatServer(script).running() as server:
            one = teacher(server, tmp_path, **changes)
            return [await one.write(problem(), never) for _ in range(asked)], server

    return asyncio.run(run())


async def never(messages, attempt):
    raise AssertionError("the policy must not be asked")


def always(told):
    return lambda body, number: told

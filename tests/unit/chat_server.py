"""A real HTTP server on loopback that speaks chat completions, with faults on demand."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from aiohttp import web

LADDER = json.dumps({"level_1": "think", "level_2": "think, add", "level_3": "think, add, carry"})
SLOW_S = 60.0


def completion(text: str | None = LADDER, *, finish: str = "stop", usage: bool = True) -> dict:
    """Ten tokens of prompt, and a token of reply per character."""
    reply: dict[str, Any] = {
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
        ]
    }
    if usage:
        size = len(text or "")
        reply["usage"] = {"prompt_tokens": 10, "completion_tokens": size, "total_tokens": 10 + size}
    return reply


class ChatServer:
    """``script(body, n)`` names what the n-th request (from 1) for equal messages gets.

    A dict is the reply. A text is one of the faults: a status, ``slow``, ``cut``, ``closed``, or
    ``raw:`` and the body. ``requests`` are the bodies and ``headers`` the headers of all requests.
    """

    def __init__(self, script: Callable[[dict, int], dict | str] | None = None) -> None:
        self.script = script or (lambda body, number: completion())
        self.requests: list[dict] = []
        self.headers: list[dict] = []
        self.retry_after: str | None = None
        # Says of a request, as the script is asked, whether it gets ``slow``.
        self.is_slow: Callable[[dict, int], bool] = lambda body, number: False
        self.hold = 0  # replies are held until as many requests are under way
        self.most_at_once = 0
        self.models_status = 200
        self.url = ""
        self._at_once = 0
        self._numbers: dict[str, int] = {}

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": []}, status=self.models_status)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        key = json.dumps(body["messages"])
        self._numbers[key] = self._numbers.get(key, 0) + 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            return await self._reply(request, self.script(body, self._numbers[key]))
        finally:
            self._at_once -= 1

    async def _reply(self, request: web.Request, told: dict | str) -> web.StreamResponse:
        while self.most_at_once < self.hold:
            await asyncio.sleep(0.001)
        if isinstance(told, dict):
            return web.json_response(told)
        if told.startswith("raw:"):
            return web.Response(text=told.removeprefix("raw:"), content_type="application/json")
        if told.isdecimal():
            headers = {"Retry-After": self.retry_after} if self.retry_after else {}
            sent = request.headers.get("Authorization", "no key")
            error = {"error": {"message": f"no: {sent}"}}
            return web.json_response(error, status=int(told), headers=headers)
        if told == "slow":
            await asyncio.sleep(SLOW_S)
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        if told == "cut":
            await response.prepare(request)
            await response.write(b'{"choices": [{"message": {"content": "half a')
        assert request.transport is not None
        request.transport.close()
        return response

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[ChatServer]:
        """Listen on a free port of 127.0.0.1."""
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._answer)
        runner = web.AppRunner(
            app, shutdown_timeout=0.0, access_log=None, handler_cancellation=True
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        try:
            yield self
        finally:
            await runner.cleanup()


@contextlib.contextmanager
def served(script=None):
    """The server in a thread with a loop of its own, for what blocks this one."""
    server, ready, stop = ChatServer(script), threading.Event(), asyncio.Event()
    loops = []

    async def serve():
        loops.append(asyncio.get_running_loop())
        async with server.running():
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        loops[0].call_soon_threadsafe(stop.set)
        thread.join(10)

"""A group's limit covers its admission by vLLM, and leaves nothing admitted behind."""

import asyncio

import pytest

from recipe.hint.adapter.rollout_server import GroupHttpServer

PLACES = ("the adapter", "the admission", "the answer")


class Engine:
    """Stands still at one place."""

    def __init__(self, place):
        self.place, self.aborted, self.is_there = place, [], asyncio.Event()

    async def come(self, place):
        if place == self.place:
            self.is_there.set()
            await asyncio.Event().wait()

    async def list_loras(self):
        await self.come("the adapter")
        return set()

    async def add_request(self, request_id, prompt, params, *, lora_request):
        await self.come("the admission")
        return self

    def get_nowait(self):
        return None

    async def get(self):
        await self.come("the answer")

    async def abort(self, request_id, internal=False):
        self.aborted.append((request_id, internal))


class Server(GroupHttpServer):
    lora_as_adapter = True


def server_at(place):
    server = Server.__new__(Server)
    server.engine, server.global_steps, server._admitting = Engine(place), 7, 0
    server._submission_paused = server._rejecting = False
    return server


@pytest.mark.parametrize("place", PLACES)
def test_a_group_that_vllm_keeps_waiting_ends_with_its_limit(place):
    async def ask():
        server = server_at(place)
        # Far longer than the limit: only the test's end if it is not kept.
        with pytest.raises(TimeoutError) as late:
            await asyncio.wait_for(
                server.generate_group([1, 2], {"n": 3, "max_tokens": 4}, "id", 0.05), 60
            )
        assert str(late.value) == ""
        return server

    server = asyncio.run(ask())
    assert server.engine.is_there.is_set()
    assert server._admitting == 0
    assert server.engine.aborted == [("id", False)]

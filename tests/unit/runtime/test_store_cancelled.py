"""A write that is cancelled, from beneath or from outside, leaves no publisher waiting."""

import asyncio
from types import SimpleNamespace

import pytest
import transfer_queue as tq

from recipe.hint.adapter import store


def outcome(uid):
    return SimpleNamespace(rows=(), record=SimpleNamespace(uid=uid))


@pytest.fixture(autouse=True)
def _one_row_each(monkeypatch):
    monkeypatch.setattr(
        store, "rows_of", lambda outcome, row: iter([(outcome.record.uid, {"a": 1}, {})])
    )


@pytest.fixture
def queue(monkeypatch):
    """Calls of the queue; ``put`` and ``clear`` are coroutine functions that a test gives."""
    queue = SimpleNamespace(cleared=[])

    async def put(keys, partition_id, tags, fields=None):
        if fields is not None:
            await queue.put(keys)

    async def clear(keys, partition_id):
        queue.cleared.append(keys)
        raise asyncio.CancelledError

    monkeypatch.setattr(tq, "async_kv_batch_put", put)
    monkeypatch.setattr(tq, "async_kv_clear", clear)
    return queue


def published(publisher, *uids):
    return [asyncio.create_task(publisher.publish(outcome(uid), {}, "train")) for uid in uids]


def ends_of(tasks):
    return asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)


def test_a_cancellation_from_beneath_fails_the_prompts_of_the_write_and_no_later_one(queue):
    async def put(keys):
        if "bad" in keys:
            raise asyncio.CancelledError

    queue.put = put

    async def publish():
        publisher = store.Publisher()
        first = await ends_of(published(publisher, "good", "bad"))
        return first, await ends_of(published(publisher, "later"))

    first, [later] = asyncio.run(publish())
    assert [type(each) for each in first] == [RuntimeError] * 2
    assert later is None


def test_a_writer_that_is_cancelled_ends_and_fails_all_who_wait(queue):
    async def publish():
        writes = asyncio.Event()

        async def put(keys):
            writes.set()
            await asyncio.Event().wait()

        queue.put = put
        publisher = store.Publisher()
        written = published(publisher, "written")
        await writes.wait()
        waiting = published(publisher, "waits")
        await asyncio.sleep(0)
        writer = publisher._task
        writer.cancel()
        ends = await ends_of([*written, *waiting])
        assert writer.cancelled()

        async def put_at_once(keys):
            pass

        queue.put = put_at_once
        return ends, await ends_of(published(publisher, "later"))

    ends, [later] = asyncio.run(publish())
    assert [type(end) for end in ends] == [RuntimeError] * 2
    assert later is None

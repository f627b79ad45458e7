"""A slot goes to whoever is furthest along, and no slot is ever lost."""

import asyncio

from recipe.run.together import Slots


def entered(slots, waiting, *, cancelled=()):
    """Who got the only slot, in order, of those who came while it was held."""
    order = []

    async def enter(name, progress):
        async with slots.held(progress):
            order.append(name)
            await asyncio.sleep(0)

    async def run():
        async with slots.held(0):
            tasks = {name: asyncio.create_task(enter(name, many)) for name, many in waiting.items()}
            await asyncio.sleep(0)
            for name in cancelled:
                tasks[name].cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)

    asyncio.run(run())
    return order


def test_later_turns_go_first_and_of_equals_who_came_first():
    waiting = {"a": 1, "b": 1, "c": 3, "d": 1, "e": 3}
    assert entered(Slots(1), waiting) == ["c", "e", "a", "b", "d"]


def test_as_many_go_at_once_as_there_are_slots():
    now = most = 0

    async def work(slots):
        nonlocal now, most
        async with slots.held(1):
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

    async def run():
        slots = Slots(3)
        await asyncio.gather(*(work(slots) for _ in range(10)))

    asyncio.run(run())
    assert (now, most) == (0, 3)


def test_who_gives_up_leaves_the_slot_to_the_next():
    slots = Slots(1)
    assert entered(slots, {"a": 1, "b": 2, "c": 1}, cancelled=["b"]) == ["a", "c"]
    assert entered(slots, {"a": 1}) == ["a"]


def test_who_gives_up_in_the_moment_that_it_is_let_in_passes_the_slot_on():
    async def run():
        slots, order = Slots(1), []

        async def enter(name):
            async with slots.held(1):
                order.append(name)

        async with slots.held(1):
            first, second = (asyncio.create_task(enter(name)) for name in "ab")
            await asyncio.sleep(0)
        first.cancel()  # it was let in above, and has not run since
        await asyncio.gather(first, second, return_exceptions=True)
        return order

    assert asyncio.run(run()) == ["b"]

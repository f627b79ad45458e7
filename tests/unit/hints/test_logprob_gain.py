"""How much likelier a hint makes a response, and what a request that fails ends."""

import asyncio

import pytest

from recipe.hint.hints.logprob_gain import logprob_gains

BARE = [9]


def test_a_gain_is_the_mean_over_the_tokens_that_both_prompts_leave_room_for():
    async def log_probs(prompt_ids, token_ids):
        return [-2.0] * 3 if prompt_ids == BARE else [-0.5, -1.5]

    # (-0.5 + 2 - 1.5 + 2) / 2 = 1; the response without tokens has none.
    gains = asyncio.run(logprob_gains([([1, 9], [5, 6, 7]), ([2, 9], [])], BARE, log_probs))
    assert gains == (1.0,)


def test_a_request_that_fails_ends_the_others():
    ended = []

    async def log_probs(prompt_ids, token_ids):
        if prompt_ids == [0]:
            await asyncio.sleep(0)
            raise RuntimeError("one server fails")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(prompt_ids)

    async def ask():
        with pytest.raises(RuntimeError, match="one server fails"):
            await logprob_gains([([0], [5]), ([1], [5])], BARE, log_probs)
        async with asyncio.timeout(60):
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0)

    asyncio.run(ask())
    assert sorted(ended) == [[1], BARE, BARE]

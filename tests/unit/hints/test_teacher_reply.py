"""A teacher's turn is its text without its thoughts, wherever the endpoint puts these."""

import asyncio

import pytest
from asking import always, teacher
from chat_server import ChatServer, completion

from recipe.hint.hints.base import WrittenText
from recipe.hint.hints.teacher_cache import CachedResponse
from recipe.hint.hints.teacher_settings import TeacherSampling, make_request

ASKED = [{"role": "user", "content": "Is step 2 right?"}]
SAMPLING = TeacherSampling(max_tokens=64)
SECRET = "the answer is 5"


def replies(tmp_path, told, asked=1, kept=None):
    """Replies to equal questions in turn, and the server; ``kept`` is in the cache before."""

    async def run():
        async with ChatServer(always(told)).running() as server:
            one = teacher(server, tmp_path)
            if kept:
                one._cache.add(make_request(one._settings, SAMPLING, messages=ASKED).key, kept)
            return [await one.reply(ASKED, SAMPLING) for _ in range(asked)], server

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"<think>{SECRET}</think>Look at step 2.", "Look at step 2."),
        (f"\n<think>\n{SECRET}\n</think>\n\nLook at step 2.\n", "Look at step 2.\n"),
        (f"{SECRET}</think>Look at step 2.", "Look at step 2."),  # the template began the thought
        (f"<think>{SECRET}</think>No.<think>{SECRET}</think>Look.", "Look."),
        (" Write <think> first.", " Write <think> first."),
        ("", ""),
        (f"<think>{SECRET}</think>", ""),
    ],
)
def test_what_follows_the_last_thought_is_the_reply(tmp_path, text, shown):
    results, server = replies(tmp_path, completion(text), asked=2)
    assert results == [WrittenText(shown, len(text), False)] * 2
    assert len(server.requests) == 1


def test_a_reply_that_is_cut_behind_its_thought_stays_a_cut_reply(tmp_path):
    text = f"<think>{SECRET}</think>Look at st"
    [result], _ = replies(tmp_path, completion(text, finish="length"))
    assert result == WrittenText("Look at st", len(text), True)


@pytest.mark.parametrize("finish", ["length", "stop"])
@pytest.mark.parametrize(
    "text", [f"<think>{SECRET} and so", f"\n<think>{SECRET}", f"a</think>\n<think>{SECRET}"]
)
def test_a_thought_that_does_not_end_is_no_reply_and_is_asked_for_again(tmp_path, text, finish):
    results, server = replies(tmp_path, completion(text, finish=finish), asked=2)
    assert results == ["generation_failed"] * 2
    assert len(server.requests) == 2  # paid, and not kept


def test_a_message_without_content_is_no_reply_and_costs_one_request(tmp_path):
    told = completion(finish="length")
    told["choices"][0]["message"] = {"role": "assistant", "reasoning_content": SECRET}
    [result], server = replies(tmp_path, told)
    assert (result, len(server.requests)) == ("generation_failed", 1)


def test_thoughts_that_an_earlier_version_kept_are_not_shown_either(tmp_path):
    kept = CachedResponse(f"<think>{SECRET}</think>Look.", 9, 19)
    results, server = replies(tmp_path, completion("other"), kept=kept)
    assert (results, server.requests) == ([WrittenText("Look.", 9, False)], [])

"""The teacher against a real HTTP server: replies, faults, retries, and what is asked twice."""

import asyncio
import json
from email.utils import formatdate

import pytest
from asking import always, ask, never, once, teacher
from chat_server import LADDER, ChatServer, completion
from fakes import problem

from recipe.hint.hints.teacher_settings import TeacherSampling
from recipe.hint.schema import HintLevels

HINTS = HintLevels(("think", "think, add", "think, add, carry"))


def test_a_reply_is_read_like_a_self_hint_and_its_price_is_its_tokens(tmp_path):
    [result], server, _ = ask(tmp_path)
    assert (result.status, result.hint_levels, result.calls) == ("ok", HINTS, 1)
    assert result.tokens == len(LADDER)
    [body] = server.requests
    assert body["model"] == "m"
    assert body["max_tokens"] == 64
    assert [turn["role"] for turn in body["messages"]] == ["system", "user"]
    assert "one step, then the next" in body["messages"][1]["content"]


def test_without_a_solution_nobody_is_asked(tmp_path):
    async def run():
        async with ChatServer().running() as server:
            result = await teacher(server, tmp_path).write(problem(solution=" "), never)
            return result, server.requests

    result, requests = asyncio.run(run())
    assert (result.status, requests) == ("missing_solution", [])


@pytest.mark.parametrize(
    ("num_chars", "status"), [(64 * 64, "ok"), (64 * 64 + 1, "generation_failed")]
)
def test_a_text_far_longer_than_was_asked_for_is_no_answer(tmp_path, num_chars, status):
    # 64 tokens are asked for, and none is longer than 64 characters.
    text = LADDER + " " * (num_chars - len(LADDER))
    [result], *_ = ask(tmp_path, always(f"raw:{json.dumps(completion(text))}"))
    assert result.status == status


PASSING = {
    "429": "rate_limited",
    "500": "server_error",
    "503": "server_error",
    "408": "server_error",
    "slow": "timeout",
    "closed": "connection",
    "cut": "cut_off",
    "raw:<html>busy</html>": "garbage",
    'raw:{"choices": []}': "garbage",
    'raw:{"choices": [{"message": "text"}]}': "garbage",
    "raw:" + "[" * 100_000: "garbage",
    "raw:\x00\xff": "garbage",
}


@pytest.mark.parametrize("fault", PASSING)
def test_a_passing_fault_costs_one_more_call(tmp_path, fault):
    [result], server, _ = ask(
        tmp_path, once(fault), is_slow=lambda body, number: fault == "slow" and number == 1
    )
    assert (result.status, result.calls, len(server.requests)) == ("ok", 2, 2)


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_stays_is_a_failure_with_its_name(tmp_path, fault):
    [result], server, _ = ask(tmp_path, always(fault), is_slow=lambda body, number: fault == "slow")
    assert (result.status, result.calls) == ("generation_failed", 3)  # 1 + 2 retries
    assert len(server.requests) == 3
    assert result.detail.startswith(f"{PASSING[fault]}: ")
    assert result.hint_levels == HintLevels(())


def test_an_endpoint_that_answers_nobody_costs_one_time_out_a_question_not_three(tmp_path):
    results, server, _ = ask(
        tmp_path, always("slow"), is_slow=lambda body, number: True, asked=3, num_parallel=2
    )
    # The first question retries once: then as many as may be under way were in vain.
    assert [result.calls for result in results] == [2, 1, 1]
    assert all(result.detail.startswith("timeout: ") for result in results)
    assert len(server.requests) == 4


def test_an_endpoint_that_answers_again_is_tried_again_as_before(tmp_path):
    told = {1: "slow", 2: "slow", 3: "500", 4: "slow"}  # 500: somebody is there
    [first, second], _, one = ask(
        tmp_path,
        lambda body, number: told.get(number) or completion(),
        is_slow=lambda body, number: told.get(number) == "slow",
        asked=2,
        num_parallel=2,
    )
    assert (first.status, first.calls) == ("generation_failed", 2)
    assert (second.status, second.calls) == ("ok", 3)


@pytest.mark.parametrize("status", ["301", "400", "401", "404"])
def test_a_refusal_is_not_tried_again(tmp_path, status):
    [result], _, _ = ask(tmp_path, always(status))
    assert (result.status, result.calls) == ("generation_failed", 1)
    assert result.detail.startswith(f"refused: HTTP {status}: no:")


@pytest.mark.parametrize("body", ["null", "5", '"text"', "[1]", '{"usage": {}}', '{"choices": 0}'])
def test_any_json_that_is_no_completion_is_garbage(tmp_path, body):
    [result], server, _ = ask(tmp_path, always(f"raw:{body}"))
    assert result.detail == f"garbage: no answer: {body}"
    assert result.calls == len(server.requests) == 3


def test_a_body_without_end_is_garbage_after_16_mib(tmp_path):
    [result], _, _ = ask(tmp_path, always("raw:" + " " * (17 << 20)), num_retries=0)
    assert result.detail == "garbage: more than 16 MiB"


def test_half_a_character_is_replaced(tmp_path):
    # Written as \\ud800 in JSON, which no file and no tokenizer takes.
    [result], server, _ = ask(tmp_path, always(completion("\ud800")))
    assert (result.status, result.detail) == ("parse_failed", "no_object: ?")
    assert result.calls == len(server.requests) == 3


def test_a_server_that_is_not_there_is_a_connection_fault(tmp_path):
    async def run():
        async with ChatServer().running() as server:
            one = teacher(server, tmp_path)
        return await one.write(problem(), never)

    result = asyncio.run(run())
    assert result.detail.startswith("connection: ")


def test_a_wait_that_the_server_asks_for_is_kept(tmp_path, monkeypatch):
    waits_s = []

    async def wait(seconds):
        waits_s.append(seconds)

    monkeypatch.setattr("recipe.hint.hints.teacher.wait", wait)
    [result], _, _ = ask(tmp_path, once("429"), retry_after="30")
    assert result.calls == 2
    assert waits_s == [30.0]  # the backoff alone would be at most 0.001


@pytest.mark.parametrize(
    "wait", ["61", formatdate(4_000_000_000, usegmt=True)], ids=["seconds", "date"]
)
def test_a_wait_that_is_too_long_gives_up(tmp_path, wait):
    [result], server, _ = ask(tmp_path, always("429"), retry_after=wait)
    assert (result.status, len(server.requests)) == ("generation_failed", 1)


@pytest.mark.parametrize("wait", ["soon", "-3", "nan", "Mon, 01 Jan 2001 00:00:00 GMT"])
def test_a_wait_that_means_nothing_is_passed_over(tmp_path, wait):
    [result], _, _ = ask(tmp_path, once("429"), retry_after=wait)
    assert (result.status, result.calls) == ("ok", 2)


def test_a_reply_that_is_no_ladder_is_asked_for_again_with_another_seed(tmp_path):
    texts = iter(["no hints today", LADDER])
    [result], server, _ = ask(tmp_path, lambda body, number: completion(next(texts)))
    assert (result.status, result.calls) == ("ok", 2)
    assert result.tokens == len("no hints today") + len(LADDER)
    first, second = server.requests
    assert first["seed"] != second["seed"]
    assert first | {"seed": 0} == second | {"seed": 0}


def test_three_replies_without_a_ladder_are_a_parse_failure_and_paid_once(tmp_path):
    cut = completion('{"level_1": "a', finish="length")
    results, server, _ = ask(tmp_path, always(cut), asked=2)
    assert [result.status for result in results] == ["parse_failed"] * 2
    assert [result.calls for result in results] == [3, 0]
    assert results[0].detail.startswith("malformed: in a response cut at its token limit: ")
    assert len(server.requests) == 3


def message(finish="length", **fields):
    """A response whose message has these fields alone."""
    reply = completion(finish=finish)
    reply["choices"][0]["message"] = {"role": "assistant"} | fields
    return reply


@pytest.mark.parametrize(
    "reply",
    [completion(None), message(), message(reasoning_content="hm"), message("stop")],
    ids=["null", "absent", "thoughts apart", "absent and ended"],
)
def test_a_reply_without_text_is_a_parse_failure(tmp_path, reply):
    [result], server, _ = ask(tmp_path, always(reply))
    assert (result.status, result.calls) == ("parse_failed", 3)
    assert len(server.requests) == 3  # nothing is tried again as a fault


def test_hints_behind_a_thought_are_read_and_kept(tmp_path):
    results, server, _ = ask(tmp_path, always(completion(f"<think>hm</think>{LADDER}")), asked=2)
    assert [(each.hint_levels, each.calls) for each in results] == [(HINTS, 1), (HINTS, 0)]


def test_the_same_question_costs_nothing_the_second_time(tmp_path):
    results, server, _ = ask(tmp_path, asked=2)
    assert [(each.hint_levels, each.calls, each.tokens) for each in results] == [
        (HINTS, 1, len(LADDER)),
        (HINTS, 0, 0),
    ]
    assert len(server.requests) == 1


def test_questions_asked_together_are_asked_once(tmp_path):
    async def run():
        async with ChatServer().running() as server:
            one = teacher(server, tmp_path)
            results = await asyncio.gather(*(one.write(problem(), never) for _ in range(5)))
            return results, server.requests

    results, requests = asyncio.run(run())
    assert [result.hint_levels for result in results] == [HINTS] * 5
    assert sorted(result.calls for result in results) == [0, 0, 0, 0, 1]
    assert len(requests) == 1


@pytest.mark.parametrize(
    "changes",
    [{"model": "other"}, {"body": {"temperature": 0.5}}, {"body": {"seed": None}}],
    ids=str,
)
def test_another_model_or_sampling_is_another_question(tmp_path, changes):
    ask(tmp_path)
    [result], server, _ = ask(tmp_path, **changes)
    assert (result.calls, len(server.requests)) == (1, 1)


@pytest.mark.parametrize(
    ("num_ladders", "expected"), [(1, [1, 0, 0, 0, 0]), (2, [1, 1, 0, 0, 0]), (3, [1, 1, 1, 0, 0])]
)
def test_visits_take_the_ladders_in_turn_even_where_no_seed_is_sent(
    tmp_path, num_ladders, expected
):
    async def run():
        async with ChatServer().running() as server:
            one = teacher(server, tmp_path, body={"seed": None}, num_ladders=num_ladders)
            found = [await one.write(problem(), never, num_before=visit) for visit in range(5)]
            return [each.calls for each in found], server

    calls, server = asyncio.run(run())
    assert calls == expected
    assert all("seed" not in body for body in server.requests)


def test_no_more_requests_are_under_way_than_allowed(tmp_path):
    async def run():
        async with ChatServer().running() as server:
            server.hold = 3
            one = teacher(server, tmp_path, num_parallel=3)
            asked = (one.write(problem(solution=f"way {i}"), never) for i in range(12))
            await asyncio.gather(*asked)
            return server

    server = asyncio.run(run())
    assert len(server.requests) == 12
    assert server.most_at_once == 3


def test_a_later_turn_is_asked_before_first_turns_that_wait(tmp_path):
    """One request at a time; three first turns came before the second turn of a conversation."""

    def turns(count):
        return [{"role": "user", "content": str(number)} for number in range(count)]

    async def run():
        async with ChatServer(always(completion("x"))).running() as server:
            one = teacher(server, tmp_path, num_parallel=1)
            asked = [one.reply(turns(1), TeacherSampling(seed=seed)) for seed in (1, 2, 3)]
            asked.append(one.reply(turns(3), TeacherSampling(seed=4)))
            async with one._slots.held(0):
                tasks = [asyncio.create_task(each) for each in asked]
                while len(one._slots._waiting) < 4:
                    await asyncio.sleep(0.001)
            await asyncio.gather(*tasks)
            return [len(body["messages"]) for body in server.requests]

    assert asyncio.run(run()) == [3, 1, 1, 1]

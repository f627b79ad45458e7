"""What a teacher may spend, and what it may be set to; the key is seen by the endpoint alone."""

import asyncio
import contextlib
import json
import logging
from dataclasses import replace

import pytest
from asking import FAST, KEY, always, ask, never, once, teacher
from chat_server import LADDER, ChatServer, completion
from fakes import problem

from recipe.hint.hints import teacher_cache
from recipe.hint.hints.teacher import Teacher
from recipe.hint.hints.teacher_cache import ResponseCache
from recipe.hint.hints.teacher_settings import TeacherSampling, TeacherSettings
from recipe.hint.prompt import Texts
from recipe.run.errors import ConfigError


def test_the_budget_stops_new_questions_with_a_message_and_old_answers_stay(tmp_path, caplog):
    price = 10 + len(LADDER)

    async def run():
        async with ChatServer().running() as server:
            one = teacher(server, tmp_path, budget_tokens=2 * price)
            asked = [problem(solution=f"way {i}") for i in (0, 1, 2, 3, 0)]
            return [await one.write(each, never) for each in asked], server

    with caplog.at_level(logging.WARNING):
        results, server = asyncio.run(run())
    failed = "generation_failed"
    assert [result.status for result in results] == ["ok", "ok", failed, failed, "ok"]
    assert results[2].detail == (
        f"budget: {2 * price} tokens are paid and hint.teacher.budget_tokens={2 * price}; cached "
        "responses are still used, and a larger budget continues from here"
    )
    assert [result.calls for result in results] == [1, 1, 0, 0, 0]
    assert len(server.requests) == 2
    assert len(caplog.records) == 1  # once, not per problem
    assert results[2].detail in caplog.text


def test_the_budget_holds_over_a_restart(tmp_path):
    price = 10 + len(LADDER)
    ask(tmp_path, budget_tokens=price)
    [again], server, _ = ask(tmp_path, budget_tokens=price, model="other")
    assert (again.status, len(server.requests)) == ("generation_failed", 0)
    [more], _, _ = ask(tmp_path, budget_tokens=price + 1, model="other")
    assert more.status == "ok"


def test_an_endpoint_that_does_not_count_is_charged_by_length(tmp_path):
    [result], _, one = ask(tmp_path, always(completion(usage=False)))
    assert result.tokens == -(-len(LADDER) // 4)
    assert one._cache.paid_tokens() > result.tokens


@pytest.mark.parametrize("count", [10**30, 10**9, -(10**30), 1.5, "12", None])
def test_a_count_that_is_none_is_charged_by_length_or_not_at_all(tmp_path, count):
    usage = {"completion_tokens": count, "total_tokens": count}
    [result], _, one = ask(tmp_path, always({**completion(), "usage": usage}))
    assert result.status == "ok"
    assert 0 <= one._cache.paid_tokens() < 10**4


def test_garbage_that_is_charged_for_counts_against_the_budget(tmp_path):
    charged = json.dumps({"usage": {"completion_tokens": 30, "total_tokens": 40}})
    [result], server, _ = ask(tmp_path, always(f"raw:{charged}"), budget_tokens=80)
    assert len(server.requests) == 2  # 40 + 40 = 80
    assert result.detail.startswith("budget: 80 tokens")


# -- the key and the settings ---------------------------------------------------------------------


def test_the_key_is_sent_and_appears_nowhere_else(tmp_path, caplog):
    # The server's message repeats the header, as real ones do.
    with caplog.at_level(logging.DEBUG):
        [result], server, _ = ask(tmp_path, always("401"), api_key_env="TEACHER_KEY")
        ask(tmp_path, once("500"), api_key_env="TEACHER_KEY")
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert result.detail == "refused: HTTP 401: no: Bearer ***"
    assert KEY not in caplog.text + json.dumps(server.requests)
    assert [path for path in tmp_path.rglob("*") if KEY.encode() in path.read_bytes()] == []


def test_without_a_variable_no_key_is_sent(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, KEY)
    _, server, _ = ask(tmp_path)
    assert KEY not in repr(server.headers)


@pytest.mark.parametrize("proxy", ["http_proxy", "all_proxy"])
def test_loopback_needs_no_proxy(tmp_path, monkeypatch, proxy):
    monkeypatch.setenv(proxy, "http://127.0.0.1:9")
    [result], _, _ = ask(tmp_path)
    assert result.status == "ok"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, r"api_key_env=K, but this environment variable is not set; set it on every node"),
        ({"K": " \n"}, r"api_key_env=K, but this environment variable is empty"),
        ({"K": "two words"}, r"the environment variable K holds no key"),
        ({"K": "schlüssel"}, r"the environment variable K holds no key"),
    ],
)
def test_a_missing_key_is_told_before_anything_is_asked(tmp_path, environment, message):
    settings = replace(
        FAST, base_url="http://localhost/v1", cache_dir=str(tmp_path), api_key_env="K"
    )
    with pytest.raises(ConfigError, match=message) as caught:
        Teacher(settings, texts=Texts(), sampling=TeacherSampling(), environment=environment)
    assert "words" not in str(caught.value) or "two" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": ""}, r"hint\.teacher\.model is empty"),
        ({"base_url": ""}, r"base_url='' must be like https://host/v1"),
        ({"base_url": "localhost:8000/v1"}, r"base_url='localhost:8000/v1' must be like"),
        (
            {"base_url": "http://127.0.0.1:99999/v1"},
            r":99999/v1' must be like .* port from 1 to 65535",
        ),
        ({"base_url": "http://127.0.0.1:80 80/v1"}, r":80 80/v1' must be like"),
        ({"base_url": "http://127.0.0.1:-1/v1"}, r":-1/v1' must be like"),
        ({"base_url": "http://[::1/v1"}, r"'http://\[::1/v1' must be like"),
        ({"base_url": "http://host\n/v1"}, r"'http://host\\n/v1' must be like"),
        ({"base_url": "http://me:pw@host:99999/v1"}, r"base_url='\(hidden: it may hold"),
        ({"base_url": "http://me:pw@[::1/v1"}, r"base_url='\(hidden: it may hold a secret\)'"),
        ({"base_url": "http://me:pw@host/v1"}, r"base_url='\(hidden: it may hold a secret\)'"),
        ({"base_url": "http://host/v1?key=pw"}, r"base_url='\(hidden: it may hold a secret\)'"),
    ],
)
def test_an_endpoint_that_cannot_be_one_is_refused(tmp_path, changes, message):
    settings = replace(FAST, base_url="http://localhost/v1", cache_dir=str(tmp_path))
    with pytest.raises(ConfigError, match=message):
        Teacher(
            replace(settings, **changes), texts=Texts(), sampling=TeacherSampling(), environment={}
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_parallel": 0}, r"hint\.teacher\.num_parallel=0 must be at least 1"),
        ({"num_retries": -1}, r"hint\.teacher\.num_retries=-1 must be at least 0"),
        ({"timeout_s": 0.0}, r"hint\.teacher\.timeout_s=0\.0 must be a positive number"),
        ({"max_wait_s": float("inf")}, r"hint\.teacher\.max_wait_s=inf must be a positive"),
        ({"body": {"n": 2}}, r"hint\.teacher\.body must not hold n"),
    ],
)
def test_a_setting_out_of_range_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        TeacherSettings(**changes)


# -- a cache that cannot be written ---------------------------------------------------------------


def test_what_the_cache_does_not_take_stops_all_questions_until_it_does(
    tmp_path, monkeypatch, caplog
):
    price, is_full = 10 + len(LADDER), [True]
    open_as_it_was = ResponseCache._open

    @contextlib.contextmanager
    def opened(cache):
        with open_as_it_was(cache) as connection:
            if is_full[0]:
                connection.execute("PRAGMA query_only = 1")  # a disk that refuses to write
            yield connection

    async def run():
        async with ChatServer().running() as server:
            one = teacher(server, tmp_path, budget_tokens=2 * price)
            monkeypatch.setattr(ResponseCache, "_open", opened)
            asked = [problem(solution=f"way {number}") for number in range(4)]
            results = [await one.write(each, never) for each in (*asked[:3], asked[0])]
            kept = one._cache.paid_tokens()
            is_full[0] = False
            results += [await one.write(each, never) for each in asked[2:]]
            return results, len(server.requests), kept, one._cache.paid_tokens()

    with caplog.at_level(logging.WARNING):
        results, num_requests, kept, paid = asyncio.run(run())
    failed = "generation_failed"
    assert [each.status for each in results] == ["ok", failed, failed, "ok", "ok", failed]
    # The one that was paid for reaches the cache in the end, and is not asked for again.
    assert [each.calls for each in results] == [1, 0, 0, 0, 1, 0]
    assert (num_requests, kept, paid) == (2, 0, 2 * price)
    assert results[1].detail == (
        f"cache: {tmp_path}/answers.sqlite cannot be written: attempt to write a readonly "
        f"database; 1 paid responses ({price} tokens) are not in it, and nothing more is asked "
        "until they are: make room on its disk, make it writable, or end what locks it"
    )
    assert results[5].detail.startswith("budget: ")
    assert results[1].detail in caplog.text


def test_tokens_that_the_cache_has_not_counted_yet_count_against_the_budget(tmp_path):
    async def run():
        async with ChatServer().running() as server:
            one = teacher(server, tmp_path, budget_tokens=100)

            async def other_request_fails():
                one._ledger._waiting.append(teacher_cache._Entry(100, lambda: None))
                return ""

            one._ledger.catch_up = other_request_fails
            return await one.write(problem(), never), len(server.requests)

    result, num_requests = asyncio.run(run())
    assert (result.status, num_requests) == ("generation_failed", 0)
    assert result.detail.startswith("budget: 100 tokens are paid")

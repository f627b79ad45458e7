"""The teacher against a real HTTP server: replies, faults, what is asked twice, and the key."""

import asyncio
import json
import socket
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest
from asking import KEY, PATIENT, always, ask, never, teacher
from chat_server import LADDER, ChatServer, completion
from fakes import ScriptedEngine, problem

from recipe.hint.hints.base import WrittenText
from recipe.hint.hints.teacher import CACHE_FILE, ResponseCache, check_teacher
from recipe.hint.methods.sage import Sage
from recipe.hint.metrics import step_metrics
from recipe.hint.prompt import Texts
from recipe.hint.rollout import PromptRollout, RolloutParts
from recipe.hint.schema import ProblemState
from recipe.hint.settings import HintSettings
from recipe.run.errors import ConfigError

HINTS = ("think", "think, add", "think, add, carry")


def test_a_reply_is_read_like_a_self_hint_and_its_price_is_its_tokens(tmp_path):
    [result], server = ask(tmp_path)
    assert (result.status, result.hints_L, result.calls) == ("ok", HINTS, 1)
    assert result.tokens == len(LADDER)
    [body] = server.requests
    assert (body["model"], body["max_tokens"]) == ("m", 64)
    assert [turn["role"] for turn in body["messages"]] == ["system", "user"]
    assert "one step, then the next" in body["messages"][1]["content"]


@pytest.mark.parametrize("usage", [True, False])
def test_the_same_question_costs_nothing_the_second_time_in_any_run(tmp_path, usage):
    results, _ = ask(tmp_path, always(completion(usage=usage)), asked=2)
    again, server = ask(tmp_path)
    assert [each.calls for each in (*results, *again)] == [1, 0, 0]
    assert [each.tokens > 0 for each in (*results, *again)] == [True, False, False]
    assert {each.hints_L for each in (*results, *again)} == {HINTS}
    assert server.requests == []


@pytest.mark.parametrize("changes", [{"model": "other"}, {"body": {"seed": None}}], ids=str)
def test_another_model_or_sampling_is_another_question(tmp_path, changes):
    ask(tmp_path)
    [result], server = ask(tmp_path, **changes)
    assert (result.calls, len(server.requests)) == (1, 1)


def test_responses_of_earlier_versions_are_found(tmp_path):
    ask(tmp_path)
    with closing(sqlite3.connect(tmp_path / CACHE_FILE)) as one:
        [row] = one.execute("SELECT key, text, tokens, paid_tokens, is_cut FROM answers")
    key = "e650e68e50c5dcab05328cbce1206f1438c59b41991598f445a40ff5d005ea61"
    assert row == (key, LADDER, len(LADDER), len(LADDER), 0)


@pytest.mark.parametrize("num_ladders", [1, 3])
def test_visits_take_the_ladders_in_turn_even_where_no_seed_is_sent(tmp_path, num_ladders):
    async def run():
        async with ChatServer().running() as server:
            one = teacher(server, tmp_path, body={"seed": None}, num_ladders=num_ladders)
            found = [await one.write(problem(), never, num_before=visit) for visit in range(5)]
            return [each.calls for each in found], server

    calls, server = asyncio.run(run())
    assert calls == [1] * num_ladders + [0] * (5 - num_ladders)
    assert all("seed" not in body for body in server.requests)


def test_a_reply_that_is_no_ladder_is_asked_for_again_with_another_seed(tmp_path):
    texts = iter(["no hints today", LADDER])
    [result], server = ask(tmp_path, lambda body, number: completion(next(texts)))
    assert (result.status, result.calls) == ("ok", 2)
    assert result.tokens == len("no hints today") + len(LADDER)
    first, second = server.requests
    assert first["seed"] != second["seed"]
    assert first | {"seed": 0} == second | {"seed": 0}


def test_three_replies_without_a_ladder_are_a_parse_failure_and_paid_once(tmp_path):
    cut = completion('{"level_1": "a', finish="length")
    results, server = ask(tmp_path, always(cut), asked=2)
    assert [(each.status, each.calls) for each in results] == [("parse_failed", n) for n in (3, 0)]
    assert results[0].detail.startswith("missing_level: ")
    assert results[0].detail.endswith("(cut at its token limit)")
    assert len(server.requests) == 3


FAULTS = {
    "429": "refused",
    "500": "refused",
    "slow": "timeout",
    "closed": "connection",
    "cut": "connection",
    "401": "refused",
    "raw:<html>busy</html>": "garbage",
    'raw:{"choices": []}': "garbage",
    "raw:" + "[" * 100_000: "garbage",
}


def test_every_fault_ends_in_a_counted_record_and_a_second_run_asks_for_what_is_missing(tmp_path):
    """40 problems, nine of which get no hint: all train."""
    faulty = {f"way {4 * index}": fault for index, fault in enumerate(FAULTS)}

    def script(body, number):
        return faulty.get(body["messages"][1]["content"].rsplit("\n", 1)[-1]) or completion()

    records, server = visits(tmp_path, script, timeout_s=6.0)
    assert Counter(each.first_row_level for each in records) == {1: 31, 0: 9}
    assert all(len(each.accuracies) == 2 for each in records)
    kinds = Counter(FAULTS.values())
    assert Counter(each.hint_fault for each in records) == kinds | {"": 31}
    metrics = step_metrics(records, max_level=3)
    assert {name: metrics[f"fault_{name}"] for name in kinds} == kinds
    assert (metrics["generate_success"], metrics["generate_failed"]) == (31, 9)

    records, server = visits(tmp_path, None)
    assert len(server.requests) == 9
    assert Counter(each.first_row_level for each in records) == {1: 40}


def visits(folder, script, **changes):
    """The records of one step with 40 problems that are hard without a hint, and the server."""

    async def run():
        async with ChatServer(script).running() as server:
            parts = RolloutParts(
                method=Sage(max_level=3),
                source=teacher(server, folder, num_parallel=40, **changes),
                engine=ScriptedEngine({0: [0, 0], 1: [0, 1], 2: [0, 1], 3: [0, 1]}),
                settings=HintSettings(),
                texts=Texts(),
            )
            outcomes = await asyncio.gather(
                *(
                    PromptRollout(
                        problem(solution=f"way {i}", problem_id=f"p{i}"), state, parts
                    ).run(f"uid-{i}", 1)
                    for i, state in enumerate(ProblemState() for _ in range(40))
                )
            )
            return [each.record for each in outcomes], server

    return asyncio.run(run())


def test_a_reply_that_is_cut_before_its_text_is_a_fault_and_not_kept(tmp_path):
    [result], _ = ask(tmp_path, always(completion(None, finish="length")))
    assert result.detail == "garbage: ValueError: cut at its token limit before any text"
    [result], _ = ask(tmp_path)
    assert result.status == "ok"


def test_no_more_requests_are_under_way_than_allowed(tmp_path):
    async def run():
        async with ChatServer().running() as server:
            server.hold = 3
            one = teacher(server, tmp_path, num_parallel=3)
            asked = (one.write(problem(solution=f"way {i}"), never) for i in range(12))
            await asyncio.gather(*asked)
            return server

    server = asyncio.run(run())
    assert (len(server.requests), server.most_at_once) == (12, 3)


def test_the_key_is_sent_and_shown_nowhere(tmp_path, caplog):
    [result], server = ask(tmp_path, always("401"), api_key_env="TEACHER_KEY")
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert result.detail.startswith("refused: AuthenticationError: ")
    assert "***" in result.detail
    assert KEY not in result.detail + caplog.text + json.dumps(server.requests)
    assert [path for path in tmp_path.rglob("*") if KEY.encode() in path.read_bytes()] == []


def test_what_the_environment_holds_for_another_endpoint_is_not_sent(tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, KEY)
    _, server = ask(tmp_path)
    assert KEY not in repr(server.headers)


# -- before the first request ---------------------------------------------------------------------


@pytest.fixture
def closed_url():
    """An address that nobody listens on while the test has it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def test_an_endpoint_that_is_not_there_is_told_at_once(tmp_path, closed_url):
    given = replace(PATIENT, base_url=closed_url, cache_dir=str(tmp_path))
    with pytest.raises(ConfigError, match=f"{closed_url} cannot be asked: connection: "):
        check_teacher(given, {})
    assert "is asked again" in check_teacher(given, {}, is_elsewhere=True)
    with pytest.raises(ConfigError, match="api_key_env=K"):
        check_teacher(replace(given, api_key_env="K"), {})
    with pytest.raises(ConfigError, match="the teacher needs"):
        check_teacher(replace(given, model=""), {})
    ResponseCache(tmp_path).add("key", WrittenText("text", 1))
    assert check_teacher(given, {}) is None  # nobody has to be there


def test_a_silent_endpoint_is_told_too(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        given = replace(PATIENT, base_url=url, timeout_s=0.2, cache_dir=str(tmp_path))
        with pytest.raises(ConfigError, match="cannot be asked: timeout: "):
            check_teacher(given, {})


@pytest.mark.parametrize("status", [200, 404, 503, 401])
def test_any_answer_but_a_refused_key_is_somebody(tmp_path, status):
    async def run():
        async with ChatServer().running() as server:
            server.models_status = status
            given = replace(PATIENT, base_url=server.url, cache_dir=str(tmp_path))
            return await asyncio.to_thread(check_teacher, given, {})

    if status == 401:
        with pytest.raises(ConfigError, match="refused: .*key"):
            asyncio.run(run())
    else:
        assert asyncio.run(run()) is None

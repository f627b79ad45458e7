"""The offline hints tool: columns, resuming, and the command against a real HTTP server."""

import argparse
import asyncio
import json
import threading
from contextlib import contextmanager

import pyarrow.parquet as pq
import pytest
from chat_server import ChatServer, completion

from recipe.hint.hints.base import HintResult
from recipe.hint.schema import HintLevels
from recipe.problems.columns import make_row, read_file, write_rows
from recipe.problems.schema import hint_columns
from recipe.run.errors import ConfigError, DataError
from recipe.study.offline_command import add_arguments, run
from recipe.study.offline_hints import write_offline_hints


class Fake:
    """Hints that name their problem and number; ``statuses`` by problem for those without."""

    def __init__(self, statuses=None) -> None:
        self.statuses = statuses or {}
        self.asked: list[tuple[str, int]] = []

    async def write(self, problem, generate, *, num_before=0):
        self.asked.append((problem.id, num_before))
        await asyncio.sleep(0)
        if status := self.statuses.get((problem.id, num_before)):
            return HintResult(status, calls=1, tokens=2, detail=f"timeout: {problem.id}")
        hints = tuple(f"{problem.id} {num_before} level {level}, 42" for level in (1, 2, 3))
        return HintResult("ok", HintLevels(hints), calls=1, tokens=5)


@pytest.fixture
def in_path(tmp_path):
    rows = [
        make_row(f"Question {i}?", "42", solution=f"way {i}", row_id=f"p{i}") | {"note": i}
        for i in range(3)
    ]
    write_rows(rows, tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def write(in_path, source, **changes):
    out_path = in_path.with_name("out.parquet")
    report = asyncio.run(write_offline_hints(in_path, out_path, source, **changes))
    return report, pq.read_table(out_path).to_pylist()


def test_one_ladder_per_problem_is_three_columns_of_texts(in_path):
    report, rows = write(in_path, Fake())
    assert [row["hint_level_2"] for row in rows] == [f"p{i} 0 level 2, 42" for i in range(3)]
    assert [row["note"] for row in rows] == [0, 1, 2]
    assert len(read_file(report.path).problems) == 3
    assert (report.statuses, report.calls, report.tokens) == ({"ok": 3}, 3, 15)


def test_several_ladders_are_lists_in_which_a_place_is_one_ladder(in_path):
    source = Fake({("p1", 3): "parse_failed"})
    report, rows = write(in_path, source, per_prompt=10)
    assert sorted(source.asked) == [(f"p{i}", number) for i in range(3) for number in range(10)]
    assert [len(row["hint_level_1"]) for row in rows] == [10, 9, 10]
    for row in rows:
        weak, strong = row["hint_level_1"], row["hint_level_3"]
        assert [text.replace("level 1", "level 3") for text in weak] == strong
    assert rows[1]["hint_level_1"][3] == "p1 4 level 1, 42"
    assert report.statuses == {"ok": 29, "parse_failed": 1}
    assert report.num_without_hint == 0


@pytest.mark.parametrize("per_prompt", [1, 2])
def test_a_source_reads_what_was_written_and_sees_which_rows_have_none(in_path, per_prompt):
    lost = {("p1", number): "parse_failed" for number in range(2)}
    report, rows = write(in_path, Fake(lost), per_prompt=per_prompt)
    assert [[len(texts) for texts in hint_columns(row)] for row in rows] == [
        [per_prompt] * 3,
        [0] * 3,
        [per_prompt] * 3,
    ]
    assert report.num_without_hint == 1
    assert "3 problems, 1 without a hint" in report.summary()


def test_old_hint_columns_are_replaced_also_in_place(in_path):
    write(in_path, Fake())
    out_path = in_path.with_name("out.parquet")
    asyncio.run(write_offline_hints(out_path, out_path, Fake(), max_level=2, per_prompt=2))
    assert {name for name in pq.read_table(out_path).column_names if name.startswith("hint")} == {
        "hint_level_1",
        "hint_level_2",
    }


def test_a_failure_of_the_endpoint_leaves_no_file(in_path):
    failed = Fake({("p2", 0): "generation_failed", ("p0", 0): "missing_solution"})
    message = (
        r"in\.parquet: 1 of 3 sets of hints are missing \(1 timeout\), so no file is written; "
        r"the first: timeout: p2\. What is in the cache is kept: the same command continues from "
        r"here"
    )
    with pytest.raises(DataError, match=message):
        write(in_path, failed)
    assert not in_path.with_name("out.parquet").exists()


def test_hints_that_hold_the_answer_are_counted_and_kept(in_path):
    async def equal(problem, candidates):
        return [candidate == problem.answer for candidate in candidates]

    report, rows = write(in_path, Fake({("p1", 0): "parse_failed"}), equal=equal)
    assert (report.num_hints, report.num_leaking) == (6, 6)
    assert rows[0]["hint_level_1"].endswith("42")
    assert report.summary().endswith("6 of 6 hints hold the final answer")


# -- the command ----------------------------------------------------------------------------------


@contextmanager
def served(script=None):
    """The server in a thread with a loop of its own; the command has one too."""
    server, ready, stop = ChatServer(script), threading.Event(), asyncio.Event()

    async def serve():
        async with server.running():
            server.loop = asyncio.get_running_loop()
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        server.loop.call_soon_threadsafe(stop.set)
        thread.join(10)


def command(in_path, server, *more):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    out_path = in_path.with_name("out.parquet")
    given = [
        str(in_path),
        str(out_path),
        "--model",
        "m",
        "--url",
        server.url,
        "--backoff-s",
        "0.001",
    ]
    return run(parser.parse_args([*given, *more])), pq.read_table(out_path).to_pylist()


def test_the_command_asks_an_endpoint_and_goes_on_where_it_stopped(in_path):
    def lost(body, number):
        is_second = "way 1" in body["messages"][1]["content"]
        return "500" if is_second else completion()

    with served(lost) as server:
        with pytest.raises(DataError, match=r"1 of 3 sets of hints are missing \(1 server_error\)"):
            command(in_path, server, "--num-retries", "1")
        assert len(server.requests) == 4  # p0, p1 twice, p2
    with served() as server:
        report, rows = command(in_path, server)
        assert len(server.requests) == 1
    assert [row["hint_level_1"] for row in rows] == ["think"] * 3
    assert (report.num_leaking, report.num_hints, report.calls) == (0, 9, 1)


def test_the_command_asks_for_every_ladder_with_a_seed_of_its_own(in_path):
    def numbered(body, number):
        seed = body["seed"]
        return completion(json.dumps({f"level_{n}": f"{n} of {seed}" for n in (1, 2, 3)}))

    with served(numbered) as server:
        _, rows = command(in_path, server, "--per-prompt", "4", "--temperature", "0.7")
        assert len(server.requests) == 12
        assert {body["temperature"] for body in server.requests} == {0.7}
    assert [len(set(row["hint_level_1"])) for row in rows] == [4, 4, 4]


def test_the_budget_stops_the_command_with_its_message(in_path):
    with served() as server, pytest.raises(DataError, match=r"budget: 0 tokens are paid and"):
        command(in_path, server, "--budget-tokens", "0")
    assert server.requests == []


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        (("--per-prompt", "0"), DataError, r"--per-prompt must be at least 1, got 0"),
        (("--body", "[1]"), DataError, r"--body must be a JSON object such as .*, got '\[1\]'"),
        (("--attempts", "0"), ConfigError, "--attempts 0 must be at least 1"),
        (("--api-key-env", "NOT_SET_HERE"), ConfigError, r"NOT_SET_HERE, but this environment"),
        (("--url", "nowhere"), ConfigError, "--url 'nowhere' must be like"),
        (
            ("--max-level", "5"),
            ConfigError,
            r"--max-level 5, but the built-in prompt asks for 3",
        ),
    ],
)
def test_a_wrong_argument_is_told(in_path, more, error, message):
    with pytest.raises(error, match=message):
        command(in_path, ChatServer(), *more)


def test_more_levels_are_written_where_the_given_prompt_asks_for_them(in_path):
    prompts = in_path.with_name("five.yaml")
    prompts.write_text("hint_user: 'Write level_1 to level_5. {problem} {solution}'\n")
    five = json.dumps({f"level_{n}": f"hint {n}" for n in range(1, 6)})
    with served(lambda body, number: completion(five)) as server:
        _, rows = command(in_path, server, "--max-level", "5", "--prompts", str(prompts))
    assert [row["hint_level_5"] for row in rows] == ["hint 5"] * 3

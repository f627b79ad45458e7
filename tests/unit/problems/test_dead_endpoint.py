"""An endpoint that is not there, or goes away: the command and the preflight say so at once."""

import asyncio
import socket
import sqlite3
import sys

import pyarrow.parquet as pq
import pytest
from chat_server import completion
from test_offline_hints import command, served

from recipe.hint import main_prepare
from recipe.hint.hints import teacher_reach
from recipe.hint.hints.base import HintResult
from recipe.hint.hints.teacher import Client, Fault
from recipe.hint.hints.teacher_cache import CachedResponse, ResponseCache
from recipe.hint.hints.teacher_reach import check_reached
from recipe.hint.hints.teacher_settings import TeacherSettings
from recipe.hint.schema import HintLevels
from recipe.problems.columns import make_row, write_rows
from recipe.run.errors import ConfigError, DataError
from recipe.study.offline_hints import GIVE_UP, write_offline_hints

NUM_PROBLEMS = 1000


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(teacher_reach, "_PAUSE_S", 0.0)


@pytest.fixture
def in_path(tmp_path):
    rows = [
        make_row(f"Question {i}?", "42", solution=f"way {i}", row_id=f"p{i}")
        for i in range(NUM_PROBLEMS)
    ]
    write_rows(rows, tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


@pytest.fixture
def closed_url():
    """An address that nobody listens on while the test has it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


def settings(url, folder, **changes):
    return TeacherSettings(base_url=url, model="m", cache_dir=str(folder), **changes)


def test_an_endpoint_that_is_not_there_is_one_line_before_anything_is_asked(
    in_path, closed_url, capsys
):
    out = in_path.with_name("out.parquet")
    with pytest.raises(SystemExit, match="2"):
        main_prepare.main(["hints", str(in_path), str(out), "--model=m", f"--url={closed_url}"])
    err = capsys.readouterr().err
    assert f"--url {closed_url} cannot be asked: connection: " in err
    assert "start the endpoint, or correct the address or the key" in err
    assert err.count("\n") == 1
    assert not out.exists()


def test_the_preflight_refuses_it_and_a_cache_with_answers_needs_nobody(tmp_path, closed_url):
    given = settings(closed_url, tmp_path)
    with pytest.raises(ConfigError, match="cannot be asked: connection: "):
        check_reached(given, {})
    assert not list(tmp_path.iterdir())  # looking writes nothing
    ResponseCache(tmp_path)
    with pytest.raises(ConfigError, match="cannot be asked: connection: "):
        check_reached(given, {})
    ResponseCache(tmp_path).add("key", CachedResponse("text", 1, 1))
    check_reached(given, {})


@pytest.fixture
def silent_url():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"http://127.0.0.1:{silent.getsockname()[1]}/v1"


def test_a_silent_endpoint_is_a_warning_within_its_own_limit(tmp_path, silent_url):
    told = check_reached(settings(silent_url, tmp_path, timeout_s=0.5), {})
    assert "cannot be asked: timeout: no whole answer within 0.5 s; it is asked again" in told


def test_the_command_asks_a_silent_endpoint_all_the_same(in_path, silent_url, caplog, capsys):
    out, patience = in_path.with_name("out.parquet"), ["--timeout-s=0.5", "--num-retries=0"]
    with pytest.raises(SystemExit, match="2"):
        main_prepare.main(
            ["hints", str(in_path), str(out), "--model=m", f"--url={silent_url}", *patience]
        )
    assert f"--url {silent_url} cannot be asked: timeout: " in caplog.text
    assert "timeout" in capsys.readouterr().err  # of the hints themselves


@pytest.mark.parametrize(
    ("faults", "is_elsewhere", "told"),
    [
        (["connection", None], False, "nothing"),  # it was just starting
        (["connection", "connection"], False, "error"),
        (["connection", "connection"], True, "warning"),  # a login node
        (["connection", "timeout"], False, "warning"),
        (["refused"], True, "error"),
    ],
)
def test_a_connection_that_fails_is_tried_twice(tmp_path, monkeypatch, faults, is_elsewhere, told):
    left = iter(faults)

    async def reach(client):
        kind = next(left)
        return kind and Fault(kind, "why")

    monkeypatch.setattr(Client, "reach", reach)
    given = settings("http://host/v1", tmp_path)
    if told == "error":
        with pytest.raises(ConfigError, match=f"cannot be asked: {faults[-1]}: why; start the"):
            check_reached(given, {}, is_elsewhere=is_elsewhere)
    else:
        found = check_reached(given, {}, is_elsewhere=is_elsewhere)
        assert (found is not None) == (told == "warning")
    assert list(left) == []


@pytest.mark.parametrize("status", [200, 404, 429, 500, 503])
def test_any_other_answer_is_somebody(tmp_path, status):
    with served() as server:
        server.models_status = status
        check_reached(settings(server.url, tmp_path), {})
        assert server.requests == []  # nothing that is paid


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_told(tmp_path, status):
    with served() as server, pytest.raises(ConfigError, match=f"refused: HTTP {status}: .*the key"):
        server.models_status = status
        check_reached(settings(server.url, tmp_path), {})


def test_an_endpoint_that_goes_away_ends_the_command_after_a_few_ladders(in_path):
    def first_ten(body, number):
        alive = len(server.requests) <= 10
        return completion() if alive else "500"

    with served(first_ten) as server:
        counts = r"\(so far \d+ server_error\)"
        message = rf"{GIVE_UP} sets of hints in a row failed and the rest .* {counts}, so"
        with pytest.raises(DataError, match=message):
            command(in_path, server, "--num-retries", "1", "--num-parallel", "4")
        # Ten answers, two requests for each that failed, those under way: not a thousand.
        assert len(server.requests) < 100


class Failing:
    """Each n-th hint levels is written, the others are not; ``num_asked`` counts both."""

    def __init__(self, every, calls=1):
        self.every = every
        self.calls = calls
        self.num_asked = 0

    async def write(self, problem, generate, *, num_before=0):
        self.num_asked += 1
        number = self.num_asked
        await asyncio.sleep(0)
        if number % self.every == 0:
            return HintResult("ok", HintLevels(("a", "b", "c")), calls=self.calls)
        return HintResult("generation_failed", calls=1, detail="rate_limited: HTTP 429")


def failure_of(source, in_path):
    with pytest.raises(DataError) as caught:
        asyncio.run(write_offline_hints(in_path, in_path.with_name("out.parquet"), source))
    return str(caught.value)


def test_an_endpoint_that_fails_now_and_then_is_asked_for_everything(in_path):
    source = Failing(every=GIVE_UP)  # one answer after each 19 failures
    assert "950 of 1000 sets of hints are missing (950 rate_limited)" in failure_of(source, in_path)
    assert source.num_asked == NUM_PROBLEMS


def test_answers_of_the_cache_say_nothing_about_the_endpoint(in_path):
    assert "20 sets of hints in a row failed" in failure_of(Failing(every=2, calls=0), in_path)


def test_a_long_run_shows_how_far_it_is(in_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("recipe.problems.progress.SHOWN_AFTER_S", 0.0)
    asyncio.run(write_offline_hints(in_path, in_path.with_name("out.parquet"), Failing(every=1)))
    err = capsys.readouterr().err
    assert "hints: 100%" in err and "1000/1000" in err
    assert pq.read_metadata(in_path.with_name("out.parquet")).num_rows == NUM_PROBLEMS


def test_a_file_of_any_length_has_few_questions_under_way(in_path):
    counts = []

    class Counting(Failing):
        async def write(self, problem, generate, *, num_before=0):
            counts.append(len(asyncio.all_tasks()))
            return await super().write(problem, generate, num_before=num_before)

    out = in_path.with_name("out.parquet")
    asyncio.run(write_offline_hints(in_path, out, Counting(every=1), per_prompt=4))
    assert len(counts) == 4 * NUM_PROBLEMS
    assert max(counts) <= 257  # 256 that ask, and the one that waits for them


def test_a_cache_that_takes_nothing_ends_the_command_with_what_to_do(in_path, monkeypatch):
    def refuse(cache, *_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(ResponseCache, "add", refuse)
    told = (
        rf"{GIVE_UP} sets of hints in a row failed .* \d+ cache\), .*: "
        r"cache: .*out\.answers/answers\.sqlite cannot be written: database or disk is full; "
        r"\d paid responses"
    )
    with served() as server:
        with pytest.raises(DataError, match=told):
            command(in_path, server, "--num-parallel", "4")
        assert len(server.requests) <= 4  # those under way when the first could not be kept

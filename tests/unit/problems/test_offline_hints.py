"""Offline hints: columns, resuming, and the command against a real HTTP server."""

import asyncio

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chat_server import completion, served

from recipe.hint import main_prepare
from recipe.hint.hints.base import HintResult
from recipe.problems.columns import make_row, read_problems, write_rows
from recipe.run.errors import DataError
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
        return HintResult("ok", hints, calls=1, tokens=5)


@pytest.fixture
def in_path(tmp_path):
    rows = [
        make_row(f"Question {i}?", "42", solution=f"way {i}", row_id=f"p{i}") | {"note": i}
        for i in range(3)
    ]
    write_rows(rows, tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def write(in_path, source, *, max_level=3, per_prompt=1):
    out_path = in_path.with_name("out.parquet")
    writing = write_offline_hints(in_path, out_path, source, max_level, per_prompt)
    return asyncio.run(writing), pq.read_table(out_path).to_pylist()


def test_one_set_per_problem_is_three_columns_of_texts(in_path):
    summary, rows = write(in_path, Fake({("p1", 0): "parse_failed"}))
    assert [row["hint_level_2"] for row in rows] == ["p0 0 level 2, 42", None, "p2 0 level 2, 42"]
    assert [row["note"] for row in rows] == [0, 1, 2]
    assert len(read_problems(in_path.with_name("out.parquet"))) == 3
    assert summary.splitlines()[1:] == [
        "sets of hints: 2 ok, 1 parse_failed; 3 requests, 12 tokens of responses",
    ]
    assert "3 problems, 1 without a hint" in summary


def test_several_sets_are_lists_in_which_a_place_is_one_set(in_path):
    lost = {("p1", 3): "parse_failed", **{("p2", number): "parse_failed" for number in range(10)}}
    _, rows = write(in_path, Fake(lost), per_prompt=10)
    assert [len(row["hint_level_1"]) for row in rows] == [10, 9, 0]
    for row in rows:
        weak, strong = row["hint_level_1"], row["hint_level_3"]
        assert [text.replace("level 1", "level 3") for text in weak] == strong
    assert rows[1]["hint_level_1"][3] == "p1 4 level 1, 42"


def test_a_failure_of_the_endpoint_leaves_no_file(in_path):
    failed = Fake({("p2", 0): "generation_failed", ("p0", 0): "missing_solution"})
    told = "1 of 3 sets of hints are missing, so no file is written; the first: timeout: p2"
    with pytest.raises(DataError, match=told):
        write(in_path, failed)
    assert not in_path.with_name("out.parquet").exists()


def test_old_hints_are_replaced_and_every_other_column_stays_as_it_is(in_path):
    rows = pq.read_table(in_path).to_pylist()
    before = pa.Table.from_pylist(
        [row | {"hint_level_1": "old", "hint_level_9": "x"} for row in rows]
    )
    before = before.append_column("image", pa.array([b"\xff", None, b""]))
    pq.write_table(before, in_path)
    lost = {(f"p{n}", 0): "parse_failed" for n in range(3)}
    for source in (Fake(), Fake(lost)):
        write(in_path, source, max_level=2)
        after = pq.read_table(in_path.with_name("out.parquet"))
        others = [name for name in before.column_names if not name.startswith("hint_level")]
        assert after.column_names == [*others, "hint_level_1", "hint_level_2"]
        assert after.select(others).equals(before.select(others))
        # Columns without a hint are of texts, so that files can be joined.
        assert after.schema.field("hint_level_1").type == pa.string()


# -- the command


def command(in_path, url, *more):
    out_path = in_path.with_name("out.parquet")
    main_prepare.main(["hints", str(in_path), str(out_path), "--model=m", f"--url={url}", *more])
    return pq.read_table(out_path).to_pylist()


def test_the_command_asks_an_endpoint_and_goes_on_where_it_stopped(in_path, capsys):
    def lost(body, number):
        is_second = "way 1" in body["messages"][1]["content"]
        return "500" if is_second else completion()

    with served(lost) as server, pytest.raises(SystemExit, match="2"):
        command(in_path, server.url, "--num-retries=0")
    assert len(server.requests) == 3
    err = capsys.readouterr().err
    assert (
        "1 of 3 sets of hints are missing" in err and not in_path.with_name("out.parquet").exists()
    )
    with served() as server:
        rows = command(in_path, server.url)
    assert len(server.requests) == 1
    assert [row["hint_level_1"] for row in rows] == ["think"] * 3
    assert "3 ok; 1 requests" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--per-prompt=0"], "hint.teacher.num_ladders=0"),
        (["--top-p=1.5"], "hint.top_p=1.5"),
        (["--api-key-env=NOT_SET_HERE"], "NOT_SET_HERE"),
        (["--max-level=5"], "built-in prompt asks for 3"),
        ([], "cannot be asked: connection: "),
    ],
)
def test_a_wrong_argument_and_a_dead_endpoint_are_one_line_before_anything_is_asked(
    in_path, more, message, capsys
):
    with pytest.raises(SystemExit, match="2"):
        command(in_path, "http://127.0.0.1:9/v1", *more)
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert not in_path.with_name("out.parquet").exists()

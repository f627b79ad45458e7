"""A prepared file that is prepared again stays as it is, but for what the command says."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_files import lay_out, prepare, write
from hypothesis import given
from hypothesis import strategies as st

from recipe.problems.columns import SCHEMA, Labels, make_row, write_rows
from recipe.problems.prepare import Keys, Origin, read_local
from recipe.run.errors import DataError

CHOICE = {"id": "c", "problem": "Even?\n(A) 1\n(B) 2", "answer": "B", "note": "n"}
PROGRAM = {"id": "p", "problem": "f", "answer": "assert f() == 1", "entry_point": "f"}
CHECKED = {"problem": "g", "answer": "def check(c):\n    assert c() == 1", "entry_point": "g"}
ONCE = {
    "maths": ([{"problem": "1+1?", "answer": "2", "id": 7}], []),
    "own labels": ([{"problem": "1+1?", "answer": "2"}], ["--source=s", "--split=test"]),
    "own system turn": ([{"problem": "1+1?", "answer": "2"}], ["--system-prompt=Think."]),
    "no system turn": ([{"problem": "1+1?", "answer": "2"}], ["--system-prompt="]),
    "choice": ([CHOICE], ["--kind=choice"]),
    "program": ([PROGRAM, CHECKED], ["--kind=program"]),
    "a column without a name": ([{"problem": "1+1?", "answer": "2", "": 5}], []),
    "another column named id": (
        [{"problem": "1+1?", "answer": "2", "id": "old", "key": "new"}],
        ["--id-key=key"],
    ),
    "others named as what is read": (
        [{"q": "1+1?", "a": "2", "w": "Count.", "n": "new", "id": "old", "problem": "p"}],
        ["--problem-key=q", "--answer-key=a", "--solution-key=w", "--id-key=n"],
    ),
}


def as_json(path, target):
    rows = pq.read_table(path).to_pylist()
    target.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return target


@pytest.mark.parametrize("name", ONCE)
def test_a_second_preparation_changes_no_byte_and_tells_no_change(tmp_path, capsys, name):
    rows, options = ONCE[name]
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    prepare(write(tmp_path / "in.jsonl", rows), first, *options)
    for again in (first, as_json(first, tmp_path / "first.jsonl")):
        capsys.readouterr()
        prepare(again, second)
        assert second.read_bytes() == first.read_bytes()
        assert "are rewritten" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["mbpp", "gpqa_diamond", "mmlu_pro", "math500"])
def test_a_public_set_keeps_its_ids_and_kinds_in_a_second_preparation(tmp_path, name):
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    prepare(name, first, "--from", lay_out(name, tmp_path / "hub"))
    prepare(first, second)
    assert second.read_bytes() == first.read_bytes()


texts = st.text("ab \u00e4.", min_size=1, max_size=5).map(lambda each: f"x{each}")


@given(
    rows=st.lists(
        st.tuples(texts, st.sampled_from([("maths", "2"), ("choice", "B")]), texts, texts),
        min_size=1,
        max_size=3,
        unique_by=lambda row: row[0].strip(),
    ),
    system=st.none() | st.just("") | texts,
)
def test_any_rows_of_the_contract_come_back_equal(tmp_path_factory, rows, system):
    path = tmp_path_factory.mktemp("again") / "a.parquet"
    made = [
        make_row(
            f"Problem {row_id}",
            truth,
            row_id=row_id.strip(),
            labels=Labels(source, split, kind),
            system_prompt=system,
        )
        for row_id, (kind, truth), source, split in rows
    ]
    write_rows(made, path)
    prepared = read_local(path)
    assert list(prepared.rows) == made
    assert prepared.replaced == ()


def test_what_the_command_says_stands_above_what_the_file_says(tmp_path):
    path = tmp_path / "a.parquet"
    labels = Labels("s", "test", "choice")
    write_rows([make_row("A or B", "B", row_id="1", labels=labels) | {"name": "n"}], path)
    keys, origin = Keys(id="name", kind="maths"), Origin("t", "train")
    (row,) = read_local(path, keys=keys, origin=origin).rows
    assert row == make_row("A or B", "B", row_id="n", labels=Labels("t", "train", "maths"))


def test_a_text_that_was_corrected_in_a_prepared_file_reaches_its_prompt_and_truth(tmp_path):
    row = make_row("1+1?", "3", row_id="1")
    pq.write_table(
        pa.Table.from_pylist([row | {"problem": "1+2?", "answer": "4"}], SCHEMA),
        tmp_path / "a.parquet",
    )
    prepared = read_local(tmp_path / "a.parquet")
    labels = Labels("local", "train", "maths")
    assert prepared.rows == (make_row("1+2?", "4", row_id="1", labels=labels),)
    assert prepared.replaced == ("prompt", "reward_model", "reward_model.ground_truth")


def test_a_file_that_is_read_is_never_written_over(tmp_path, capsys):
    source = write(tmp_path / "in.jsonl", [{"problem": "1+1?", "answer": "2"}])
    once, bench = tmp_path / "once.parquet", tmp_path / "bench.parquet"
    prepare(source, once)
    shutil.copy(once, bench)
    (tmp_path / "link.parquet").symlink_to(once)
    before = once.read_bytes()
    for arguments, name in (
        ([once, once], "IN"),
        ([once, tmp_path / "link.parquet"], "IN"),
        (["gsm8k", once, "--from", once], "--from"),
        ([source, bench, "--check-overlap", once, bench], "--check-overlap"),
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit, match="2"):
            prepare(*arguments)
        told = capsys.readouterr().err
        assert f"the same file as {name}; name another OUT" in told and told.count("\n") == 1
        assert once.read_bytes() == bench.read_bytes() == before


@pytest.mark.parametrize("kind", ["chess", {"a": 1}, ["maths"], 3])
def test_a_prepared_row_of_no_known_kind_is_told(tmp_path, kind):
    row = {"problem": "1+1?", "answer": "2", "reward_model": {"kind": kind}}
    row["prompt"] = [{"role": "user", "content": "1+1?"}]
    with pytest.raises(DataError, match="line 1, column `reward_model.kind`: expected one of"):
        read_local(write(tmp_path / "in.jsonl", [row]))

"""What a file of problems may be instead, told in one line with what to do."""

import datetime
import gzip
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recipe.hint import main_prepare
from recipe.problems.columns import read_problems
from recipe.problems.prepare import read_local
from recipe.run.errors import DataError

LINE = json.dumps({"problem": "1+1?", "answer": "2"}) + "\n"
NOT_UTF8 = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
TOO_LATE = pa.array([2**62], pa.timestamp("us"))  # microseconds: the year 148109
PAIRS = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (LINE.encode("utf-16-le").join([b"\xff\xfe", b""]), "is UTF-16 text; .* iconv -f utf-16"),
        (LINE.encode("utf-16-be").join([b"\xfe\xff", b""]), "is UTF-16 text; .* iconv -f utf-16"),
        (gzip.compress(LINE.encode(), mtime=0), r"is gzipped; name it a\.jsonl\.gz"),
        (LINE.encode() + b'{"problem": "\xe9"}', "line 2 is not UTF-8 .* iconv -f latin1"),
        (b'{"problem": "a", "problem": "b", "answer": "1"}', "line 1 .*'problem' twice"),
        (b'{"problem": "a", "answer": "1", "x": {"y": 1, "y": 1}}', "line 1 .*'y' twice"),
        (b'{"problem": "a\\u0000b", "answer": "1"}', "line 1, column `problem`: .*control char"),
    ],
)
def test_a_file_of_lines_that_cannot_be_used_is_told_by_what_it_is(tmp_path, data, told):
    (tmp_path / "a.jsonl").write_bytes(data)
    with pytest.raises(DataError, match=rf"a\.jsonl: {told}"):
        read_local(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("name", "column", "told"),
    [
        ("x", TOO_LATE, "column `x` holds a value that cannot be read: .* take the column out"),
        ("x", NOT_UTF8, "column `x` holds a value that cannot be read: 'utf-8' .*0xff"),
        ("x", PAIRS, "column `x` has a map type, which is not kept; write it as named fields"),
        ("problem", pa.array(["b"]), "has 2 columns `problem`; give each a name of its own"),
    ],
)
def test_a_column_that_cannot_be_read_is_named(tmp_path, name, column, told):
    columns = [pa.array(["1+1?"]), pa.array(["2"]), column]
    pq.write_table(pa.table(columns, names=["problem", "answer", name]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=rf"a\.parquet: {told}"):
        read_local(tmp_path / "a.parquet")


def test_a_date_that_python_has_is_kept(tmp_path):
    when = datetime.datetime(2020, 1, 1)
    table = pa.table({"problem": ["1+1?"], "answer": ["2"], "x": [when]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert read_local(tmp_path / "a.parquet").rows[0]["x"] == when


def test_a_run_refuses_two_columns_of_one_name(tmp_path):
    turns = pa.array([[{"role": "user", "content": "q"}]])
    columns = [turns, pa.array(["q"]), pa.array(["1"]), pa.array(["z"])]
    table = pa.table(columns, names=["prompt", "problem", "answer", "problem"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="has 2 columns `problem`"):
        read_problems(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["pipe.jsonl"], "pipe.jsonl: is not a file but a folder, a pipe or a device"),
        (["zero.jsonl"], "zero.jsonl: is not a file but a folder, a pipe or a device"),
        (["gsm8k", "--from", "none"], "none: no such file"),
        (["gsm9k"], "did you mean gsm8k?"),
        (["in.jsonl", "--check-overlap", "."], ".: is not a file but a folder or a pipe"),
        (["in.jsonl", "--split", "a\udcff"], "argument --split: 'a\\udcff' is not UTF-8"),
        (["in.jsonl", "--problem-key", "answer"], "--problem-key and --answer-key are both"),
        (["in.jsonl", "--id-key", "q", "--problem-key", "q"], "--problem-key and --id-key are bo"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_refused(
    tmp_path, monkeypatch, capsys, arguments, told
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text(LINE)
    os.mkfifo("pipe.jsonl")
    os.symlink("/dev/zero", "zero.jsonl")
    with pytest.raises(SystemExit, match="2"):
        main_prepare.main([arguments[0], "out.parquet", *arguments[1:]])
    out, err = capsys.readouterr()
    assert told in err and (out, err.count("\n")) == ("", 1)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--url", "ftp:x", "--url 'ftp:x' must be like https://host/v1"),
        ("--num-parallel", "0", "--num-parallel 0 must be at least 1"),
    ],
)
def test_hints_are_refused_in_the_words_of_the_command(tmp_path, capsys, option, value, told):
    files = [str(tmp_path / "in.parquet"), str(tmp_path / "out.parquet")]
    with pytest.raises(SystemExit, match="2"):
        main_prepare.main(["hints", *files, "--model=m", f"{option}={value}"])
    assert told in capsys.readouterr().err

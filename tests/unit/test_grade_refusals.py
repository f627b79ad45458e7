"""What the grader refuses before it grades, with one line and nothing written."""

import json
import os
import subprocess
import sys

import pytest

from recipe.hint import main_grade

ROW = json.dumps({"id": "m", "kind": "maths", "answer": "4", "response": r"\boxed{4}"})


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["in.jsonl", "--workers", "1025"], "--workers 1025: it must be above 0 and at most 1024"),
        (["in.jsonl", "--timeout-s", "1e6"], "--timeout-s 1e+06: it must be above 0 and at most"),
        (
            ["rows.parquet"],
            "rows.parquet: rows are JSON lines here; name a file .jsonl as IN.jsonl",
        ),
        (["pipe.jsonl"], "pipe.jsonl: is a folder, a pipe or a device; give a file of rows"),
        (["zero.jsonl"], "zero.jsonl: is a folder, a pipe or a device; give a file of rows"),
        (["packed.jsonl"], "packed.jsonl: no line is a JSON object; line 1 is not JSON"),
        (["lists.jsonl"], "lists.jsonl: no line is a JSON object; line 1: expected a JSON object"),
    ],
)
def test_what_cannot_be_graded_at_all_ends_with_one_line(
    tmp_path, monkeypatch, capsys, arguments, told
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text(ROW)
    (tmp_path / "packed.jsonl").write_bytes(b"PAR1\x00\xff\n\x15\xff\n")
    (tmp_path / "lists.jsonl").write_text("[1]\n[2]\n")
    os.mkfifo("pipe.jsonl")
    os.symlink("/dev/zero", "zero.jsonl")
    there = sorted(os.listdir())
    with pytest.raises(SystemExit, match="2"):
        main_grade.main([arguments[0], "out.jsonl", *arguments[1:]])
    err = capsys.readouterr().err
    assert told in err and err.count("\n") == 1
    assert sorted(os.listdir()) == there


def test_rows_are_not_written_as_json_lines_to_a_file_of_another_form(tmp_path, capsys):
    (tmp_path / "in.jsonl").write_text(ROW)
    with pytest.raises(SystemExit, match="2"):
        main_grade.main([str(tmp_path / "in.jsonl"), str(tmp_path / "out.parquet")])
    assert "JSON lines here; name a file .jsonl as OUT.jsonl" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_row_that_names_a_field_twice_is_bad_and_the_others_are_graded(tmp_path):
    (tmp_path / "in.jsonl").write_text(ROW + "\n" + ROW[:-1] + ', "answer": "5"}\n')
    with pytest.raises(SystemExit, match="1"):
        main_grade.main([str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")])
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["reason"] for row in rows] == ["correct", "error"]
    assert "line 2 is not JSON: it names 'answer' twice" in rows[1]["message"]


def test_the_pipe_of_a_shell_is_read(tmp_path):
    (tmp_path / "in.jsonl").write_text(ROW + "\n")
    line = f"{sys.executable} {main_grade.__file__} <(cat in.jsonl) out.jsonl --workers 1"
    end = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, check=False)
    assert (end.returncode, end.stderr) == (0, b"")

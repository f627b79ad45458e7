"""Rows in, the same rows with verdicts out; a bad row is a reason, not a crash."""

import gzip
import json
import subprocess
import sys

import pytest

from recipe.study import grade as program
from recipe.study.grade_rows import read_row

MATHS = {"id": "m", "kind": "maths", "answer": "4", "response": r"\boxed{4}"}
CHOICE = {"id": "c", "kind": "choice", "answer": "B", "response": r"\boxed{(a)}"}
PROGRAM = {
    "id": "p",
    "kind": "program",
    "test_imports": ["import math"],
    "tests": ["assert math.isclose(f(1), 2)", "assert f(2) == 4"],
    "response": "```python\ndef f(x):\n    return 2 * x\n```",
}


@pytest.fixture
def grade(tmp_path, capsys):
    """Runs the program on lines; gives exit code, output rows and console text."""

    def run(lines, *options, output="out.jsonl"):
        source, target = tmp_path / "in.jsonl", tmp_path / output
        texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        source.write_bytes(b"\n".join(texts))
        with pytest.raises(SystemExit) as ended:
            program.main([str(source), str(target), "--workers", "1", *options])
        rows = target.read_text().splitlines() if target.exists() else []
        assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []
        return ended.value.code, [json.loads(row) for row in rows], capsys.readouterr()

    return run


@pytest.mark.slow
def test_rows_of_all_kinds_keep_their_order_and_their_fields(grade):
    unnamed = {name: value for name, value in MATHS.items() if name != "kind"}
    lines = [PROGRAM, {**unnamed, "note": [1, None]}, CHOICE, {**MATHS, "response": "none"}]
    endless = {**PROGRAM, "response": "```python\nwhile True: pass\n```"}
    code, rows, console = grade([*lines, endless, b"  "], "--timeout-s", "1.5")
    assert code == 1  # a program without end is undecided, not wrong
    assert [(row["id"], row["score"], row["reason"]) for row in rows] == [
        ("p", 1.0, "correct"),
        ("m", 1.0, "correct"),
        ("c", 0.0, "wrong"),
        ("m", 0.0, "no_answer"),
        ("p", 0.0, "timeout"),
    ]
    added = {"score": 1.0, "reason": "correct", "extracted": "4", "basis": "text", "ignored": ""}
    assert rows[1] == {**lines[1], **added}
    assert console.out.splitlines() == [
        "choice: 1 rows, 1 graded, correct 0.0% of those graded (wrong 1)",
        "maths: 2 rows, 2 graded, correct 50.0% of those graded (correct 1, no_answer 1)",
        "program: 2 rows, 1 graded, correct 100.0% of those graded (correct 1, timeout 1)",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "line 3 is not JSON"),
        (b"\xff\xfe\xff", "line 3 is not JSON"),
        (b"[1]", "line 3: expected a JSON object, got list"),
        ({**MATHS, "kind": "poem"}, "kind='poem' is not a kind; choose one of maths, choice"),
        ({**MATHS, "response": 4}, "response=4 must be a text"),
        ({"response": ""}, "answer=None must be a text or a number"),
        ({**MATHS, "answer": " "}, "answer is empty; give the gold answer"),
        ({**CHOICE, "answer": "AB"}, "answer='AB' must be one letter, for kind=choice"),
        ({**MATHS, "is_truncated": 1}, "is_truncated=1 must be true or false"),
        ({**MATHS, "tests": ["assert True"]}, "kind=maths has tests; give answer, or kind="),
        ({**PROGRAM, "tests": 4}, "tests=4 must be a text or a list of texts"),
    ],
)
def test_what_no_verifier_can_use_is_told(line, message):
    row = read_row(line if isinstance(line, bytes) else json.dumps(line).encode(), 3)
    assert row.item is None and message in row.message


def test_a_bad_row_has_a_reason_and_the_others_their_verdicts_in_order(grade):
    lines = [{**MATHS, "id": n, "answer": str(n % 2 * 4)} for n in range(2200)]
    code, rows, console = grade([*lines, b"{", CHOICE])
    assert code == 1
    assert [row["id"] for row in rows[:2200]] == list(range(2200))
    assert sum(row["score"] for row in rows) == 1100.0
    assert [row["reason"] for row in rows[2200:]] == ["error", "wrong"]
    assert "is not JSON" in rows[2200]["message"]
    assert "bad rows: 1 rows, 0 graded, correct none graded (error 1)" in console.out


def test_an_empty_file_gives_no_rows_and_one_without_an_object_is_refused(grade):
    code, rows, console = grade([])
    assert (code, rows, console.out) == (0, [], "no rows\n")
    code, rows, console = grade([b"PAR1\x00\xff", b"\x15\xff"], output="new.jsonl")
    assert (code, rows) == (2, []) and "no line is a JSON object; line 1" in console.err


def test_an_answer_that_is_a_number_is_graded(grade):
    row = b'{"response": "\\\\boxed{1.5}", "answer": 1.50}'
    assert [row["reason"] for row in grade([row])[1]] == ["correct"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.jsonl", "out.jsonl"], "No such file or directory"),
        (["in.jsonl", "no/out.jsonl"], "No such file or directory"),
        (["in.jsonl", "in.jsonl"], "the same file as IN.jsonl; name another OUT.jsonl"),
        (["in.jsonl", "out.jsonl", "--workers", "0"], "--workers must be above 0"),
        (["in.jsonl", "out.jsonl", "--isolation", "some"], "choose one of full, partial, none"),
        (["damaged.jsonl.gz", "out.jsonl"], "not a whole gzip file: "),
    ],
)
def test_unusable_files_and_options_end_with_one_line_and_no_output(
    tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text(json.dumps(MATHS))
    (tmp_path / "damaged.jsonl.gz").write_bytes(gzip.compress(json.dumps(MATHS).encode())[:-5])
    with pytest.raises(SystemExit) as ended:
        program.main(arguments)
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out.jsonl").exists()
    assert (tmp_path / "in.jsonl").read_text() == json.dumps(MATHS)


def test_files_are_packed_where_their_names_say_so_and_a_pipe_is_read(tmp_path):
    text = (json.dumps(MATHS) + "\n") * 3
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    main = f"{sys.executable} -c 'from recipe.study.grade import main; main()'"
    line = f"{main} in.jsonl.gz out.jsonl.gz && {main} <(zcat in.jsonl.gz) out.jsonl"
    end = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, check=False)
    assert (end.returncode, end.stderr) == (0, b"")
    packed = gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes())
    assert packed == (tmp_path / "out.jsonl").read_bytes() and packed.count(b"\n") == 3

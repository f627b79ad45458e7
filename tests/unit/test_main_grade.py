"""Rows in, the same rows with verdicts out; a bad row is a reason, not a crash."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest

from recipe.hint import main_grade

pytestmark = pytest.mark.slow

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

    def run(lines, *options):
        source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        texts = [line if isinstance(line, (str, bytes)) else json.dumps(line) for line in lines]
        source.write_bytes(
            b"\n".join(text if isinstance(text, bytes) else text.encode() for text in texts)
        )
        with pytest.raises(SystemExit) as ended:
            main_grade.main([str(source), str(output), "--workers", "1", *options])
        rows = output.read_text().splitlines() if output.exists() else []
        assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []
        return ended.value.code, [json.loads(row) for row in rows], capsys.readouterr()

    return run


def test_a_row_without_a_kind_is_of_mathematics(grade):
    without = {name: value for name, value in MATHS.items() if name != "kind"}
    code, rows, _ = grade([without])
    assert (code, rows[0]["reason"]) == (0, "correct")


def test_rows_of_all_kinds_keep_their_order_and_their_fields(grade):
    lines = [PROGRAM, {**MATHS, "note": [1, None]}, CHOICE, {**MATHS, "response": "none"}]
    code, rows, console = grade(lines)
    assert code == 0
    assert [(row["id"], row["score"], row["reason"]) for row in rows] == [
        ("p", 1.0, "correct"),
        ("m", 1.0, "correct"),
        ("c", 0.0, "wrong"),
        ("m", 0.0, "no_answer"),
    ]
    assert rows[0]["tests"] == PROGRAM["tests"]
    added = {"score": 1.0, "reason": "correct", "extracted": "4", "basis": "text", "ignored": ""}
    assert rows[1] == {**lines[1], **added}
    assert rows[2]["extracted"] == "A"
    assert console.out.splitlines() == [
        "choice: 1 rows, 1 graded, correct 0.0% of those graded (wrong 1)",
        "maths: 2 rows, 2 graded, correct 50.0% of those graded (correct 1, no_answer 1)",
        "program: 1 rows, 1 graded, correct 100.0% of those graded (correct 1)",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not JSON"),
        (b"\xff\xfe\xff", "line 2 is not JSON"),
        ("[" * 100_000, "line 2 is not JSON"),
        ("[1]", "line 2: expected a JSON object, got list"),
        ({**MATHS, "kind": "poem"}, "kind='poem' is not a kind; choose one of maths, choice"),
        ({**MATHS, "kind": None}, "kind=None is not a kind"),
        ({**MATHS, "response": 4}, "response=4 must be a text"),
        ({"kind": "maths", "answer": "4"}, "response=None must be a text"),
        ({"kind": "maths", "response": ""}, "answer=None must be a text or a number"),
        ({**MATHS, "answer": [4]}, "answer=[4] must be a text or a number"),
        ({**MATHS, "tests": ["assert True"]}, "kind=maths has tests; give answer, or kind="),
        ({**PROGRAM, "tests": 4}, "tests=4 must be a text or a list of texts"),
        ({**PROGRAM, "test_imports": [], "tests": []}, "tests is empty; give the asserts"),
    ],
)
def test_a_bad_row_has_a_reason_and_the_others_their_verdicts(grade, line, message):
    code, rows, console = grade([MATHS, line, CHOICE])
    assert code == 1
    assert [row["reason"] for row in rows] == ["correct", "error", "wrong"]
    assert message in rows[1]["message"]
    assert "bad rows: 1 rows, 0 graded, correct none graded (error 1)" in console.out


def test_numbers_and_texts_are_answers_and_asserts_may_be_one_text(grade):
    lines = [
        {**MATHS, "answer": 4},
        {**MATHS, "answer": 4.0, "id": 7},
        {**PROGRAM, "tests": "import math\nassert f(1) == math.sqrt(4)"},
        {**PROGRAM, "tests": None, "answer": "x"},
    ]
    code, rows, _ = grade(lines)
    assert code == 1
    assert [row["reason"] for row in rows] == ["correct", "correct", "correct", "error"]


def test_a_program_without_end_is_undecided_not_wrong(grade):
    endless = {**PROGRAM, "response": "```python\nwhile True: pass\n```"}
    code, rows, console = grade([endless, MATHS], "--timeout-s", "1.5")
    assert code == 1
    assert [row["reason"] for row in rows] == ["timeout", "correct"]
    assert "program: 1 rows, 0 graded, correct none graded (timeout 1)" in console.out


def test_an_empty_file_and_blank_lines_give_no_rows(grade):
    code, rows, console = grade(["", "  "])
    assert (code, rows, console.out) == (0, [], "no rows\n")


def test_many_rows_stay_in_order(grade):
    lines = [{**MATHS, "id": n, "answer": str(n % 2 * 4)} for n in range(5000)]
    code, rows, _ = grade(lines)
    assert code == 0
    assert [row["id"] for row in rows] == list(range(5000))
    assert sum(row["score"] for row in rows) == 2500.0


def test_a_format_may_be_named(grade):
    lines = [
        {**MATHS, "answer": "2R", "response": "<answer>2r</answer>"},
        {**MATHS, "response": "<answer>4</answer>"},
    ]
    code, rows, _ = grade(lines, "--answer-format", "tags")
    assert code == 0
    assert [row["reason"] for row in rows] == ["wrong", "correct"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.jsonl", "out.jsonl"], "gone.jsonl: No such file or directory"),
        (["in.jsonl", "out.jsonl", "--workers", "0"], "--workers 0: it must be above 0"),
        (["in.jsonl", "out.jsonl", "--isolation", "some"], "choose one of full, partial, none"),
        (["in.jsonl"], "the following arguments are required: OUT.jsonl"),
    ],
)
def test_unusable_files_and_options_end_with_one_line_and_no_output(
    tmp_path, monkeypatch, capsys, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text(json.dumps(MATHS))
    with pytest.raises(SystemExit) as ended:
        main_grade.main(arguments)
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out.jsonl").exists()


def test_the_input_is_never_written_over_and_a_missing_folder_is_named(tmp_path, capsys):
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps(MATHS) + "\n")
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    for output, more, says in (
        (path, [], "the same file as IN.jsonl; name another OUT.jsonl"),
        (link, [], "the same file as IN.jsonl; name another OUT.jsonl"),
        (tmp_path / "no/o.jsonl", [], "no such folder"),
        (tmp_path, [], "Is a directory"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main_grade.main([str(path), str(output), *more])
        err = capsys.readouterr().err
        assert says in err and err.count("\n") == 1
    assert path.read_text() == json.dumps(MATHS) + "\n"


def test_a_packed_file_is_graded_like_the_plain_one_and_a_damaged_one_is_told(tmp_path, capsys):
    packed = gzip.compress((json.dumps(MATHS) + "\n").encode() * 3)
    (tmp_path / "in.jsonl.gz").write_bytes(packed)
    with pytest.raises(SystemExit, match="0"):
        main_grade.main([str(tmp_path / "in.jsonl.gz"), str(tmp_path / "out.jsonl")])
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3
    capsys.readouterr()
    (tmp_path / "in.jsonl.gz").write_bytes(packed[:-5])
    with pytest.raises(SystemExit, match="2"):
        main_grade.main([str(tmp_path / "in.jsonl.gz"), str(tmp_path / "new.jsonl")])
    err = capsys.readouterr().err
    assert "in.jsonl.gz: not a whole gzip file: " in err and err.count("\n") == 1
    assert not (tmp_path / "new.jsonl").exists()


def test_the_problem_of_a_row_reaches_the_grade(tmp_path, monkeypatch):
    items = []

    class Pool(main_grade.VerifierPool):
        def submit(self, items_, ids=None):
            items.extend(items_)
            return super().submit(items_, ids)

    monkeypatch.setattr(main_grade, "VerifierPool", Pool)
    row = {"kind": "maths", "response": r"\boxed{5}", "answer": "5", "problem": "How many apples?"}
    (tmp_path / "in.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(SystemExit) as end:
        main_grade.main([str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl")])
    assert end.value.code == 0
    assert [item.problem for item in items] == ["How many apples?"]
    assert json.loads((tmp_path / "out.jsonl").read_text())["problem"] == "How many apples?"


def test_a_summary_that_cannot_be_shown_changes_no_exit_code(tmp_path):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_text(json.dumps(MATHS) + "\n")
    program = [sys.executable, main_grade.__file__, path, out, "--workers", "1"]
    with open("/dev/full", "w") as full:
        end = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (end.returncode, end.stderr.count("\n")) == (0, 1)
    assert "output is incomplete: No space left on device" in end.stderr
    assert json.loads(out.read_text())["reason"] == "correct"

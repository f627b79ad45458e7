"""Rows in, the same rows with verdicts out; a bad row is a reason, not a crash."""

import json

import pytest

from recipe.study import grade as program

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
        source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        source.write_bytes(b"\n".join(texts))
        with pytest.raises(SystemExit) as ended:
            program.main([str(source), str(target), "--workers", "1", *options])
        rows = target.read_text().splitlines() if target.exists() else []
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
    assert console.out.splitlines()[1:] == [
        "maths: 2 rows, 2 graded, 50.0% of these correct (correct 1, no_answer 1)",
        "program: 2 rows, 1 graded, 100.0% of these correct (correct 1, timeout 1)",
    ]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({**MATHS, "kind": "poem"}, "kind='poem' must be 'maths', 'choice' or 'program'"),
        ({**MATHS, "answer": {}}, "answer={} must be"),
        ({"answer": "1"}, "response is missing"),
        ({"response": ""}, "answer"),
        ({**CHOICE, "answer": "AB"}, "answer"),
        ({**MATHS, "tests": ["assert True"]}, "tests"),
    ],
)
def test_what_no_verifier_can_use_is_named(fields, named):
    with pytest.raises(ValueError, match=named):
        program.read_item(fields)


def test_a_bad_row_has_a_reason_and_the_others_their_verdicts_in_order(grade):
    lines = [{**MATHS, "id": n, "answer": str(n % 2 * 4)} for n in range(2200)]
    number = b'{"response": "\\\\boxed{1.5}", "answer": 1.50}'
    code, rows, console = grade([*lines, b"{", {**MATHS, "kind": "poem"}, number])
    assert code == 1
    assert [row["id"] for row in rows[:2200]] == list(range(2200))
    assert sum(row["score"] for row in rows[:2200]) == 1100.0
    assert [row["reason"] for row in rows[2200:]] == ["error", "error", "correct"]
    assert rows[2200]["message"].startswith("line 2201") and "kind" in rows[2201]["message"]
    assert "bad rows: 2 rows, 0 graded" in console.out


@pytest.mark.parametrize(
    ("lines", "options", "said"),
    [
        ([MATHS], ["--workers", "0"], "above 0"),
        ([MATHS], ["--isolation", "some"], "invalid choice"),
    ],
)
def test_unusable_files_and_options_end_with_one_line_and_no_output(grade, lines, options, said):
    code, rows, console = grade(lines, *options)
    assert (code, rows) == (2, []) and console.err.count("\n") == 1 and said in console.err

"""A program row is written only when its tests tell a right program from an idle one."""

import json

import pytest
from hub_files import write

from recipe.hint import main_prepare
from recipe.hint.problems.columns import read_problems
from recipe.hint.problems.programs import reference_code, row_fault
from recipe.hint.verify.rows import read_row

RIGHT = "def f(x):\n    return 2 * x\ndef g(xs):\n    return sorted(xs)"
TESTS = "assert f(2) == 4"
CHECK = "def check(candidate):\n    assert candidate(2) == 4"


def prepare(tmp_path, *rows):
    path, out = write(tmp_path / "rows.jsonl", list(rows)), tmp_path / "rows.parquet"
    main_prepare.main([str(path), str(out), "--kind", "program"])
    return read_problems(out)


def row(tests, solution=f"So:\n```python\n{RIGHT}\n```", **more):
    return {"problem": "Double it.", "answer": tests, "solution": solution, **more}


def test_a_row_whose_solution_passes_is_written(tmp_path):
    (problem,) = prepare(tmp_path, row(TESTS))
    assert (problem.kind, problem.answer) == ("program", TESTS)


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        (CHECK, "line 1: check holds checks and nothing calls it; end the tests with check(...)"),
        ("def test_f(client):\n    assert f(2) == 4", "takes arguments that nobody gives"),
        ("if False:\n    assert f(2) == 4", "line 1: the checks below this line never run"),
        ("assert (f(2) == 4, 'x')", "line 1: a tuple is always true"),
        ("assert len([1]) == 1", "uses nothing of the program|use nothing of the program|has no"),
        ("f(2) == 4", "line 1: a comparison without assert"),
        (">>> f(2)\n4", "the tests are not Python"),
        ("import numpy\nassert f(2) == 4", "the tests import numpy, and that fails"),
        (
            "from solution import f\nassert f(2) == 4",
            "call what it has to define, without import",
        ),
        ("if f(2) is None:\n    assert f(3) is None", "the check of line 2 never ran"),
        ("assert f(2) == 5", "fails the row's tests, wrong: AssertionError"),
        ("assert f(2) != 5", "functions that return None would pass the tests"),
        (
            "xs = []\nf(0)\ngot = g(xs)\nassert got == sorted(xs)",
            "functions that empty the list they are given and return it would pass the tests",
        ),
        ("f\nassert 4 > len([])", "would pass the tests|tests cannot be run"),
        ("assert f(object()) == 4", "the tests pass a object, which cannot be copied"),
    ],
)
def test_a_row_whose_tests_cannot_tell_is_not_written(tmp_path, capsys, tests, message):
    with pytest.raises(SystemExit, match="2"):
        prepare(tmp_path, row(TESTS, problem="another"), row(tests))
    error = capsys.readouterr().err
    assert any(part in error for part in message.split("|")), error
    assert "rows.jsonl: line 2, column `" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "rows.parquet").exists()


def test_a_solution_in_words_leaves_the_idle_programs_to_be_tried():
    assert row_fault(TESTS, "Multiply by two.") is None
    assert row_fault("assert f(2) is None", "Multiply by two.") == (
        "answer",
        "functions that return None would pass the tests; add asserts on values that they miss",
    )
    tests = "assert P(1).next() is None"
    assert row_fault(tests, "In words.") == (
        "answer",
        "classes whose methods return None would pass the tests; add asserts on values that they"
        " miss",
    )


def test_a_solution_is_its_code_block_or_python_as_a_whole():
    assert reference_code(f"```python\n{RIGHT}\n```") == RIGHT
    assert reference_code(RIGHT) == RIGHT
    assert reference_code("Multiply by two.") == reference_code("two") == ""


def test_check_is_called_with_the_entry_point(tmp_path):
    (problem,) = prepare(tmp_path, row(CHECK, entry_point="f"))
    assert problem.answer == f"{CHECK}\n\ncheck(f)"
    line = {"kind": "program", "response": "", "tests": CHECK, "entry_point": "f"}
    assert read_row(json.dumps(line).encode(), 1).item.answer == problem.answer
    called = f"{CHECK}\ncheck(f)"
    assert read_row(json.dumps({**line, "tests": called}).encode(), 1).item.answer == called

"""A program row is written only when its tests tell a right program from an idle one."""

import json
import re

import pytest
from hub_files import write

from recipe.hint import main_prepare
from recipe.problems.columns import read_problems
from recipe.problems.programs import idle_programs, reference_code, row_fault
from recipe.verify.rows import read_row

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


IDLE = [
    ("xs = [1, 2, 3, 3]\ngot = f(xs)\nassert got == len(set(xs))", "len(set(xs))", "empty .* 0"),
    ("d = {'a': 7}\ngot = f(d)\nassert got == sum(d.values())", "sum(xs.values())", "empty .* 0"),
    ("xs = [2]\ngot = f(xs)\nassert got is (xs[0] if xs else None)", "xs[0]", "empty .* None"),
    ("xs = [0]\ngot = f(xs)\nassert got is bool(xs)", "True", "return True"),
    (
        "xs = [0]\ngot = f(xs)\nassert got is bool(xs)\nassert f([]) is False",
        "bool(xs)",
        "empty .* F",
    ),
    ("s = {'a'}\ngot = f(s)\nassert got == ''.join(s)", "''.join(xs)", 'empty .* ""'),
    ("xs = [3, 1]\ngot = f(xs)\nassert got == xs[0]", "xs[0]", "set .* 0"),
    ("xs = ['b', 'a']\ngot = f(xs)\nassert got is xs[1] or got == xs[1]", "xs[1]", "set .*"),
    ("xs = [3, 1]\ngot = f(xs)\nassert len(got) and got == sorted(xs)", "sorted(xs)", "leave 0"),
    ("xs = [3, 1]\nassert f(xs) == True\nassert f([]) == True", "xs == xs", "return True"),
    ("assert f([]) == 0\nassert f([0]) == 0", "sum(xs)", "return (False|0)"),
]


@pytest.mark.parametrize(("tests", "right", "idle"), IDLE)
def test_tests_that_an_idle_program_passes_are_refused(tests, right, idle):
    column, what = row_fault(tests, f"def f(xs):\n    return {right}")
    assert column == "answer"
    assert re.search(f"functions that ({idle})", what), what


@pytest.mark.parametrize(
    ("tests", "is_tried"),
    [
        ("assert f([2]) == [2]", False),
        ("assert sorted(f([2], key=-1)) == [2]", False),
        ("for xs in ([1], [2]):\n    assert f(xs) == xs", True),
        ("assert f([2], key=xs[0]) == [2]", True),
    ],
)
def test_arguments_are_spoiled_only_where_they_can_be_looked_at_again(tests, is_tried):
    assert any("set each" in what for what, _ in idle_programs(tests)) is is_tried


@pytest.mark.parametrize(
    "more",
    ["assert xs == [3, 1]", "assert f([5, 4]) == [4, 5]", "ys = [5, 4]\nassert f(ys) == [4, 5]"],
)
def test_one_value_that_is_written_out_is_enough(more):
    tests = f"xs = [3, 1]\ngot = f(xs)\nassert got == sorted(xs)\n{more}"
    assert row_fault(tests, "def f(xs):\n    return sorted(xs)") is None


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

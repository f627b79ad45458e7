"""Programs of a file: what stands before them, and tests that cannot tell right from wrong."""

import pytest
from hub_files import prepare, write

from recipe.problems.columns import read_problems
from recipe.problems.schema import problem_from_row
from recipe.verify.grading import grade
from recipe.verify.programs.tests import setup_of, with_setup
from recipe.verify.schema import Item

CODE = "def f(x):\n    return 2 * x"
TESTS = "assert f(2) == 4"
LEETCODE = """class Solution:
    def total(self, numbers: List[int]) -> int:
        return sum(numbers)"""
CHECK = "def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([]) == 0"


def program(tests, code=CODE, **more):
    return {
        "problem": "Do it.",
        "answer": tests,
        "solution": f"So:\n```python\n{code}\n```",
        **more,
    }


@pytest.mark.parametrize("where", ["columns", "a list", "a mapping"])
def test_what_stands_before_a_program_is_put_before_it(tmp_path, where):
    imports = "from typing import List"
    tests = {"tests": CHECK, "setup": imports} if where == "a mapping" else CHECK
    more = {"columns": {"setup": imports}, "a list": {"test_imports": [imports]}}.get(where, {})
    line = program(tests, LEETCODE, entry_point="Solution().total", **more)
    out = tmp_path / "rows.parquet"
    prepare(write(tmp_path / "rows.jsonl", [line]), out, "--kind=program")
    (problem,) = read_problems(out)
    assert setup_of(problem.answer) == f"{imports}\n"
    right, wrong = f"```python\n{LEETCODE}\n```", f"```python\n{LEETCODE} + 1\n```"
    assert grade(Item(right, problem.answer, kind="program")).reason == "correct"
    assert grade(Item(wrong, problem.answer, kind="program")).reason == "wrong"


def test_verls_row_of_a_program_has_its_setup_too():
    truth = {"tests": [TESTS], "setup": "import math"}
    made = problem_from_row(
        {"prompt": "x", "reward_model": {"ground_truth": truth, "kind": "program"}}
    )
    assert made.answer == with_setup("import math", TESTS)


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ("def check(candidate):\n    assert candidate(2) == 4", "use nothing of the program"),
        ("assert (f(2) == 4, 'x')", "line 1: always true"),
        (">>> f(2)\n4", "the tests are not Python"),
    ],
)
def test_a_row_whose_tests_cannot_tell_is_not_written(tmp_path, capsys, tests, message):
    with pytest.raises(SystemExit, match="2"):
        rows = write(tmp_path / "a.jsonl", [program(tests)])
        prepare(rows, tmp_path / "a.parquet", "--kind=program")
    assert message in capsys.readouterr().err
    assert not (tmp_path / "a.parquet").exists()

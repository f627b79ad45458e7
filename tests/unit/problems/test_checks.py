"""What rows have in common, and programs that do not pass their tests."""

import pytest
from hub_files import prepare, write

from recipe.problems.checks import reference_code, row_fault, row_findings, shared_pairs, words
from recipe.problems.columns import make_row, read_problems
from recipe.problems.prepare import Prepared
from recipe.problems.schema import problem_from_row
from recipe.verify.grading import grade
from recipe.verify.programs.tests import setup_of, with_setup
from recipe.verify.schema import Item

LONG = "A farmer has seven fields and in each of them stand twelve trees with nine birds; count"
OTHER = "Two trains start at noon in towns that lie three hundred kilometres apart and meet at two"
CODE = "def f(x):\n    return 2 * x"
TESTS = "assert f(2) == 4"
LEETCODE = """class Solution:
    def total(self, numbers: List[int]) -> int:
        return sum(numbers)"""
CHECK = "def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([]) == 0"


def test_case_spacing_markup_and_spellings_make_no_other_problem_but_numbers_do():
    assert words(r"Find $\left( x = \frac{1}{2} \right)$!") == words("find (x = \\dfrac{1}2)")
    assert words("2 × 3 – 1") == words("2*3-1") != words("2*4-1")


def test_a_reworded_problem_is_found_and_others_are_not():
    assert shared_pairs([OTHER, LONG.upper()], [LONG]) == [(1, 0, 1.0)]
    longer = f"Before: read this carefully. {LONG}, and say it."
    assert shared_pairs([longer], [LONG]) == shared_pairs([LONG], [longer]) == [(0, 0, 1.0)]
    assert shared_pairs(["2+2?"], ["2 + 2", "2+3"]) == [(0, 0, 1.0)]
    assert shared_pairs(["", "?!"], ["", "..."]) == []


def test_an_instruction_behind_every_problem_is_no_text_in_common():
    behind = " Please reason step by step and put your final answer in a box at the end."
    benchmark = [f"Problem {n}: {'x' * n}?{behind}" for n in range(20)]
    assert shared_pairs([f"Mine: y?{behind}"], benchmark) == []


def test_letters_options_and_words_that_do_not_fit_are_told_with_their_places():
    rows = (
        make_row("Even?", "B", kind="choice"),
        make_row("Even?\n(A) 1\n(B) 2", "B", solution="2 is."),
        make_row(LONG, "2", solution="x"),
        make_row(f" {LONG.lower()}", "2", solution="x"),
    )
    found = row_findings(Prepared("in", rows, tuple(f"line {n}" for n in (1, 2, 3, 4))))
    for line, start, place in zip(
        found,
        ("warning: in: 1 rows, column `solution`", *["warning: in: 1 rows, column `"] * 3),
        ("(line 1)", "(line 1)", "(line 2)", "(line 4 = line 3)"),
        strict=True,
    ):
        assert line.startswith(start) and line.endswith(place)


# -- programs -------------------------------------------------------------------------------------


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
        ("assert f(2) == 5", "fails the row's tests, wrong: assert f(2) == 5"),
    ],
)
def test_a_row_whose_tests_cannot_tell_is_not_written(tmp_path, capsys, tests, message):
    with pytest.raises(SystemExit, match="2"):
        rows = write(tmp_path / "a.jsonl", [program(tests)])
        prepare(rows, tmp_path / "a.parquet", "--kind=program")
    assert message in capsys.readouterr().err
    assert not (tmp_path / "a.parquet").exists()


def test_a_solution_is_its_code_block_or_python_as_a_whole():
    assert reference_code(f"Text\n```python\n{CODE}\n```") == CODE
    assert reference_code(CODE) == CODE
    assert reference_code("It doubles.") == ""
    assert row_fault(TESTS, "It doubles.") == ""

"""A program is right when every assert holds; each case really runs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from growth import LINEAR, exponent

from recipe.verify.grading import grade
from recipe.verify.maths.box import Box
from recipe.verify.options import GradeOptions
from recipe.verify.programs.run import code_block, run_program
from recipe.verify.schema import Item, Verdict

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
CASES, HONEST = (
    json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    for name in ("programs", "programs_honest")
)
CODE = "def f(x):\n    return 2 * x"
DOCUMENTED = '''def f(x):
    """Double.

    ```python
    f(2)
    ```
    """
    return 2 * x'''


def fenced(code, language="python"):
    return f"So:\n```{language}\n{code}\n```\nDone."


def graded(response, tests, is_truncated=False):
    return grade(Item(response, tests, is_truncated, "program"))


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_what_is_not_right_has_its_reason(case):
    outcome = run_program(case["source"], case["tests"], GradeOptions())
    assert outcome.reason == case["reason"], outcome.detail
    assert outcome.detail


@pytest.mark.parametrize("case", HONEST, ids=[case["why"] for case in HONEST])
def test_an_honest_program_is_right_and_its_tests_do_not_pass_without_it(case):
    assert run_program(case["source"], case["tests"], GradeOptions()) == ("correct", "")
    assert run_program("pass", case["tests"], GradeOptions()).reason == "wrong"


@pytest.mark.parametrize(
    ("response", "block"),
    [
        ("no code", Box("absent")),
        *[(fenced(CODE, name), Box("closed", CODE)) for name in ("", "py", "Python3", "{.py}")],
        (fenced("first = 1") + fenced(CODE), Box("closed", CODE)),
        (fenced(CODE) + fenced("its output", "text"), Box("closed", CODE)),
        (fenced("first = 1") + "\n```python\ndef f(", Box("open")),
        (fenced(CODE) + "\n```text\noutput", Box("closed", CODE)),
        ("````python\nx = '```'\n```\n````", Box("closed", "x = '```'\n```")),
        ("1. Use\n   ```python\n   def f():\n     pass\n   ```",
         Box("closed", "def f():\n  pass")),
        ("say ```python x``` inline", Box("absent")),
        (fenced(CODE).replace("\n", "\r\n"), Box("closed", CODE)),
        (fenced("s = 'a\u2028b'"), Box("closed", "s = 'a\u2028b'")),
        ("Title\n~~~~~\nwrap it in ```python\n", Box("absent")),
    ],
)  # fmt: skip
def test_the_last_python_block_counts_else_the_last_block(response, block):
    assert code_block(response) == block


OPENINGS = [
    *("```python", '```python title="a.py"', "```{.python}"),
    *("<answer>```python", "Here is the code: ```python", "**Code** ```py", "1. ```python"),
]
CLOSINGS = ["```", "``` </answer>", "```<|im_end|>", "``` It doubles x.", "```.", "``` So", "````"]
DRAFT = "```python\nclass Box: ...\n\ndef f(x):\n    return 3 * x\n"
THOUGHTS = ["", *(f"<think>\n{DRAFT}{end}</think>\n" for end in ("```\n", "", "It's 2.\n", "So: "))]


@pytest.mark.parametrize("tests", ["", "assert f(2) == 4"])
def test_a_program_is_found_whole_in_every_layout(tests):
    layouts = itertools.product(THOUGHTS, OPENINGS, CLOSINGS, [CODE, DOCUMENTED], ["", "\nDone."])
    missed = []
    for thought, opening, closing, code, rest in layouts:
        response = f"{thought}{opening}\n{code}\n{closing}{rest}"
        if code_block(response, tests) != Box("closed", code):
            missed.append(response)
    assert missed == []


@pytest.mark.parametrize("beside", ["f(2)", "def test_f():\n    assert f(2) == 4", ">>> f(2)", ""])
def test_what_stands_beside_the_program_does_not_count(beside):
    program = f"class Box:\n    size = 1\n\nasync {CODE}"
    tests = "got = f(2)\nassert got == 4\nassert len(got) == Box(f).size"
    blocks = [fenced(program), fenced(beside)]
    for response in ("".join(blocks), "".join(reversed(blocks))):
        assert code_block(response, tests) == Box("closed", program)


@pytest.mark.parametrize(
    ("codes", "counts"),
    [
        ((CODE, CODE.replace("2", "3")), 1),  # the later of two programs
        ((CODE, "f: Callable[[int], int] = g"), 1),
        ((CODE, "def f(x):\n    return ("), 1),  # also where it is no Python
        ((f"{CODE}\ng = f", CODE), 0),  # it defines more
    ],
)
def test_the_last_block_that_defines_most_of_what_the_tests_use_counts(codes, counts):
    assert code_block("".join(map(fenced, codes)), "assert f(2) == g(2)").text == codes[counts]


@pytest.mark.parametrize(
    ("response", "is_truncated", "reason"),
    [
        ("no code", False, "no_answer"),
        ("no code", True, "truncated"),
        (fenced("  \n"), False, "no_answer"),
        ("```python\ndef f(x):", True, "truncated"),
        (DRAFT, False, "malformed"),
        (DRAFT + "```python\nf(2)\n```\n", False, "malformed"),
        (fenced("x" * 200_001), False, "malformed"),
    ],
)
def test_without_a_whole_block_nothing_is_run(response, is_truncated, reason):
    verdict = graded(response, "assert f(1) == 2", is_truncated)
    assert (verdict.score, verdict.reason, verdict.basis) == (0.0, reason, "none")


def test_the_verdict_shows_the_code_and_the_check_that_failed():
    verdict = graded(fenced(CODE), "assert f(2) == 4", is_truncated=True)
    assert verdict == Verdict(1.0, "correct", CODE, "tests")
    # The line is not the program's to choose.
    chosen, tests = "(line 2 of the tests)", "assert f(2) == 4\nassert f(77) == 154"
    at_import = graded(fenced(f"f = 1\nraise ValueError('{chosen}')"), tests)
    in_call = graded(fenced(f"def f(x):\n    raise ValueError('{chosen}')"), tests)
    assert at_import.detail == f"ValueError: {chosen}"
    assert in_call.detail == f"assert f(2) == 4\nValueError: {chosen} (line 1 of the tests)"
    opened = graded(fenced("class Own: pass\nf = lambda x: Own()"), "assert f(2) == 4")
    assert opened.detail == "the program gives a value of type Own"
    assert (opened.reason, opened.is_ungraded) == ("unsupported", False)


def test_the_order_of_a_set_is_the_same_in_every_run():
    source = "raise ValueError(list({'a', 'b', 'c', 'd'}))"
    assert len({run_program(source, "assert f() == 1", GradeOptions()) for _ in range(3)}) == 1


@pytest.mark.parametrize("line", ["f: ", "x = f = ", "```", "``` a", ": ```py ", "</think>"])
def test_finding_the_block_costs_the_caller_no_more_than_its_length(line):
    def find(response):
        return code_block(response, "assert f(2) == 4")

    for end in ("", "\n"):
        assert exponent(find, lambda n: fenced((line + end) * n) * 2, 500) < LINEAR  # noqa: B023


def test_a_method_of_a_new_object_is_a_function_of_the_program():
    source = "class Solution:\n    def total(self, xs):\n        return sum(xs)"
    tests = "def check(candidate):\n    assert candidate([1, 2]) == 3\ncheck(Solution().total)"
    assert run_program(source, tests, GradeOptions()).reason == "correct"
    assert run_program(f"{source} + 1", tests, GradeOptions()).reason == "wrong"

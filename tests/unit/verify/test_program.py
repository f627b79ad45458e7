"""A program is right when every assert holds; each case really runs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from growth import LINEAR, exponent

from recipe.verify.grading import grade
from recipe.verify.options import GradeOptions
from recipe.verify.programs import run
from recipe.verify.programs.blocks import Block, code_block
from recipe.verify.programs.run import grade_program, quick_verdict
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


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_what_is_not_right_has_its_reason(case):
    outcome = run.run_program(case["source"], case["tests"], GradeOptions())
    assert outcome.reason == case["reason"], outcome.detail
    assert outcome.detail


@pytest.mark.parametrize("case", HONEST, ids=[case["why"] for case in HONEST])
def test_an_honest_program_is_right_and_its_tests_do_not_pass_without_it(case):
    outcome = run.run_program(case["source"], case["tests"], GradeOptions())
    assert outcome == run.Outcome("correct")
    assert run.run_program("pass", case["tests"], GradeOptions()).reason == "wrong"


@pytest.mark.parametrize(
    ("tests", "args"),
    [
        ("assert f(lambda v: v) == 4", "the tests pass a value of type function"),
        ("assert f(iter([1])) == 4", "the tests pass a value of type list_iterator"),
        ("assert f(1) == 4", "the program gives a value of type Own"),
        ("assert f([]) == 4", "the program gives data nested deeper than 100 levels"),
    ],
)
def test_what_is_not_plain_data_is_named_and_counts_as_no_success(tests, args):
    source = (
        "class Own: pass\ndef f(x):\n    if x == []:\n        for _ in range(200):\n"
        "            x = [x]\n        return x\n    return Own()"
    )
    verdict = grade_program(fenced(source), tests)
    assert (verdict.score, verdict.reason, verdict.is_ungraded) == (0.0, "unsupported", False)
    assert args in verdict.detail


@pytest.mark.parametrize(
    ("response", "block"),
    [
        ("no code", Block("absent")),
        *[(fenced(CODE, name), Block("closed", CODE)) for name in ("", "py", "Python3", "{.py}")],
        (fenced("first = 1") + fenced(CODE), Block("closed", CODE)),
        (fenced(CODE) + fenced("its output", "text"), Block("closed", CODE)),
        (fenced("one", "") + fenced("two", ""), Block("closed", "two")),
        (fenced("first = 1") + "\n```python\ndef f(", Block("open")),
        (fenced(CODE) + "\n```text\noutput", Block("closed", CODE)),
        ("````python\nx = '```'\n```\n````", Block("closed", "x = '```'\n```")),
        (
            "1. Use\n   ```python\n   def f():\n     pass\n   ```",
            Block("closed", "def f():\n  pass"),
        ),
        ("say ```python x``` inline", Block("absent")),
        (fenced(CODE).replace("\n", "\r\n"), Block("closed", CODE)),
        (fenced("s = 'a\u2028b'"), Block("closed", "s = 'a\u2028b'")),
        (fenced(DOCUMENTED), Block("closed", DOCUMENTED)),
        ("Title\n~~~~~\nwrap it in ```python\n", Block("absent")),
    ],
)
def test_the_last_python_block_counts_else_the_last_block(response, block):
    assert code_block(response) == block


OPENINGS = [
    *("```python", '```python title="a.py"', "\ufeff```{.python}", "~~~python"),
    *("<answer>```python", "Here is the code: ```python", "**Code** ```py", "1. ```python"),
]
CLOSINGS = ["```", "```\u200b", "``` </answer>", "```<|im_end|>", "``` This doubles x.", "````"]
DRAFT = "```python\nclass Box: ...\n\ndef f(x):\n    return 3 * x\n"
THOUGHTS = ["", *(f"<think>\n{DRAFT}{end}</think>\n" for end in ("```\n", "", "It's 2.\n", "So: "))]


@pytest.mark.parametrize("tests", ["", "assert f(2) == 4"])
def test_a_program_is_found_whole_in_every_layout(tests):
    layouts = itertools.product(THOUGHTS, OPENINGS, CLOSINGS, [CODE, DOCUMENTED], ["", "\nDone."])
    missed = []
    for thought, opening, closing, code, rest in layouts:
        end = closing.replace("`", "~") if "~" in opening else closing
        response = f"{thought}{opening}\n{code}\n{end}{rest}"
        if code_block(response, tests) != Block("closed", code):
            missed.append(response)
    assert missed == []


@pytest.mark.parametrize("end", ["", "```python\nf(2)\n```\n"])
def test_a_program_that_is_left_open_is_malformed(end):
    assert grade_program(DRAFT + end, "assert f(2) == 6").reason == "malformed"


def test_characters_that_nobody_sees_make_no_program_wrong_and_stay_in_its_texts():
    code = "\ufefff = lambda x:\u202f2\xa0* x\u200b"
    assert grade_program(fenced(code) + fenced("f(2)"), "assert f(2) == 4").reason == "correct"
    code = "def f():\n    return 'a\xa0\u200b\ufeff'"
    assert grade_program(fenced(code), r"assert f() == 'a\xa0\u200b\ufeff'").reason == "correct"


BESIDE = [
    "f(2)",
    "got = f(2)\nprint(got)",
    "def test_f():\n    assert f(2) == 4",
    "from a import f",
]


@pytest.mark.parametrize("beside", [*BESIDE, "len = f(2)", ">>> f(2)\n4", "def g(x): ...", ""])
def test_what_stands_beside_the_program_does_not_count(beside):
    program = f"class Box:\n    size = 1\n\nasync {CODE}"
    tests = "got = f(2)\nassert got == 4\nassert len(got) == Box(f).size"
    blocks = [fenced(program), fenced(beside)]
    for response in ("".join(blocks), "".join(reversed(blocks))):
        assert code_block(response, tests) == Block("closed", program)


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
    assert code_block("".join(map(fenced, codes)), "assert f(2) == g(2)").code == codes[counts]


@pytest.mark.parametrize(
    ("response", "is_truncated", "reason"),
    [
        ("no code", False, "no_answer"),
        ("no code", True, "truncated"),
        (fenced("  \n"), False, "no_answer"),
        ("```python\ndef f(x):", True, "truncated"),
        (fenced("x" * 200_001), False, "malformed"),
    ],
)
def test_without_a_block_nothing_is_run(response, is_truncated, reason):
    verdict = quick_verdict(response, "assert f(1) == 2", is_truncated=is_truncated)
    assert verdict is not None
    assert (verdict.score, verdict.reason) == (0.0, reason)


def test_the_verdict_shows_the_code_also_of_a_truncated_response():
    verdict = grade_program(fenced(CODE), "assert f(2) == 4", is_truncated=True)
    assert verdict == Verdict(1.0, "correct", CODE, "tests")
    assert grade(Item(fenced(CODE), "assert f(2) == 5", False, "program")).extracted == CODE


def test_the_order_of_a_set_is_the_same_in_every_run():
    source = "def f():\n    return list({'a', 'b', 'c', 'd'})"
    shown = {
        run.run_program(
            f"{source}\nraise ValueError(f())", "assert f() == 1", GradeOptions()
        ).detail
        for _ in range(3)
    }
    assert len(shown) == 1


@pytest.mark.parametrize(
    "line", ["f: ", "x = f = ", "```", "``` a", ": ```py ", "~~~py", "</think>"]
)
def test_finding_the_block_costs_the_caller_no_more_than_its_length(line):
    def find(response):
        return code_block(response, "assert f(2) == 4")

    for end in ("", "\n"):
        assert exponent(find, lambda n: fenced((line + end) * n) * 2, 500) < LINEAR  # noqa: B023


def test_the_line_that_a_failure_shows_is_not_the_programs_to_choose():
    tests = "assert f(2) == 4\nassert f(77) == 154"
    chosen = "(line 2 of the tests)"
    at_import = grade_program(fenced(f"raise ValueError('{chosen}')"), tests)
    in_call = grade_program(fenced(f"def f(x):\n    raise ValueError('{chosen}')"), tests)
    assert at_import.detail == f"ValueError: {chosen}"
    assert in_call.detail == f"assert f(2) == 4\nValueError: {chosen} (line 1 of the tests)"


@pytest.mark.parametrize("call", ["Solution().total", "Solution().total "])
def test_a_method_of_a_new_object_is_a_function_of_the_program(call):
    source = "class Solution:\n    def total(self, xs):\n        return sum(xs)"
    tests = f"def check(candidate):\n    assert candidate([1, 2]) == 3\ncheck({call})"
    assert run.run_program(source, tests, GradeOptions()).reason == "correct"
    assert run.run_program(f"{source} + 1", tests, GradeOptions()).reason == "wrong"

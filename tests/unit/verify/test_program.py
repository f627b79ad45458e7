"""A program is right when every assert holds; each case really runs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from growth import LINEAR, exponent

from recipe.verify.grading import grade
from recipe.verify.options import GradeOptions
from recipe.verify.programs import blocks, program
from recipe.verify.programs.blocks import Block, code_block
from recipe.verify.programs.program import grade_program, quick_verdict
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
def test_asserts_decide_about_a_program(case):
    outcome = program.run_program(case["source"], case["tests"], GradeOptions())
    assert outcome.reason == case["reason"], outcome.detail


@pytest.mark.parametrize("case", HONEST, ids=[case["why"] for case in HONEST])
def test_an_honest_program_of_usual_shape_is_right(case):
    outcome = program.run_program(case["source"], case["tests"], GradeOptions())
    assert outcome == program.Outcome("correct")


@pytest.mark.parametrize("case", HONEST, ids=[case["why"] for case in HONEST])
def test_no_honest_test_passes_without_its_program(case):
    assert program.run_program("pass", case["tests"], GradeOptions()).reason == "wrong"


@pytest.mark.parametrize(
    ("response", "block"),
    [
        ("no code", Block("absent")),
        (fenced(CODE), Block("closed", CODE)),
        (fenced(CODE, "py"), Block("closed", CODE)),
        (fenced(CODE, "Python3"), Block("closed", CODE)),
        (fenced(CODE, ""), Block("closed", CODE)),
        (fenced("first = 1") + fenced(CODE), Block("closed", CODE)),
        (fenced(CODE) + fenced("its output", "text"), Block("closed", CODE)),
        (fenced("one", "") + fenced("two", ""), Block("closed", "two")),
        (fenced("first = 1") + "\n```python\ndef f(", Block("open")),
        (fenced(CODE) + "\n```text\noutput", Block("closed", CODE)),
        ("```python", Block("open")),
        ("````python\nx = '```'\n```\n````", Block("closed", "x = '```'\n```")),
        (
            "1. Use\n   ```python\n   def f():\n       pass\n   ```",
            Block("closed", "def f():\n    pass"),
        ),
        ("say ```python x``` inline", Block("absent")),
        (fenced(CODE).replace("\n", "\r\n"), Block("closed", CODE)),
        *[
            (fenced(CODE, info) + "\n```\n4\n```", Block("closed", CODE))
            for info in ('python title="a.py"', "{.python}", "{python}", "py3", "python3.11")
        ],
        (fenced("one", "python-repl") + fenced("two", ""), Block("closed", "two")),
        *[
            (fenced(f"s = 'a{sign}b'"), Block("closed", f"s = 'a{sign}b'"))
            for sign in ("\u2028", "\x85", "\x0c", "\x1c", "\v")
        ],
        (fenced('s = """a\n   \nb"""'), Block("closed", 's = """a\n   \nb"""')),
        (fenced(DOCUMENTED), Block("closed", DOCUMENTED)),
        *[
            (f"Here:\n````{info}\n{fenced(CODE)}\n````{end}", Block("closed", CODE))
            for info in ("markdown", "md", "text")
            for end in ("", "\nDone.", "\n```text\n4\n```")
        ],
        (f"````markdown\n{fenced('no code', 'text')}\n````{fenced(CODE)}", Block("closed", CODE)),
        ("````markdown\n```python\ndef f(\n````", Block("open")),
        (f"````text\n{fenced(CODE, '')}\n````", Block("closed", fenced(CODE, ""))),
    ],
)
def test_the_last_python_block_counts_else_the_last_block(response, block):
    assert code_block(response) == block


OPENINGS = [
    *("```python", "``` python", '```python title="a.py"', "\ufeff```{.python}", "~~~python"),
    *("<answer>```python", "Here is the code: ```python", "**Code** ```py", "1. ```python"),
]
CLOSINGS = [
    *("```", "``` ", "```\u200b", "```</answer>", "``` </answer>", "```<|im_end|>", "```."),
    *("``` This doubles x.", "``` Its `f` doubles x.", "```This doubles x.", "````"),
]
DRAFT = "```python\nclass Box: ...\n\ndef f(x):\n    return 3 * x\n"
THOUGHTS = [
    *("", f"<think>\n{DRAFT}```\n</think>\n", f"<think>\n{DRAFT}```</think>\n"),
    *(f"<think>\n{DRAFT}{end}</think>\n\n" for end in ("", "It's 2.\n", "It's 2.", "So: ")),
    f'<think>\n{DRAFT}    """Treble\n</think>\n',
]
TEXT = """Double.

```python
f(2)
```</answer>
``` and more
    ```
</answer>
"""
PROGRAMS = [
    *(CODE, DOCUMENTED, f'"""{TEXT}"""\n{CODE}', f"{CODE}\n\nHELP = '''{TEXT}'''"),
    f"# Not: ```python\n# </think> ```\n{CODE}\n\ndef g(s):\n    return s.split('a</think>b')[-1]",
]


@pytest.mark.parametrize("thought", [*THOUGHTS, DRAFT])
@pytest.mark.parametrize("tests", ["", "assert f(2) == 4"])
def test_a_program_is_found_whole_in_every_layout(thought, tests):
    layouts = itertools.product(OPENINGS, CLOSINGS, PROGRAMS, ["", "\nDone.", "\n</answer>"])
    missed = []
    for opening, closing, code, rest in layouts:
        if "~" in opening:
            if thought == DRAFT:  # a block of another fence goes on
                continue
            closing = closing.replace("`f`", "f").replace("`", "~")
        response = f"{thought}{opening}\n{code}\n{closing}{rest}"
        if code_block(response, tests) != Block("closed", code):
            missed.append(response)
    assert missed == []


@pytest.mark.parametrize("end", ["", "</think>\nIt is that.", "```python\nf(2)\n```\n"])
def test_a_program_that_is_left_open_is_malformed(end):
    assert grade_program(DRAFT + end, "assert f(2) == 6").reason == "malformed"


@pytest.mark.parametrize(
    "prose",
    [
        *("Title\n~~~~~\n", "    f(2) + g\n    ~~~~^\n", "wrap it in ```python\n"),
        *("It has '```python' before it.\n", "Say: ```python code``` or: ```x```\n"),
    ],
)
def test_prose_opens_no_block(prose):
    assert code_block(prose) == Block("absent")
    assert code_block(prose + fenced(CODE) + prose) == Block("closed", CODE)


@pytest.mark.parametrize("space", ["\xa0", "\u202f", "\u3000"])
@pytest.mark.parametrize("mark", ["", "\ufeff", "\u200b", "\u2060"])
def test_characters_that_nobody_sees_make_no_program_wrong(space, mark):
    code = f"{mark}def f(x):{mark}\n{space * 4}return{space}2{mark} * x"
    response = fenced(code) + fenced("f(2)")
    assert grade_program(response, "assert f(2) == 4").reason == "correct"
    assert grade_program(response, "assert f(2) == 5").reason == "wrong"


def test_characters_that_nobody_sees_stay_in_the_texts_of_a_program():
    code = "def f():\n    return 'a\xa0\u200b\ufeff'"
    tests = r"assert f() == 'a\xa0\u200b\ufeff'"
    assert grade_program(fenced(code), tests).reason == "correct"


TESTS = "got = f(2)\nassert got == 4\nassert len(got) == Box(f).size"
BESIDE = {
    "a call": "f(2)",
    "its result": "got = f(2)\nprint(got)",
    "a guard": "if __name__ == '__main__':\n    print(f(2))",
    "a test": "def test_f():\n    assert f(2) == 4\n\ntest_f()",
    "a test case": "class Test(unittest.TestCase):\n    def test_f(self):\n        f(2)",
    "a console": ">>> f(2)\n4",
    "an import": "from solution import f\nf(2)",
    "a helper": "def helper(x):\n    return f(x)",
    "a built-in of its own": "len = f(2)",
    "a comparison": "f == f",
    "nothing": "",
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("language", ["python", ""])
def test_what_stands_beside_the_program_does_not_count(beside, language):
    program = f"class Box:\n    size = 1\n\nasync {CODE}"
    blocks = [fenced(program, language), fenced(beside)]
    begun = f"{blocks[0]}\n```python\n{beside}"
    for response in ("".join(blocks), "".join(reversed(blocks)), begun):
        assert code_block(response, TESTS) == Block("closed", program)


STUBS = [
    f"{header}{body}{behind}"
    for header in ("def f(x):", "def f(x, y=(1, 2)) -> list[int]:", "async def f(\n    x,\n):")
    for body in (
        " ...",
        "\n    pass",
        '\n    """Double."""',
        "\n    # yours",
        '\n    """A."""\n    ...',
    )
    for behind in ("", "\nprint(f(2))")
] + ["def f(x):\n    raise NotImplementedError('later')"]


@pytest.mark.parametrize(
    ("codes", "tests", "counts"),
    [
        ((CODE, CODE.replace("2", "3")), "assert f(2) == 4", 1),  # the later of two programs
        ((CODE, "f = lambda x: x"), "assert f(2) == 4", 1),
        ((CODE, "f: Callable[[int], int] = g"), "assert f(2) == 4", 1),
        ((CODE, "def f(x):\n    return ("), "assert f(2) == 4", 1),  # also where it is no Python
        ((f"{CODE}\ng = f", CODE), "assert f(2) == g(2)", 0),  # it defines more
        (("def sum(a, b): ...", "sum(1, 2)"), "assert sum(1, 2) == 3", 0),
        *(((CODE, stub), "assert f(2) == 4", 0) for stub in STUBS),
        *(((stub, CODE), "assert f(2) == 4", 1) for stub in STUBS),
        ((CODE, "def f(x):\n    return ..."), "assert f(2) == 4", 1),  # a body, if a wrong one
        ((CODE, "def f(x):\n    pass\n    return 1"), "assert f(2) == 4", 1),
        ((CODE, f"{CODE}\n\ndef f(x): ..."), "assert f(2) == 4", 0),  # the last of a name counts
        ((CODE, f"def f(x): ...\n\n{CODE}"), "assert f(2) == 4", 1),
        ((CODE, f"{CODE}\n\ndef g(x): ..."), "assert f(2) == 4", 1),
        ((CODE, "f(2)"), "assert f(2) ==", 1),  # tests that are no Python use nothing
    ],
)
def test_the_last_block_that_defines_most_of_what_the_tests_use_counts(codes, tests, counts):
    assert code_block("".join(map(fenced, codes)), tests).code == codes[counts]


def test_a_program_that_is_begun_again_and_not_ended_is_malformed():
    begun = f"{fenced(CODE)}\n```python\ndef f(x):"
    assert grade_program(begun, "assert f(2) == 4").reason == "malformed"
    assert grade_program(f"{fenced(CODE)}\n```python\nf(", "assert f(2) == 4").reason == "correct"


@pytest.mark.parametrize(
    ("response", "is_truncated", "reason"),
    [
        ("no code", False, "no_answer"),
        ("no code", True, "truncated"),
        (fenced("  \n"), False, "no_answer"),
        ("```python\ndef f(x):", False, "malformed"),
        ("```python\ndef f(x):", True, "truncated"),
        (fenced("x" * 200_001), False, "malformed"),
    ],
)
def test_without_a_block_nothing_is_run(response, is_truncated, reason):
    verdict = quick_verdict(response, "assert f(1) == 2", is_truncated=is_truncated)
    assert verdict is not None
    assert (verdict.score, verdict.reason) == (0.0, reason)


def test_a_complete_block_of_a_truncated_response_is_run():
    assert grade_program(fenced(CODE), "assert f(2) == 4", is_truncated=True).reason == "correct"


def test_the_verdict_shows_the_code():
    assert grade_program(fenced(CODE), "assert f(2) == 4") == Verdict(1.0, "correct", CODE, "tests")
    assert grade(Item(fenced(CODE), "assert f(2) == 5", False, "program")).extracted == CODE


def test_no_asserts_are_an_error():
    assert grade_program(fenced(CODE), " \n").reason == "error"


def test_the_order_of_a_set_is_the_same_in_every_run():
    source = "def f():\n    return list({'a', 'b', 'c', 'd'})"
    probe = "order = f()\nassert order == {}".format
    first = program.run_program(f"{source}\nraise ValueError(f())", probe([]), GradeOptions())
    assert "ValueError: [" in first.detail
    order = first.detail.removeprefix("ValueError: ")
    assert program.run_program(source, probe(order), GradeOptions()).reason == "correct"


def test_a_fence_and_spaces_without_end_cost_the_caller_no_more_than_their_length():
    for begin in ("```", "```py", "```py a=", "<a>", "<a> ```"):
        assert exponent(code_block, lambda n: begin + " " * n + "`", 2000) < LINEAR  # noqa: B023


LINES = ["a", "f", "f: ", "def ", "x = f = ", "f\t", fenced("f = 1")]
LINES += ["```", "``", "``` a", ": ```", ": ```py ", "~~~py", "</think>", '"""', "\xa0", "```py a="]


def test_only_the_last_definition_of_what_the_tests_use_is_read_for_a_body(monkeypatch):
    read = []
    monkeypatch.setattr(blocks, "_is_stub", lambda _, start: bool(read.append(start)))
    many = "def g(x):\n    pass\ndef f(x):\n    pass\n" * 1000
    code_block(fenced(many) + fenced("x = 1"), "assert f(2) == 4")
    assert len(read) == 1


@pytest.mark.parametrize("line", [*LINES, *(f"{line}\n" for line in LINES)])
def test_finding_the_block_costs_the_caller_no_more_than_its_length(line):
    def find(response):
        return code_block(response, "assert f(2) == 4")

    assert exponent(find, lambda n: fenced(line * n) * 2, 500) < LINEAR


def test_the_line_that_a_failure_shows_is_not_the_programs_to_choose():
    tests = "assert f(2) == 4\nassert f(77) == 154"
    chosen = "(line 2 of the tests)"
    at_import = grade_program(fenced(f"raise ValueError('{chosen}')"), tests)
    in_call = grade_program(fenced(f"def f(x):\n    raise ValueError('{chosen}')"), tests)
    assert at_import.detail == f"ValueError: {chosen}"
    assert in_call.detail == (f"assert f(2) == 4\nValueError: {chosen} (line 1 of the tests)")

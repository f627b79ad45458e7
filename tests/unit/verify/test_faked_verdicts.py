"""Programs that try to pass without the right values; each one really runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipe.verify.options import GradeOptions
from recipe.verify.programs import run as programs
from recipe.verify.programs.sandbox import available_layers

LAYERS = available_layers()
pytestmark = pytest.mark.skipif("seccomp" not in LAYERS, reason="the sandbox needs Linux's seccomp")
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "program_attacks.json"
CASES = json.loads(GOLDEN.read_text("utf-8"))


def run(source, tests, *, layers=LAYERS):
    return programs.run_program(source, tests, GradeOptions(), layers)


# Named by `why`: pytest-xdist shows a test's name in its process title, which a program may read.
@pytest.mark.parametrize("case", CASES, ids=[f"{case['kind']}: {case['why']}" for case in CASES])
def test_no_verdict_can_be_faked(case):
    """``error`` says that the tests cannot tell; the rest is the program's doing."""
    outcome = run(case["source"], case["tests"])
    assert outcome.reason == case["reason"] != "correct", outcome
    if case["kind"] == "the process":  # a sandbox of one layer makes no difference
        assert run(case["source"], case["tests"], layers=("seccomp",)).reason == outcome.reason


# Where a comparison may stand.
PLACES = (
    "assert {} and xs is xs", "assert all({} for xs in [[3, 1]])", "assert not (not {})",
    "assert bool({})", "assert ({}) is True", "ok = {}\nassert ok", "assert {} if xs else False",
    "if not {}:\n    assert False\nassert f([1]) == [1]", "assert [{}] == [True]",
    "def g(xs):\n    return {}\nassert g(xs)", "assert (lambda: {})()", "assert {} == True",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_no_argument_is_changed_in_a_comparison_wherever_it_stands(place):
    tests = f"xs = [3, 1]\n{place.format('(f(xs) == sorted(xs))')}"
    changes = {"xs.clear()": "wrong", "del xs[1:]": "wrong", "xs.sort()": "correct"}
    for change, reason in changes.items():
        source = f"def f(xs):\n    {change}\n    return xs"
        assert run(source, tests).reason == reason, change


# What a cheating object may answer to everything that a test asks of a result.
SPECIALS = (
    "eq ne lt le gt ge contains len getitem iter next call add radd sub rsub mul rmul truediv"
    " rtruediv mod rmod xor rxor and rand or ror floordiv pow rpow abs neg int float index round"
    " bool str repr format hash enter exit getattr missing trunc floor ceil complex reversed"
).split()
QUESTIONS = (
    "f(2) == 4", "4 == f(2)", "f(2) == [4]", "f(2) in (4, 5)", "[f(2)] == [4]", "4 <= f(2) <= 4.5",
    "abs(f(2) - 4.5) < 1e-6", "not f(2) - 4.5", "{4: 1}.get(f(2)) == 1", "math.isclose(f(2), 4.5)",
    "str(f(2)) == '4.5'", "round(f(2), 3) == 4.504", "isinstance(f(2), int) and f(2) == 4",
    "not {45} - f(2) | f(2) - {45}", "F(2) == 4", "4 in F(2) and 45 in F(2)", "not -(F(2) - 4)",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("base", ["object", "int", "float", "str", "list", "dict", "set"])
def test_no_object_answers_for_plain_data(base):
    lines = [f"    def __{name}__(self, *a): return True" for name in SPECIALS]
    source = "\n".join(
        [f"class F({base}):", f"    def __new__(cls, *a): return {base}.__new__(cls)",
         "    def __init__(self, *a): pass", *lines, "def f(x):", "    return F(x)"]
    )  # fmt: skip
    for question in QUESTIONS:
        assert run(source, f"import math\nassert {question}").reason != "correct", question

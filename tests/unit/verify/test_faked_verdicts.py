"""Programs that try to pass without the right values; each one really runs."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recipe.verify.options import GradeOptions
from recipe.verify.programs import program
from recipe.verify.programs.sandbox import available_layers

LAYERS = available_layers()
pytestmark = pytest.mark.skipif("seccomp" not in LAYERS, reason="the sandbox needs Linux's seccomp")
BOTH_WAYS = pytest.mark.parametrize("layers", [LAYERS, ("seccomp",)], ids=["all", "seccomp alone"])
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "program_attacks.json"
CASES = json.loads(GOLDEN.read_text("utf-8"))


def run(source, tests, *, layers=LAYERS, **limits):
    return program.run_program(source, tests, GradeOptions(**limits), layers)


@pytest.mark.parametrize("case", CASES, ids=[f"{case['kind']}: {case['why']}" for case in CASES])
def test_no_verdict_can_be_faked(case):
    """``wrong`` is the program's doing; ``error`` says that the tests cannot tell."""
    outcome = run(case["source"], case["tests"])
    assert outcome.reason == case["reason"], outcome
    assert outcome.reason == "wrong" or outcome.detail


def test_the_modules_that_attacks_name_exist():
    """An attack on a module that has moved fails for want of it, and shows nothing."""
    named = {name for case in CASES for name in re.findall(r"recipe(?:\.[a-z_]+)+", case["source"])}
    assert len(named) >= 2
    assert [name for name in sorted(named) if importlib.util.find_spec(name) is None] == []


# What a result may be, and what may read it: with each, the list is emptied before it is compared.
RESULTS = ("iter(())", "(x for x in ())", "Own()", "map(len, ())", "{}.keys().__iter__()")
READERS = "sorted({}) list({}) tuple({}) set({}) sum({}) len(list({})) max({},default=0)".split()


@pytest.mark.parametrize("result", RESULTS)
def test_no_result_empties_what_it_is_compared_with(result):
    source = f"class Own(list):\n    pass\ndef f(xs):\n    xs.clear()\n    return {result}"
    for reader in READERS:
        check = f"{reader.format('f(xs)')} == {reader.format('xs')}"
        assert run(source, f"xs = [3, 1]\nassert {check}").reason == "wrong", check


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


def test_there_are_attacks_of_ten_kinds():
    kinds = {case["kind"] for case in CASES}
    assert len(kinds) == 10
    assert len(CASES) >= 4 * len(kinds)


@BOTH_WAYS
# Named by `why`: pytest-xdist shows a test's name in its process title, which a program may read.
@pytest.mark.parametrize(
    "case", [c for c in CASES if c["kind"] == "the process"], ids=lambda case: case["why"]
)
def test_a_sandbox_of_one_layer_makes_no_difference(case, layers):
    assert run(case["source"], case["tests"], layers=layers).reason == "wrong"


# What a cheating object may answer, and what a test may ask of a result: every pair is run.
SPECIALS = (
    "eq ne lt le gt ge contains len getitem iter next call add radd sub rsub mul rmul truediv"
    " rtruediv mod rmod xor rxor and rand or ror floordiv pow rpow abs neg int float index round"
    " bool str repr format hash enter exit getattr missing trunc floor ceil complex reversed"
).split()
BINARY = (
    "add radd sub rsub mul rmul truediv rtruediv mod rmod xor rxor and rand or ror floordiv".split()
)
# How it answers: to an operator, and to all else.
ANSWERS = {
    "yes": ("True", "True"),
    "nothing": ("0", "0"),
    "itself": ("self", "self"),
    "as asked": ("a[0]", "a[0] if a else 4"),
    "itself, then nothing": ("self", "0"),
    "itself, then empty": ("self", "iter(())"),
}
BASES = ("object", "int", "float", "str", "list", "tuple", "dict", "set")
# One of each kind of stand-in (programs/standins.py), and the one that has a difference.
BASES_IN_CI = {"object", "int", "list", "set"}
QUESTIONS = (
    "f(2) == 4", "4 == f(2)", "f(2) == [4]", "f(2) == 'four'", "f(2) == {4: 4}", "f(2) in (4, 5)",
    "[f(2)] == [4]", "{'a': f(2)} == {'a': 4}", "abs(f(2) - 4.5) < 1e-6", "abs(4.5 - f(2)) < 1e-6",
    "(f(2) - 4.5) ** 2 < 1e-6", "4 <= f(2) <= 4.5", "not f(2) - 4.5", "not f(2) ^ 45",
    "f(2) / 45 == 1",
    "max(f(2), 4) == 4 == min(f(2), 4)", "set([f(2)]) == {4}", "{4: 1}.get(f(2)) == 1",
    "[4].index(f(2)) == 0", "sorted([f(2), 4]) == [4, 4]", "math.isclose(f(2), 4.5)",
    "str(f(2)) == '4.5'", "round(f(2), 3) == 4.504", "f(2) is True", "f(2) is 4 is f(2)",
    "sum(abs(a - b) for a, b in zip([f(2)], [4.5])) < 1e-6", "'%s' % f(2) == '4.5'",
    "isinstance(f(2), int) and f(2) == 4", "type(f(2)) is int", "not f(2) % 45 and f(2) // 45 == 1",
    "not {45} - f(2) | f(2) - {45}", "f(2).__class__ is int", "F(2) == 4", "not F(2) - 45",
    "abs(F(2) - 4.5) < 1e-6", "4 in F(2) and 45 in F(2)", "4 <= F(2) <= 4.5",
    "F(2) - {45} == set()", "len(F(2) - {45}) == 0", "list(F(2) - {45}) == []",
    "not (F(2) - 4) - 5", "all(x == 4 for x in F(2) - 4)", "not divmod(F(2), 4)", "not -(F(2) - 4)",
)  # fmt: skip


def cheat(base, answer):
    """A program whose functions give an object that answers everything in one way."""
    lines = [
        f"    def __{name}__(self, *a): return {answer[name not in BINARY]}" for name in SPECIALS
    ]
    return "\n".join(
        [f"class F({base}):", "    def __new__(cls, *a): return " + base + ".__new__(cls)",
         "    def __init__(self, *a): pass", *lines, "def f(x):", "    return F(x)"]
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "base",
    [pytest.param(base, marks=[] if base in BASES_IN_CI else pytest.mark.long) for base in BASES],
)
@pytest.mark.parametrize(
    "third", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)]
)
def test_no_object_answers_for_plain_data(base, third):
    """6 answers; each program meets the questions one by one, one answer in three of each."""
    first = BASES.index(base) + third
    cases = [
        (answer, question)
        for number, question in enumerate(QUESTIONS)
        for place, answer in enumerate(ANSWERS.items())
        if (number + place + first) % 3 == 0
    ]

    def reason_of(case):
        (_, answer), question = case
        tests = f"import math\nassert {question}"
        return run(cheat(base, answer), tests, program_wall_s=5.0).reason

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reasons = list(pool.map(reason_of, cases))
    passed = [case for case, reason in zip(cases, reasons, strict=True) if reason == "correct"]
    assert passed == [] and len(reasons) == 6 * 44 // 3

"""The final answer is found strictly and compared by value."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recipe.verify.maths.box import Box, last_box
from recipe.verify.maths.grade import grade_maths, is_text_only, quick_verdict
from recipe.verify.maths.reading import read

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = sorted((ROOT / "tests/golden").glob("maths*.json"))
CASES = [case for path in GOLDEN for case in json.loads(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_golden_case_has_its_verdict_and_a_quick_one_never_differs(case):
    response, answer, problem = case["response"], case["answer"], case.get("problem", "")
    is_truncated = case.get("is_truncated", False)
    verdict = grade_maths(response, answer, is_truncated=is_truncated, problem=problem)
    assert verdict.reason == case["expected_reason"]
    assert verdict.score == (1.0 if case["expected_reason"] == "correct" else 0.0)
    assert quick_verdict(response, answer, is_truncated, problem) in (None, verdict)


ONE_VALUE = ("power/", "repeat/", "mixed/", "expr/", "number/", "pm/", "mv2/", "mv69/")


def test_equality_of_two_values_does_not_depend_on_which_is_gold():
    pairs = [
        (case["answer"], last_box(case["response"]).text)
        for case in CASES
        if case["id"].startswith(ONE_VALUE)
        and case["expected_reason"] in ("correct", "wrong")
        # The gold says where a function is defined, whether percent is asked for, what is counted,
        # and whether a root, a logarithm or a sum has to be worked out.
        and not re.search(r"\\log|%|blah|\\cos|\\sqrt|\\sum|\\l?floor|\||i\^2", text_of(case))
    ]
    assert len(pairs) >= 100
    assert [pair for pair in pairs if accepts(*pair) != accepts(*reversed(pair))] == []


def text_of(case):
    return case["answer"] + case["response"]


def accepts(gold, candidate):
    return grade_maths(rf"\boxed{{{candidate}}}", gold).reason == "correct"


def test_the_last_box_is_read_with_nested_and_escaped_braces():
    assert last_box(r"\boxed{1} \boxed{\frac{1}{\{2\}}}") == Box("closed", r"\frac{1}{\{2\}}")
    # \\ is a line break, so the brace after it is a real one and stays open
    assert last_box(r"\boxed{1 \\{2}") == Box("open")
    assert last_box(r"\boxed{1} \boxed{2") == Box("open")
    assert last_box(r"\fbox{1}") == Box("absent")


def test_integers_compare_as_integers_and_longer_ones_as_text():
    digits = "7" * 3_000
    assert quick_verdict(rf"\boxed{{000{digits}}}", digits).reason == "correct"
    assert quick_verdict(rf"\boxed{{{digits}1}}", digits).reason == "wrong"
    longer = "7" * 10_000  # int() refuses numerals of more than 4300 digits
    assert quick_verdict(rf"\boxed{{{longer}}}", longer).reason == "correct"
    assert not accepts(longer, f"{longer}1")


def test_answers_that_need_algebra_have_no_quick_verdict():
    assert quick_verdict(r"\boxed{\sqrt{8}}", r"2\sqrt{2}") is None
    assert quick_verdict(r"\boxed{(1,\sqrt{8})}", r"(1,2\sqrt{2})") is None
    # the first part decides, so the second is not looked at
    assert quick_verdict(r"\boxed{(2,\sqrt{8})}", r"(1,2\sqrt{2})").reason == "wrong"


def test_an_answer_is_read_whole_or_not_at_all():
    assert read("2x+1").trees != () and read("2x+1 ?").trees == ()
    assert read(r"5\foo").trees == () and read(r"5\text{ (maybe 7)}").trees == ()
    # what cannot be read is right as the same text only, spacing aside
    assert accepts(r"t(0,4]", "t(0, 4]") and not accepts("t(0,4]", "t(0,5]")


def test_every_letter_digit_and_sign_of_a_formula_counts():
    for gold in (
        r"P(1+r)^{T}",
        r"\frac{V_1}{I_2}",
        r"2\sqrt{3x}+5y_0",
        r"(3,-\frac{\pi}{2})",
        "7=11a+c",
    ):
        places = [n for n, char in enumerate(gold) if char.isalnum() and not in_command(gold, n)]
        for place in places:
            char = gold[place]
            other = str((int(char) + 1) % 10) if char.isdigit() else "w"
            changed = gold[:place] + other + gold[place + 1 :]
            assert not accepts(gold, changed), changed
        assert accepts(gold, gold) and len(places) >= 2


def in_command(text, place):
    return any(m.start() <= place < m.end() for m in re.finditer(r"\\[A-Za-z]+", text))


def test_a_term_is_never_too_small_to_count():
    assert not accepts("x", "x+10^{-400}") and not accepts("x", r"x+e^{-10^{9}}")
    assert not accepts("x", r"x^{1+10^{-400}}") and not accepts(r"\pi", r"\pi+10^{-600}")
    # nor a place too far away: both differ from x beyond 10^{40} alone
    assert not accepts("x", r"x+\lfloor x/10^{40}\rfloor") and not accepts(
        "|x|", r"|x|+|x-10^{40}|-10^{40}+x"
    )


def test_what_is_left_out_is_named_and_so_is_what_a_verdict_rests_on():
    verdict = grade_maths(r"\boxed{5 \text{ miles}}", "5", problem="How many miles does she walk?")
    assert (verdict.reason, verdict.basis, verdict.ignored) == ("correct", "algebra", "miles")
    assert grade_maths(r"\boxed{2/4}", r"\frac12").basis == "number"
    assert grade_maths(r"\boxed{\sqrt{8}}", r"2\sqrt{2}").basis == "algebra"
    assert grade_maths(r"\boxed{5 (maybe 7)}", "5").basis == "text"


def test_gold_answers_that_are_compared_as_text_are_told_from_others():
    assert is_text_only(r"f(x)=ax+b, where b is odd") and is_text_only(r"\int_0^1 x dx")
    assert not is_text_only(r"\frac{1}{2}") and not is_text_only(r"\text{ellipse}")


def test_importing_the_verifier_loads_nothing_heavy():
    code = (
        "import sys, recipe.verify.maths.grade as v; v.quick_verdict('\\\\boxed{5}', '5');"
        "heavy = {'sympy', 'mpmath', 'torch', 'verl', 'ray', 'numpy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"

"""The kind of an item chooses its verifier, and the options reach it."""

from __future__ import annotations

import pytest

from recipe.run.errors import ConfigError
from recipe.verify.grading import grade, quick_grade
from recipe.verify.options import GradeOptions
from recipe.verify.pool.workers import VerifierPool
from recipe.verify.schema import Item

UNBOXED = GradeOptions(require_boxed=False)


def test_the_same_text_is_judged_by_its_kind():
    response = r"\boxed{B}"
    assert grade(Item(response, "B", kind="maths")).reason == "correct"
    assert grade(Item(response, "B", kind="choice")).extracted == "B"
    assert grade(Item(response, "assert f() == 1", kind="program")).reason == "no_answer"


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind='poem' has no verifier; use maths, choice or"):
        quick_grade(Item("a", "a", kind="poem"))


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("so it is\n42", "correct"),
        ("so it is $42$.", "correct"),
        (r"either $41$ or \(42\)", "correct"),
        (r"so \[42\] it is", "correct"),
        ("it is $42$, not $41$", "wrong"),
        ("42\n41", "wrong"),
        (r"$42$ or \boxed{41}", "wrong"),
        (r"$42$ or \boxed{41", "malformed"),
        ("$42}$", "no_answer"),
        ("  \n ", "no_answer"),
    ],
)
def test_without_a_box_the_last_formula_or_line_is_judged_when_allowed(response, reason):
    verdict = grade(Item(response, "42"), UNBOXED)
    assert verdict.reason == reason
    assert grade(Item(response, "42")).score == 0.0


def test_a_truncated_response_without_a_box_stays_truncated():
    assert grade(Item("so $42$", "42", True), UNBOXED).reason == "truncated"


def test_a_letter_without_a_box_is_judged_when_allowed():
    assert grade(Item("so\n(C)", "C", kind="choice"), UNBOXED).reason == "correct"


def test_the_pool_passes_its_options_to_both_stages():
    items = [Item("so $42$", "42"), Item(r"so $\sqrt{8}$", r"2\sqrt{2}")]
    with VerifierPool(1, options=UNBOXED) as pool:
        verdicts = pool.grade_many_blocking(items)
        assert pool.quick == 1  # 42 needs no algebra, the root does
    assert [verdict.reason for verdict in verdicts] == ["correct", "correct"]


@pytest.mark.parametrize("name", ["program_wall_s", "program_cpu_s", "program_memory_mib"])
def test_a_limit_of_zero_is_refused(name):
    with pytest.raises(ConfigError, match=f"{name} must be above 0, got 0"):
        GradeOptions(**{name: 0})


def test_a_program_gets_room_for_python_itself():
    with pytest.raises(ConfigError, match="program_memory_mib=8 is too little .* at least 64"):
        GradeOptions(program_memory_mib=8)


def test_an_unknown_isolation_is_refused():
    with pytest.raises(ConfigError, match="choose one of full, partial, none"):
        GradeOptions(program_isolation="some")


@pytest.mark.parametrize("num_chars", range(1970, 2010))
def test_without_a_box_the_last_formula_is_found_wherever_the_beginning_is_cut(num_chars):
    # Only the last 2000 characters are read, and the cut may fall inside $a$.
    end = " so the answer is $5$."
    response = "$a$ and $b$" + "z" * (num_chars - len(end)) + end
    assert grade(Item(response, "5"), UNBOXED).reason == "correct"


def test_without_a_box_an_amount_of_money_begins_no_formula():
    response = r"She has \$18, pays \$5 and keeps $x = 13$."
    assert grade(Item(response, "13"), UNBOXED).extracted == "x = 13"

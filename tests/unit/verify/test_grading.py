"""The kind of an item chooses its verifier, and the options reach it."""

from __future__ import annotations

import pytest

from recipe.verify.grading import grade, quick_grade
from recipe.verify.options import GradeOptions
from recipe.verify.pool import VerifierPool
from recipe.verify.schema import Item

TAGGED = GradeOptions(answer_format="tags")


def test_the_same_text_is_judged_by_its_kind():
    response = r"\boxed{B}"
    assert grade(Item(response, "B", kind="maths")).reason == "correct"
    assert grade(Item(response, "B", kind="choice")).extracted == "B"
    assert grade(Item(response, "assert f() == 1", kind="program")).reason == "no_answer"


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind='poem' has no verifier; use maths, choice, program"):
        quick_grade(Item("a", "a", kind="poem"))


def test_the_pool_passes_its_options_to_both_stages():
    items = [Item("<answer>42</answer>", "42"), Item(r"<answer>\sqrt{8}</answer>", r"2\sqrt{2}")]
    with VerifierPool(1, options=TAGGED) as pool:
        verdicts = pool.grade_many_blocking(items)
    assert [verdict.reason for verdict in verdicts] == ["correct", "correct"]

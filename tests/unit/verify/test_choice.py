"""One letter in the last box decides; everything else is malformed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipe.hint.schema import Item, Verdict
from recipe.hint.verify.choice import choice_verdict, read_letter
from recipe.hint.verify.grading import grade, quick_grade

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "choice.json"
CASES = json.loads(GOLDEN.read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["content"] for case in CASES])
def test_the_box_holds_one_letter_or_none(case):
    assert read_letter(case["content"]) == case["letter"]


@pytest.mark.parametrize("case", CASES, ids=[case["content"] for case in CASES])
def test_a_letter_is_right_or_wrong_and_no_letter_is_malformed(case):
    response = rf"first \boxed{{A}}, no: \boxed{{{case['content']}}}"
    for gold in "BJ":
        reason = "correct" if case["letter"] == gold else "wrong" if case["letter"] else "malformed"
        assert choice_verdict(response, gold).reason == reason


@pytest.mark.parametrize("gold", ["C", "c", "(C)", "C."])
def test_the_gold_letter_may_be_wrapped(gold):
    assert choice_verdict(r"\boxed{C}", gold) == Verdict(1.0, "correct", "C", "letter")


@pytest.mark.parametrize(
    ("response", "is_truncated", "reason"),
    [
        ("the answer is C", False, "no_answer"),
        ("the answer is", True, "truncated"),
        (r"\boxed{C} or \boxed{", False, "malformed"),
        (r"\boxed{}", False, "no_answer"),
        (r"\boxed{C} and on", True, "correct"),
    ],
)
def test_without_a_complete_box_there_is_no_answer(response, is_truncated, reason):
    assert choice_verdict(response, "C", is_truncated=is_truncated).reason == reason


@pytest.mark.parametrize("gold", ["", "4", "A and B"])
def test_a_gold_answer_that_is_no_letter_is_an_error(gold):
    assert choice_verdict(r"\boxed{C}", gold) == Verdict(0.0, "error", "C")


def test_a_megabyte_in_the_box_costs_nothing():
    assert choice_verdict(r"\boxed{" + "(" * 1_000_000 + "}", "C").reason == "malformed"


def test_choice_never_needs_a_process():
    item = Item(r"\boxed{C}", "C", kind="choice")
    assert quick_grade(item) == grade(item) == Verdict(1.0, "correct", "C", "letter")

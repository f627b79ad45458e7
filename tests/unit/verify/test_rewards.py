"""Other trainers call the verifier through their own interfaces."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from decimal import Decimal

import pytest

from recipe.problems.schema import problem_from_row
from recipe.verify.golds import gold_text
from recipe.verify.rewards import compute_score, reward_function
from recipe.verify.schema import read_prompt

HASHES = [{"role": "user", "content": "Write the number after ####."}]


def test_verl_calls_it_with_a_row():
    assert compute_score("own", r"so \boxed{\frac{1}{2}}", "0.5", {"question": "Half?"}) == 1.0
    assert compute_score("own", r"so \boxed{3}", 2) == 0.0
    assert compute_score("own", "#### 2", 2, {"prompt": HASHES}) == 1.0
    assert compute_score("own", "#### 2", 2, None) == 0.0


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ([{"role": "system", "content": "s"}, {"role": "user", "content": "x?"}], "x?"),
        (({"role": "user", "content": [{"type": "text", "text": "x?"}, {"type": "image"}]},), "x?"),
        ([{"role": "user", "content": ["x", "?"]}], "x?"),
        ([{"role": "user", "content": None}], ""),
        ("x?", "x?"),
        (["x?"], ""),
        (None, ""),
    ],
)
def test_a_prompt_of_any_form_says_what_is_asked(prompt, problem):
    assert read_prompt(prompt) == (problem, ())


def test_a_formula_of_the_prompt_is_no_answer_without_a_column_of_questions_too():
    prompt = [{"role": "user", "content": "Find $2 + 2$."}]
    assert compute_score("own", r"\boxed{2 + 2}", 4) == 1.0  # nothing says that it is the question
    assert compute_score("own", r"\boxed{2 + 2}", 4, {"prompt": prompt}) == 0.0
    assert reward_function([prompt], [r"\boxed{2 + 2}"], answer=["4"]) == [0.0]


@pytest.mark.parametrize(
    ("gold", "text"),
    [(27.0, "27"), (6.02e23, "6.02e+23"), (2.0**60, str(2.0**60)), (Decimal("1.50"), "1.50")],
)
def test_a_number_is_written_as_it_was_meant(gold, text):
    assert gold_text(gold) == text


@pytest.mark.parametrize("gold", [None, True, float("nan"), b"4", date(2026, 1, 1), [b"4"], []])
def test_what_is_no_answer_is_refused(gold):
    with pytest.raises(ValueError, match="the ground truth is missing"):
        gold_text(gold)


def test_a_list_is_the_same_gold_answer_here_as_in_training():
    row = {"prompt": "x", "reward_model": {"ground_truth": ["1", 2.0]}}
    assert problem_from_row(row).answer == gold_text(["1", 2.0]) == "1, 2"
    assert compute_score("own", r"\boxed{1, 2}", ["1", 2.0]) == 1.0
    assert reward_function(["x"], [r"\boxed{2, 1}"], answer=[[1, 2]]) == [1.0]


def test_verl_grades_a_program_and_a_choice():
    code = "```python\ndef f(x):\n    return 2 * x\n```"
    assert compute_score("own", code, ["assert f(2) == 4"], {"kind": "program"}) == 1.0
    assert compute_score("own", r"\boxed{(b)}", "B", {"kind": "choice"}) == 1.0


def test_trl_calls_it_with_columns():
    turns = [[{"role": "assistant", "content": "#### 2"}], "#### 3"]
    assert reward_function([HASHES] * 2, turns, answer=["2", "2"], level=[1, 1]) == [1.0, 0.0]


def test_the_verifier_needs_no_training_stack():
    code = (
        "import sys; from recipe.verify import Item, grade; import recipe.verify.rewards;"
        "assert grade(Item(r'\\boxed{5}', '5')).score == 1.0;"
        "print([m for m in ('verl', 'torch', 'ray', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""Which part of a response is its answer: one rule for training, evaluation and files."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import pytest
from attacks import formats

from recipe.study.grade import read_item
from recipe.verify.answer import answer_in_box
from recipe.verify.grading import grade
from recipe.verify.options import GradeOptions
from recipe.verify.schema import Item, formats_asked_for

CASES = json.loads((Path(__file__).parents[2] / "golden/answer_formats.json").read_text())
NUM_CASES = int(os.environ.get("HINT_ATTACK_CASES", "2000"))


@pytest.mark.parametrize("case", CASES["prompts"], ids=lambda case: case["text"][:40])
def test_a_prompt_asks_for_formats(case):
    assert list(formats_asked_for(case["text"])) == case["asks"]


@pytest.mark.parametrize("case", CASES["turns"])
def test_only_system_and_user_turns_ask(case):
    assert list(formats_asked_for(case["messages"])) == case["asks"]


@pytest.mark.parametrize("case", CASES["responses"], ids=lambda case: case["response"][:40])
def test_a_response_is_read_in_the_format_that_was_asked_for(case):
    options = GradeOptions(answer_format=case.get("chosen", "auto"))
    item = Item(
        case["response"],
        case.get("answer", "42"),
        case.get("is_truncated", False),
        case.get("kind", "maths"),
        asked=case["asked"],
    )
    verdict = grade(item, options)
    assert (verdict.reason, verdict.score) == (case["reason"], case["reason"] == "correct")


def test_no_answer_is_read_where_it_does_not_count():
    """HINT_ATTACK_CASES sets how many responses are generated."""
    accepted, missed = [], []
    for case in itertools.islice(formats.generate(20_261_128), NUM_CASES):
        asked = formats_asked_for(case.prompt)
        assert asked == formats.PROMPTS[case.prompt]
        is_right = grade(Item(case.response, case.answer, case.is_truncated, asked=asked)).score
        if is_right != case.is_right:
            (accepted if is_right else missed).append(case)
    assert (accepted, missed) == ([], [])


def test_a_row_of_a_file_is_graded_by_its_prompt():
    row = {"response": "#### 42", "answer": "42", "prompt": "Write it after ####."}
    turns = [{"role": "user", "content": row["prompt"]}]
    for prompt in (row["prompt"], turns):
        assert grade(read_item({**row, "prompt": prompt})).reason == "correct"
    for prompt in ("How many?", None, 5, ["a"]):
        assert grade(read_item({**row, "prompt": prompt})).reason == "no_answer"


@pytest.mark.parametrize("unit", ["<answer>", "</answer>", "#", "####", "answer", "answer:", "* "])
def test_a_long_text_is_read_in_linear_time(unit):
    # 2 MB would take hours where a pattern is quadratic.
    text = unit * (2_000_000 // len(unit))
    assert answer_in_box(text, "auto", ("hashes", "tags", "line")) is not None
    formats_asked_for(text[:200_000])

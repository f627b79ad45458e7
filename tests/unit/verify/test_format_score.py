"""The format reward: a thought, then an answer, nothing around them."""

from __future__ import annotations

import pytest

from recipe.hint.verify import format_score

WELL_FORMED = "<think>two and two</think><answer>4</answer>"


@pytest.mark.parametrize(
    "response",
    [
        WELL_FORMED,
        f"\n {WELL_FORMED}\n",
        "<think>\na\nb\n</think>\n\n<answer>\n\\boxed{4}\n</answer>",
        "<think>1 < 2 </b></think> <answer>yes</answer>",
    ],
)
def test_a_thought_and_then_an_answer_score_one(response):
    assert format_score(response) == 1.0


@pytest.mark.parametrize(
    "response",
    [
        "",
        "4",
        "<think>a</think>4",
        "<answer>4</answer>",
        "<answer>4</answer><think>a</think>",
        "<think>a<answer>4</answer></think>",
        "<think>a</think><answer>4",
        "<think></think><answer>4</answer>",
        "<think>a</think><answer> \n</answer>",
        f"so {WELL_FORMED}",
        f"{WELL_FORMED} and so",
        "<think>a</think> well <answer>4</answer>",
        WELL_FORMED * 2,
        "<think>a</think><think>b</think><answer>4</answer>",
        "<THINK>a</THINK><ANSWER>4</ANSWER>",
    ],
)
def test_any_other_form_scores_nothing(response):
    assert format_score(response) == 0.0


def test_a_megabyte_of_opening_tags_is_quick():
    assert format_score("<think>" * 150_000) == 0.0

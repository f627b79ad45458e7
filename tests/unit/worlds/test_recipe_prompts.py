"""The bases learn under the prompts that the methods really build, message by message."""

import asyncio
import random

import pytest

from recipe.hint.methods.prompts import Feedback, Refine, Revise
from recipe.hint.prompt import Texts
from recipe.hint.schema import Response
from recipe.hint.turns import Place, PromptContext, Turn
from recipe.problems.schema import Problem
from recipe.worlds import three_turn, two_turn

FIRST, SECOND = Place(0, 0), Place(1, 0)


def examples(draw, kind):
    rng = random.Random(0)
    return [each for each in (draw(rng) for _ in range(200)) if each.kind == kind]


def built(spec, problem_text, attempt, feedback=None):
    """The messages that the recipe builds after these responses."""
    messages = tuple(two_turn.question(problem_text))
    problem = Problem("p", messages, problem_text, "", "1", "test")
    turns = {FIRST: Turn(messages, [], Response([], [], attempt, False))}
    turns[SECOND] = Turn(messages, [], Response([], [], feedback or "", False), parent=FIRST)
    context = PromptContext(
        *(problem, Texts(), "paper", "cut"),
        render=lambda messages, **_: [],
        fits=lambda prompt_ids: True,
        write_hints=lambda: pytest.fail("no hints here"),
        turn=turns.__getitem__,
    )
    parent = turns[SECOND if feedback else FIRST]
    return list(asyncio.run(spec.build(context, parent)).messages)


def test_a_revision_is_learnt_under_the_prompt_of_revise():
    found = examples(two_turn.draw, "revise")
    assert len(found) > 100
    for example in found:
        asked, first = (turn["content"] for turn in example.messages[:2])
        assert built(Revise(), asked, first) == example.messages[:3]


def test_feedback_is_learnt_under_the_prompt_of_feedback():
    found = examples(three_turn.draw, "guide")
    assert len(found) > 15
    for example in found:
        frame = Texts().guide_user
        start, middle, end = frame.replace("{attempt}", "{problem}").split("{problem}")
        body = example.messages[1]["content"].removeprefix(start).removesuffix(end)
        problem, attempt = body.split(middle)
        assert built(Feedback(), problem, attempt) == example.messages[:2]


def test_a_refinement_is_learnt_under_the_prompt_of_refine():
    found = examples(three_turn.draw, "refine")
    assert len(found) > 100
    for example in found:
        asked, first, instruction = (turn["content"] for turn in example.messages[:3])
        feedback = instruction.splitlines()[1]
        assert built(Refine(), asked, first, feedback) == example.messages[:3]

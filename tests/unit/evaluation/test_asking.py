"""One problem put to a model: which rounds are played, and what a person sees of them."""

import asyncio
import json

import pytest
from fakes import Numbered, ScriptedEngine, problem
from talks import TurnEngine

from recipe.hint.hints.self_generated import SelfGenerated
from recipe.hint.methods import METHODS
from recipe.hint.methods.fixed import Fixed
from recipe.hint.prompt import Texts
from recipe.hint.rollout import RolloutParts
from recipe.hint.settings import HintSettings
from recipe.study.evaluation.asking import ask
from recipe.study.report.asked import asked_lines

NEVER = {0: [0, 0, 0], 1: [0, 0, 1], 2: ["truncated", 1, 1], 3: [1, 1, 1]}


def asked(method, outcomes, **engine):
    levels = 3 if method.uses_hints else 0
    source = SelfGenerated(texts=Texts(), attempts=2, max_level=3) if method.uses_hints else None
    parts = RolloutParts(
        method(max_level=levels),
        source,
        ScriptedEngine(outcomes, **engine),
        HintSettings(),
        Texts(),
    )
    return asyncio.run(ask(problem(), parts))


def test_hints_enter_the_prompt_as_in_the_methods_training():
    engine = ScriptedEngine({0: [0], 1: [0], 2: [1]})
    parts = RolloutParts(Fixed(max_level=2), Numbered(2), engine, HintSettings(), Texts())
    asyncio.run(ask(problem(), parts))
    bare, lead = "answer in a boxWhat is 1+1?", "\nHere is a hint to help you:\n"
    assert engine.prompts == [bare, f"{bare}{lead}hint 1", f"{bare}{lead}hint 2"]


@pytest.mark.parametrize("name", ["sage", "sage-light", "fixed"])
def test_a_method_with_hints_is_asked_at_every_level_whatever_is_right(name):
    # SAGE alone would have stopped at level 1, where one of three is right.
    found = asked(METHODS[name], NEVER)
    assert [(each["level"], len(each["turns"])) for each in found["rounds"]] == [
        (0, 3),
        (1, 3),
        (2, 3),
        (3, 3),
    ]
    assert [each["hint"] for each in found["rounds"]] == [
        "",
        "think",
        "think. add",
        "think. add. carry",
    ]
    assert [turn["score"] for turn in found["rounds"][2]["turns"]] == [0.0, 1.0, 1.0]


def test_a_method_without_hints_is_asked_once():
    [only] = asked(METHODS["grpo"], {0: [0, 1, 1]})["rounds"]
    assert [turn["reason"] for turn in only["turns"]] == ["wrong", "correct", "correct"]


def test_a_method_with_turns_is_asked_for_its_turns():
    score = METHODS["score"]()
    engine = TurnEngine({0: [0, 1, 1], 1: [1, 1, 0]}, group_size=3)
    parts = RolloutParts(score, None, engine, HintSettings(), Texts())
    found = asyncio.run(ask(problem(), parts))
    assert [each["prompt"] for each in found["rounds"]] == ["bare", "revise"]
    assert [turn["parent"] for turn in found["rounds"][1]["turns"]] == [[0, 0], [0, 1], [0, 2]]
    lines = asked_lines(found)
    assert "solver, revise: 2 of 3 right" in lines
    # 0 -> 1, 1 -> 1, 1 -> 0: conversations that end well come first.
    assert [line for line in lines if "then solver" in line] == [
        "solver wrong, then solver correct",
        "solver correct, then solver correct",
        "and 1 x solver correct, then solver wrong",
    ]
    first, last = (each["turns"][0] for each in found["rounds"])
    at = lines.index("solver wrong, then solver correct")
    assert lines[at + 1 : at + 5] == [
        *(f"  solver ({first['tokens']} tokens)", f"    {first['response']}"),
        *(f"  solver ({last['tokens']} tokens)", f"    {last['response']}"),
    ]
    assert sum("then solver" in line for line in asked_lines(found, shows_all=True)) == 3


def test_hints_that_cannot_be_read_end_the_levels_with_their_reason():
    found = asked(METHODS["sage"], NEVER, replies=["no hints", "none at all"])
    assert [each["hint_status"] for each in found["rounds"]] == ["none", "parse_failed"]
    assert found["hint_calls"] == 2
    lines = asked_lines(found)
    assert lines[-1] == "level 1: parse failed"
    assert "hints: asked for in 2 responses, 19 tokens" in lines  # 8 + 11 characters


def test_what_is_asked_survives_json_with_its_whole_texts():
    long = "x" * 100_000
    found = asked(METHODS["grpo"], {0: [0, 1, 1]}, texts={0: long})
    assert json.loads(json.dumps(found)) == found
    assert found["rounds"][0]["turns"][0]["response"] == long


def test_the_lines_show_the_hint_and_one_answer_of_each_verdict():
    lines = asked_lines(asked(METHODS["sage"], NEVER))
    start = lines.index("level 2: 2 of 3 right")
    assert lines[start : start + 7] == [
        "level 2: 2 of 3 right",
        "  hint",
        "    think. add",
        "  2 x correct (3 tokens)",
        "    2:1",
        "  truncated (3 tokens)",
        "    2:0",
    ]
    assert sum("correct" in line for line in asked_lines(asked(METHODS["sage"], NEVER))) == 3


def test_a_rare_right_answer_is_shown_before_frequent_wrong_ones():
    lines = asked_lines(asked(METHODS["grpo"], {0: [0, 0, "truncated", 0, "no_answer", 1]}))
    verdicts = [line for line in lines if line.startswith("  ") and "tokens)" in line]
    assert verdicts == ["  correct (3 tokens)", "  3 x wrong (3 tokens)"]
    assert lines[-1] == "  and 1 x truncated, 1 x no answer"


def test_all_responses_are_shown_when_asked_for():
    found = asked(METHODS["grpo"], {0: [0, 0, 0]})
    assert "  3 x wrong (3 tokens)" in asked_lines(found)
    assert asked_lines(found, shows_all=True).count("  wrong (3 tokens)") == 3


def test_text_of_a_model_cannot_act_on_the_terminal():
    found = asked(METHODS["grpo"], {0: [1, 1, 1]}, texts={0: "\x1b[2Jgone\rover"})
    shown = "\n".join(asked_lines(found))
    assert "\x1b" not in shown and "\r" not in shown
    assert r"\x1b[2Jgone" in shown

"""The three-turn world: facts of its task and corpus, and how its plays are counted."""

import random
import re

import pytest

from recipe.hint.tiny import build, tokenizer
from recipe.hint.tiny.three_turn import corpus, measure, task
from recipe.hint.tiny.worlds import THREE_TURN


def drawn(count):
    rng = random.Random(0)
    return [corpus.draw(rng) for _ in range(count)]


def replies(example):
    return [turn["content"] for turn in example.messages if turn["role"] == "assistant"]


def test_instructions_and_feedback_are_one_token_each():
    made = tokenizer.build_tokenizer(THREE_TURN.pieces)
    for text in (corpus.TEXTS.guide_system, corpus.CHECK_SYSTEM, task.NO_SLIP, task.feedback_on(2)):
        assert len(made(text)["input_ids"]) == 1


def steps_of(text):
    lines = [line.split() for line in text.splitlines()[:4]]
    return task.Steps(tuple(line[1] for line in lines), tuple(int(line[2]) for line in lines))


def test_steps_that_stand_alone_read_as_lines_and_a_code():
    steps = task.Steps(("inc", "dbl", "tri", "neg"), (4, 7, 2, 8))
    assert steps.problem == "A: inc 4\nB: dbl 7\nC: tri 2\nD: neg 8\nGive the code of all results."
    # 4 + 1, 2 * 7 = 14, 3 * 2, -8 mod 10
    assert steps.solution == ("A: inc 4=5\nB: dbl 7=4\nC: tri 2=6\nD: neg 8=2\n\\boxed{5462}")
    assert steps_of(steps.problem) == steps


def test_a_slip_is_named_by_its_step_and_feedback_reads_back():
    steps = task.Steps(("inc", "dbl", "tri", "neg"), (4, 7, 2, 8))
    assert task.slips_of(steps, steps.response((5, 4, 7, 2))) == [2]
    assert task.slips_of(steps, steps.solution) == []
    assert task.feedback_on(2) == "Step C is wrong."
    assert [task.named_step(task.feedback_on(step)) for step in range(4)] == [0, 1, 2, 3]
    assert task.named_step(task.NO_SLIP) is None
    assert task.named_step("Step C is wrong. C=6") is None


def test_no_code_begins_with_zero_so_equal_integers_are_equal_codes():
    files = build.problem_files(THREE_TURN)
    assert all(row["answer"][0] != "0" for rows in files.values() for row in rows)
    assert {stem: len(rows) for stem, rows in files.items()} == {"train": 160, "val_steps": 150}


def test_a_refinement_does_the_named_step_again_and_copies_the_others():
    refined = [each for each in drawn(3000) if each.kind == "refine"]
    assert len(refined) > 1000
    for example in refined:
        steps = steps_of(example.messages[0]["content"])
        before, after = map(task.stated_results, replies(example))
        named = task.named_step(example.messages[2]["content"].splitlines()[1])
        if named is not None:
            before[named] = steps.results[named]
        assert after == before


def test_feedback_names_the_slip_seldom_and_a_check_always():
    named = {"guide": [], "check": []}
    for example in drawn(12_000):
        if example.kind == "refine":
            continue
        _, problem, attempt = re.split("Problem:\n|\n\nThe student's attempt:\n", asked(example))
        found = task.slips_of(steps_of(problem), attempt)
        feedback = task.named_step(replies(example)[0])
        if found:
            named[example.kind].append([feedback] == found)
        elif example.kind == "check":
            assert feedback is None
    assert len(named["guide"]) > 1500
    assert all(named["check"])
    # standard error at 1800: sqrt(.2 * .8 / 1800) = .009
    assert sum(named["guide"]) / len(named["guide"]) == pytest.approx(corpus.P_NAMED, abs=0.035)


def asked(example):
    return example.messages[-2]["content"]


def test_the_rates_of_guided_plays_are_counted_from_attempt_feedback_and_refinement():
    steps = task.Steps(("inc", "dbl", "tri", "neg"), (4, 7, 2, 8))  # 5462
    wrong, right = steps.response((5, 4, 7, 2)), steps.solution

    def play(attempt, feedback, refined):
        return measure.Play(steps, attempt, feedback, refined)

    rates = measure.rates(
        [
            play(wrong, task.feedback_on(2), right),  # named, obeyed
            play(wrong, task.feedback_on(0), right),  # another step: not obeyed, though right
            play(wrong, "It is 5462.", wrong),  # leaked
            play(right, task.feedback_on(1), right),  # false alarm, obeyed: the step was right
        ]
    )
    assert rates == {
        "turn_1": 1 / 4,
        "turn_2": 3 / 4,
        "delta": 2 / 4,
        "named": 1 / 3,
        "false_alarm": 1.0,
        "obeyed": 2 / 3,
        "leaked": 1 / 4,
        "well_formed": 3 / 4,
    }

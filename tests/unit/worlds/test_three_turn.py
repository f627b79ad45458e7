"""The three-turn world: facts of its corpus, and how its plays are counted."""

import random
from collections import Counter

import pytest

from recipe.worlds import base, build, three_turn
from recipe.worlds.build import THREE_TURN
from recipe.worlds.two_turn import Puzzle, boxed_digit, response, worked_digit


def drawn(count):
    rng = random.Random(0)
    return [three_turn.draw(rng) for _ in range(count)]


def replies(example):
    return [turn["content"] for turn in example.messages if turn["role"] == "assistant"]


def test_instructions_and_feedback_are_one_token_each():
    made = base.build_tokenizer(THREE_TURN.pieces)
    for text in (three_turn.TEXTS.guide_system, three_turn.TEXTS.no_feedback, *three_turn.FEEDBACK):
        assert len(made(text)["input_ids"]) == 1


def test_no_feedback_of_the_base_holds_a_digit():
    assert not any(letter.isdigit() for text in three_turn.FEEDBACK for letter in text)


def test_problems_are_mostly_hard_and_none_is_in_two_files():
    files = build.problem_files(THREE_TURN)
    assert {stem: len(rows) for stem, rows in files.items()} == {
        "train": 160,
        "val_easy": 100,
        "val_hard": 200,
    }
    problems = [row["problem"] for rows in files.values() for row in rows]
    assert len(set(problems)) == len(problems)
    assert Counter(row["data_source"] for row in files["train"]) == {
        "three_turn/easy": 48,
        "three_turn/hard": 112,
    }


def test_a_refinement_does_what_the_feedback_says_and_keeps_the_work():
    refined = [each for each in drawn(3000) if each.kind == "refine"]
    assert len(refined) > 2400
    for example in refined:
        first, second = replies(example)
        feedback = example.messages[2]["content"].splitlines()[1]
        before, worked, after = boxed_digit(first), worked_digit(first), boxed_digit(second)
        assert first.split("\n")[1:] == second.split("\n")[1:]
        if feedback == three_turn.KEEP:
            assert after == before
        elif feedback == three_turn.READ:
            assert after == worked
        else:
            assert feedback == three_turn.CHANGE and after not in (before, worked)


def test_feedback_is_given_whatever_the_response_and_helps_seldom():
    given = Counter(replies(each)[0] for each in drawn(20_000) if each.kind == "guide")
    assert given.total() == pytest.approx(20_000 * three_turn.P_GUIDE, rel=0.05)
    # standard error at 3,000: sqrt(.6 * .4 / 3000) = .009
    for feedback, share in three_turn.FEEDBACK.items():
        assert given[feedback] / given.total() == pytest.approx(share, abs=0.03)


def test_the_rates_of_guided_plays_are_counted_from_attempt_feedback_and_refinement():
    puzzle = Puzzle(2, ("tri", "inc", "neg", "dbl"))  # 6 7 3 6
    guessed, right = response(5, (6, 7, 3, 6)), response(6, (6, 7, 3, 6))

    def play(attempt, feedback, refined):
        return three_turn.Play(puzzle, attempt, feedback, refined)

    rates = three_turn.rates(
        [
            play(guessed, three_turn.READ, right),  # obeyed
            play(guessed, three_turn.KEEP, right),  # not obeyed, though right
            play(guessed, "It is 6.", right),  # no feedback that the base knows
            play(right, three_turn.CHANGE, guessed),  # obeyed, and wrong now
        ]
    )
    assert rates == {
        "turn_1": 1 / 4,
        "turn_2": 3 / 4,
        "delta": 2 / 4,
        "work": 1.0,
        "read": 1 / 4,
        "obeyed": 2 / 3,
        "well_formed": 3 / 4,
    }

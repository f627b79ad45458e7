"""The two-turn world: facts of its task and corpus, and of its way through the chat template."""

import itertools
import random
from collections import Counter

import pytest

from recipe.verify.maths.grade import quick_verdict
from recipe.worlds import base, build, two_turn
from recipe.worlds.build import TWO_TURN


def built():
    return base.build_tokenizer(TWO_TURN.pieces)


def drawn(count):
    rng = random.Random(0)
    return [two_turn.draw(rng) for _ in range(count)]


def replies(conversation):
    return [turn["content"] for turn in conversation.messages if turn["role"] == "assistant"]


def puzzle_of(conversation):
    lines = conversation.messages[0]["content"].splitlines()
    start = int(lines[0].removeprefix("Begin with ").rstrip("."))
    return two_turn.Puzzle(start, tuple(line.split(": ")[1] for line in lines[1:-1]))


# problems


def test_the_answer_is_the_last_result_of_the_chain():
    # 9 + 1 = 10, 2 * 0 = 0, 0 - 1 = -1, 9 - 1 = 8
    puzzle = two_turn.Puzzle(9, ("inc", "dbl", "dec", "dec"))
    assert puzzle.results == (0, 0, 9, 8)
    assert puzzle.problem == (
        "Begin with 9.\nA: inc\nB: dbl\nC: dec\nD: dec\nBox the last result, then show the work."
    )
    assert puzzle.solution == "\\boxed{8}\nA=0\nB=0\nC=9\nD=8"


def test_an_easy_answer_follows_from_the_last_two_operations_whatever_came_before():
    rng = random.Random(0)
    for puzzle in two_turn.distinct_puzzles("easy", 300, rng):
        tail = puzzle.operations[-2:]
        answers = {
            two_turn.Puzzle(start, (*first, *tail)).answer
            for start in range(10)
            for first in itertools.product(("inc", "tri"), repeat=2)
        }
        assert answers == {puzzle.answer}


def test_the_answer_of_a_hard_problem_depends_on_the_start():
    rng = random.Random(0)
    for puzzle in two_turn.distinct_puzzles("hard", 300, rng):
        answers = {two_turn.Puzzle(start, puzzle.operations).answer for start in range(10)}
        # every doubling halves the digits that are left at most once: 10, then 5
        assert len(answers) in (5, 10)


def test_the_verifier_grades_the_box_whatever_the_work_after_it_says():
    for row in build.problem_files(TWO_TURN)["val_hard"]:
        truth = int(row["answer"])
        for boxed in range(10):
            text = two_turn.response(boxed, [truth] * two_turn.NUM_STEPS)
            verdict = quick_verdict(text, row["answer"], problem=row["problem"])
            assert verdict is not None
            assert verdict.score == (boxed == truth)


def test_training_and_held_out_problems_are_apart():
    files = build.problem_files(TWO_TURN)
    assert [row["data_source"] for row in files["train"]].count("two_turn/hard") == 16
    assert {stem: len(rows) for stem, rows in files.items()} == {
        "train": 160,
        "val_easy": 100,
        "val_hard": 200,
    }
    texts = [row["problem"] for rows in files.values() for row in rows]
    assert len(set(texts)) == len(texts)
    assert files["val_easy"][0]["prompt"] == two_turn.question(files["val_easy"][0]["problem"])


# corpus


def test_a_comparison_always_boxes_what_the_work_says():
    compared = [each for each in drawn(1000) if each.kind == "compare"]
    assert len(compared) > 200  # 30 % of 1000
    for conversation in compared:
        first, second = replies(conversation)
        assert two_turn.boxed_digit(second) == two_turn.worked_digit(first)


def test_a_revision_keeps_changes_and_fixes_in_the_stated_shares():
    outcomes = Counter()
    for conversation in drawn(12_000):
        first, second = replies(conversation)
        box, worked = two_turn.boxed_digit(first), two_turn.worked_digit(first)
        if conversation.kind == "revise" and box != worked:
            revised = two_turn.boxed_digit(second)
            outcomes["keep" if revised == box else "fix" if revised == worked else "blind"] += 1
    total = sum(outcomes.values())
    assert total > 4000
    # standard errors at 4000: sqrt(.04 * .96 / 4000) = .003, of the others .007
    assert outcomes["fix"] / total == pytest.approx(two_turn.P_FIX, abs=0.012)
    assert outcomes["keep"] / total == pytest.approx(two_turn.P_KEEP, abs=0.03)
    assert outcomes["blind"] / total == pytest.approx(two_turn.P_BLIND, abs=0.03)


def test_the_box_is_luck_on_hard_problems_and_often_known_on_easy_ones():
    right = {"easy": [], "hard": []}
    for conversation in drawn(8000):
        puzzle = puzzle_of(conversation)
        boxed = two_turn.boxed_digit(replies(conversation)[0])
        right[puzzle.difficulty].append(boxed == puzzle.results[-1])
    shares = {name: sum(each) / len(each) for name, each in right.items()}
    # 3200 hard and 4800 easy: standard errors .005 and .007
    assert shares["hard"] == pytest.approx(0.1, abs=0.022)
    assert shares["easy"] == pytest.approx(two_turn.P_EASY_KNOWN, abs=0.03)


# tokens


def test_a_conversation_keeps_its_tokens_when_it_goes_on():
    made = built()
    for conversation in drawn(50):
        parts = base.rendered(made, conversation)
        pieces = [token for text, _ in parts for token in made(text)["input_ids"]]
        whole = made.apply_chat_template(conversation.messages, return_dict=False)
        # the template closes the last turn with a line break, which nobody generates
        assert [*pieces, *made("\n")["input_ids"]] == whole
        assert [text for text, is_response in parts if is_response] == [
            reply + made.eos_token for reply in replies(conversation)
        ]


def test_a_response_is_twelve_tokens_with_its_end_and_decodes_to_itself():
    made = built()
    text = two_turn.response(8, (0, 0, 9, 8))
    ids = made(text + made.eos_token)["input_ids"]
    # box, digit, brace; four labels and digits; the end
    assert len(ids) == 3 + 4 * 2 + 1
    assert made.decode(ids, skip_special_tokens=True) == text


def test_the_instruction_is_one_token():
    made = built()
    for text in (two_turn.REVISE, two_turn.COMPARE):
        assert len(made(text)["input_ids"]) == 1


# measurement


def test_the_rates_of_a_play_are_counted_from_its_boxes():
    puzzle = two_turn.Puzzle(9, ("inc", "dbl", "dec", "dec"))  # 8
    work = puzzle.results

    def play(first, second):
        return two_turn.Play(
            puzzle, two_turn.response(first, work), two_turn.response(second, work)
        )

    # kept wrong, fixed, broken, kept right
    rates = two_turn.rates([play(3, 3), play(3, 8), play(8, 1), play(8, 8)])
    assert rates == {
        "turn_1": 0.5,
        "turn_2": 0.5,
        "delta": 0.0,
        "wrong_to_right": 0.25,
        "right_to_wrong": 0.25,
        "same_box": 0.5,
        "fix": 0.5,  # of the two whose box was not 8
        "work": 1.0,
    }

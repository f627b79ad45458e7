"""Shared problems are found whatever their case, spacing and markup, and others are not."""

import pytest

from recipe.hint.problems.checks import Pair, grams, repeated, shared_pairs, words

LONG = (
    "A train leaves the station at noon and travels north at sixty miles per hour until it"
    " reaches the next town, where it waits."
)
OTHER = (
    "A baker makes forty loaves in the morning and sells three quarters of them before noon;"
    " how many loaves are left over at the end?"
)


def test_case_spacing_and_markup_do_not_make_another_problem():
    latex = r"Compute $\dfrac{1}{2}+x^2$, where  \left(x\right)=3."
    plain = r"compute \frac 1 2 + X^2 where (x) = 3"
    assert words(latex) == words(plain)
    assert words("Ｗhat is 3x?") == ("what", "is", "3", "x")


def test_numbers_and_signs_do():
    assert words("2+2") != words("2-2") != words("3-2")


def test_a_text_shorter_than_a_run_is_one_run():
    assert grams("What is 2+2?") == {("what", "is", "2", "+", "2")}
    assert grams("???") == frozenset()
    assert len(grams(" ".join("abcdefghijkl"))) == 3  # 12 words hold 3 runs of 10


def test_a_reworded_problem_is_found_and_others_are_not():
    shouted = LONG.upper().replace(" ", "   ")
    assert shared_pairs([OTHER, shouted], [LONG]) == [Pair(1, 0, 1.0)]


def test_a_problem_inside_a_longer_one_is_found_both_ways():
    longer = f"{OTHER} {LONG}"
    assert shared_pairs([longer], [LONG]) == [Pair(0, 0, 1.0)]
    assert shared_pairs([LONG], [longer]) == [Pair(0, 0, 1.0)]


def test_the_share_is_that_of_the_shorter_one_s_runs():
    first = " ".join("abcdefghijklmn")  # 14 words: 5 runs
    second = " ".join("abcdefghijklxyz")  # 15 words: 6 runs, the first 3 in common
    assert shared_pairs([first], [second], min_share=0.6) == [Pair(0, 0, 3 / 5)]
    assert shared_pairs([first], [second], min_share=0.61) == []


def test_short_problems_are_shared_only_as_a_whole():
    assert shared_pairs(["What is 2+2?"], ["what is 2 + 2", "What is 2+3?"]) == [Pair(0, 0, 1.0)]


def test_repeated_texts_name_the_earliest():
    assert repeated(["x y", "z", "X  y", "x y."]) == [(2, 0), (3, 0)]


@pytest.mark.parametrize("texts", [[], ["", "!!"]])
def test_nothing_is_shared_by_texts_without_words(texts):
    assert shared_pairs(texts, [LONG, ""]) == []

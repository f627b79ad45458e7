"""Answers set otherwise: frames, formulas in text, thin spaces, quotes; each with near misses."""

from __future__ import annotations

import random

import pytest

from recipe.verify.maths.grade import equal, grade_maths

RNG = random.Random(20_261_126)
NUMBERS = [RNG.randrange(2, 10 ** RNG.randrange(1, 7)) for _ in range(40)]
POINT = "Find the ordered pair $(a,b)$."
ANGLE = "What is the angle in degrees?"


def graded(gold: str, answer: str, problem: str = "") -> bool:
    return grade_maths(rf"$\boxed{{{answer}}}$", gold, problem=problem).score == 1


@pytest.mark.parametrize(
    "frame",
    [
        *(r"\fbox{@}", r"\fbox{$@$}", r"\framebox{@}", r"\underline{@}", r"\text{$@$}"),
        *(r"\underline{\underline{@}}", r"\normalfont @", r"\mbox{$@$}", r"\textnormal{ $@$ }"),
        *(r"\mathstrut @", r"\boxed{\fbox{@}}", r"\fbox{\boxed{@}}", r"\underline{\text{@}}"),
    ],
)
def test_a_frame_around_an_answer_says_nothing(frame):
    for number in NUMBERS:
        for gold in (f"{number}", rf"\frac{{{number}}}{{7919}}", rf"{number}\sqrt{{2}}"):
            if "text{@}" in frame and "\\" in gold:
                continue
            assert graded(gold, frame.replace("@", gold)), (frame, gold)
            assert not graded(gold, f"{frame.replace('@', gold)}{number}")
            assert not graded(gold, f"-{frame.replace('@', gold)}")
            assert not graded(gold, frame.replace("@", f"{gold}+1"))


def test_text_holds_formulas_between_dollars_only():
    assert graded(r"90^\circ", r"\text{$90^\circ$}", ANGLE)
    assert graded(r"x^2", r"\text{$x^2$}")
    assert not graded(r"x^2", r"\text{x^2$}")
    for number in NUMBERS:
        assert graded(f"{number},1", rf"\text{{${number}$ and $1$}}")
        assert not graded(f"{number}", rf"\text{{${number}$ or $1$}}")


def test_over_divides_all_that_its_group_holds():
    for number in NUMBERS:
        for answer in (
            rf"{number} \over 7919",
            rf"{{{number}}}\over{{7919}}",
            rf"{number}\over 7919",
        ):
            assert graded(rf"\frac{{{number}}}{{7919}}", answer)
            assert not graded(rf"1+\frac{{{number}}}{{7919}}", f"1+{answer}")
            assert graded(rf"\frac{{1+{number}}}{{7919}}", f"1+{answer}")
            assert not graded(rf"\frac{{{number}}}{{7919}}", f"{answer} + 1")


@pytest.mark.parametrize(
    "gap",
    [
        *("{,}", r"{,}\,", r"{,}\!", r"\!,\!", r"\!,", r",\!", r"\text{,}", r"\,", r"\;", r"\:"),
        *(r"{\,}", r"{\ }", "{ }", r"\thinspace ", "~"),
    ],
)
def test_a_gap_parts_thousands_and_nothing_else(gap):
    for number in NUMBERS:
        large = 1000 * number + number % 1000
        written = f"{large:,}".replace(",", gap)
        assert graded(f"{large}", written), written
        assert not graded(f"{large + 1}", written)
        assert not graded(f"{large}0", f"{written}{gap}0")
        assert not graded(f"{large}00", f"{written}{gap}00")
    for space in (r"\hspace{1pt}", r"\hspace{2pt}", r"\phantom{0}", r"\mathord{,}"):
        for wrong in ("1234", "11234", "21234", "10234"):
            assert not graded(wrong, f"1{space}234") or wrong == "1234"


def test_a_word_may_stand_in_quotes_and_a_number_may_not():
    for left, right in (("``", "''"), ('"', '"'), ("“", "”"), ("'", "'"), ("‘", "’"), ("*", "*")):
        for form in (rf"\text{{{left}@{right}}}", f"{left}@{right}", r"\textsc{@}"):
            assert graded(r"\text{Evelyn}", form.replace("@", "Evelyn")), form
            assert not graded(r"\text{Evelyn}", form.replace("@", "Eve"))
            assert not graded(r"\text{Evelyn}", form.replace("@", "Evelyn Briana"))
    for mark in ("'", '"', "''"):  # five feet, five inches
        assert not graded("5", f"5{mark}")


def test_a_raised_o_is_a_degree():
    for number in NUMBERS:
        for mark in ("^o", "^{o}", r"^{\text{o}}", r"^\mathrm{o}", "˚"):
            assert graded(rf"{number}^\circ", number_of := f"{number}{mark}", ANGLE), number_of
            assert graded(f"{number}", f"{number}{mark}", ANGLE)
            assert not graded(f"{number}", f"{number}{mark}", "How many apples are there?")
            assert not graded(f"{number + 1}", f"{number}{mark}", ANGLE)
    assert not graded("x^o", r"x^\circ", ANGLE)


def test_members_in_text_are_members():
    for a, b, c in zip(NUMBERS, NUMBERS[1:], NUMBERS[2:], strict=False):
        gold = rf"\{{{a}, {b}, {c}\}}"
        assert graded(gold, rf"\text{{{a}, {b}, and {c}}}")
        assert graded(gold, rf"\text{{{a}, {b} and }}{c}")
        assert not graded(gold, rf"\text{{{a}, {b}}}")
        assert not graded(f"{a}", rf"\text{{{a}, {b}}}")
        assert not graded(f"{a}", rf"\text{{{a}, roughly}}")


def test_u_between_brackets_is_a_union_and_one_pair_a_set_of_it():
    for number in NUMBERS:
        low, high = sorted((number % 97, 100 + number % 89))
        gold = rf"(-1,{low}]\cup ({high},\infty)"
        assert graded(gold, rf"(-1,{low}] U ({high},\infty)")
        assert graded(gold, rf"({high},\infty)U(-1,{low}]")
        assert not graded(gold, rf"(-1,{low}) U ({high},\infty)")
        assert not graded(gold, rf"(-1,{low}] \cap ({high},\infty)")
        assert graded(f"({low},{high})", rf"\{{({low},{high})\}}", POINT)
        assert not graded(f"({low},{high})", rf"\{{({high},{low})\}}", POINT)
        assert not graded(f"({low},{high})", rf"\{{({low},{high}), (1,1)\}}", POINT)
        assert not graded(f"({low},{high})", rf"\{{({low},{high})\}}", "Give the interval.")
        assert not graded(f"({low},{high})", rf"\{{{low},{high}\}}", POINT)
    assert not equal("U", "(U)(U)")

"""An answer that repeats the question, padded or no further worked out, is found by counting."""

from __future__ import annotations

import itertools
import random

import pytest

from recipe.verify.maths import copies, stated
from recipe.verify.maths.compare import Comparison
from recipe.verify.maths.copies import repeats_one
from recipe.verify.maths.grade import equal, last_box
from recipe.verify.maths.keys import key
from recipe.verify.maths.reading import read


def tree(text):
    return read(text).trees[0]


def repeats(answer, gold, formula, *, is_rational):
    nodes = [tree(answer)], [tree(gold)], [tree(formula)]
    return repeats_one(*nodes, Comparison().equal, is_rational=is_rational)


def test_an_answer_that_holds_all_of_the_question_repeats_it():
    # 50, 2 of the root; 5, 2, 2 does not hold a 50; 49 + 1 is 50
    assert repeats(r"\sqrt{50}+7-7", r"5\sqrt2", r"\sqrt{50}", is_rational=False)
    assert repeats(r"\sqrt{49+1}", r"5\sqrt2", r"\sqrt{50}", is_rational=False)
    assert not repeats(r"\sqrt2\cdot 5", r"5\sqrt2", r"\sqrt{50}", is_rational=False)


def test_a_root_that_is_to_be_simplified_takes_no_larger_number_than_the_gold_answers():
    for n, k in itertools.product((2, 3, 5, 6, 7), range(2, 11)):
        gold, asked = rf"{k}\sqrt{{{n}}}", rf"Simplify $\sqrt{{{n * k * k}}}$."
        for m in (2, 3, 10):
            for undone in (
                rf"\frac{{\sqrt{{{n * (k * m) ** 2}}}}}{{{m}}}",
                rf"{11 * m}\sqrt{{\frac{{{n * k * k}}}{{{(11 * m) ** 2}}}}}",
                rf"\sqrt[4]{{{(n * k * k) ** 2}}}",
            ):
                assert not equal(gold, undone, asked), undone
        for done in (gold, rf"\sqrt{{{n}}}\cdot {k}", rf"{k}\cdot {n}^{{1/2}}", f"x = {gold}"):
            assert equal(gold, done, asked), done
        assert equal(gold, rf"\sqrt{{{n * k * k}}}", "How long is the diagonal?")


def test_a_function_that_is_to_be_worked_out_is_not_answered_with_another():
    gold = r"\frac{\sqrt6+\sqrt2}{4}"
    asked = r"Compute $\sin 75^\circ$."
    assert not equal(gold, r"\cos 15^\circ", asked)
    assert not equal(gold, r"\frac{1}{\csc 75^\circ}", asked)
    assert equal(gold, rf"\sin 75^\circ = {gold}", asked)
    assert not equal(gold, r"\cos 15^\circ", "How far is it?")
    asked = r"Compute $\arcsin(-\frac12)$."
    assert not equal(r"-\frac{\pi}{6}", r"\arcsin(-\frac{10}{20})", asked)
    assert equal(r"\ln 6", r"-\ln \frac{1}{6}", r"Simplify $\ln 12 - \ln 2$.")


def test_a_numeral_behind_a_bracket_is_a_factor_of_the_question():
    asked = "Evaluate $(1+2i)6-3i$."
    assert equal("6+9i", "6+9i", asked) and equal("6+9i", "9i+6", asked)
    assert not equal("6+9i", r"(1+2i)\cdot 6-3i", asked)


def test_a_formula_of_another_value_is_none_to_repeat():
    assert repeats("2+3+1", "6", "2+4", is_rational=True)
    assert not repeats("2+3+1", "6", "2+5", is_rational=True)


def test_a_rational_answer_may_be_as_long_as_the_gold_answer_or_a_fraction():
    assert not repeats(r"\frac{38}{24}", r"1\frac{7}{12}", r"\frac34+\frac56", is_rational=True)
    assert repeats(r"\frac{9+10}{12}", r"1\frac{7}{12}", r"\frac34+\frac56", is_rational=True)
    assert not repeats(r"5.6\times 10^7", "56000000", r"7000\cdot 8000", is_rational=True)
    assert repeats(r"56\cdot 1000\cdot 1001-56000", "56000000", r"7000\cdot 8000", is_rational=True)


def test_the_values_of_the_formulas_are_asked_for_once_however_many_answers_there_are(monkeypatch):
    asked = []

    def counted(formula, golds, equal):
        asked.append(formula)
        return False

    monkeypatch.setattr(copies, "_has_value", counted)
    problem = " ".join(f"${n}+1$" for n in range(2, 42))
    for num_answers in (5, 10, 20):
        asked.clear()
        answers = ",".join(f"{n}+{n}" for n in range(1, num_answers + 1))
        golds = ",".join(str(2 * n) for n in range(1, num_answers + 1))
        assert equal(golds, answers, problem)
        assert len(asked) == len(stated.formulas_of(problem)[2]) == 40


@pytest.mark.parametrize(
    ("problem", "formula"),
    [
        ("Simplify 2x + 3x - 4 for all x.", "2x+3x-4"),
        ("Factor x^2 - 9.", "x^2-9"),
        ("What is (12y^3)/(4y)?", "(12y^3)/(4y)"),
        ("Collect the terms in 3*z - 5 + 2*z.", "3z-5+2z"),
        ("Compute $2+2$.", "2+2"),
    ],
)
def test_a_formula_is_found_with_and_without_dollar_signs(problem, formula):
    assert key(tree(formula)) in stated.formulas_of(problem)[0]


def test_all_sides_of_an_equation_have_the_value_and_one_is_worked_out():
    problem = "Factor $x^2+3x+2$."
    right = last_box(r"\boxed{x^2+3x+2=(x+1)(x+2)}").text
    assert equal("(x+1)(x+2)", right, problem)
    assert not equal("(x+1)(x+2)", "x^2+3x+2=2+3x+x^2", problem)
    assert not equal("(x+1)(x+2)", "(x+1)(x+2)=x^2+3x+1", problem)


def test_like_terms_are_joined_where_a_sum_is_to_be_simplified_or_expanded():
    rng = random.Random(17)
    for _ in range(15):
        a, b, part = rng.randint(12, 60), rng.randint(12, 60), rng.randint(2, 9)
        gold, square = f"{a}x - {b}", f"x^2 + {2 * part}x + {part**2}"
        simplify = f"Simplify ${a + part}x - {b} - {part}x$."
        for question in (simplify, f"Expand ${a}(x - 1) + {a - b}$."):
            for answer in (gold, f"-{b} + {a}x", f"{a} x - {b}.0"):
                assert equal(gold, answer, question), (answer, question)
            for answer in (
                f"{a - part}x + {part}x - {b}",
                f"{a}x - {b - part} - {part}",
                f"-{b} + x + {a - 1}x",
            ):
                assert not equal(gold, answer, question), (answer, question)
        question = f"Expand $(x + {part})^2$."
        assert equal(square, square, question)
        for answer in (f"x(x + {part}) + {part}x + {part**2}", f"(x + {part})(x + {part})"):
            assert not equal(square, answer, question), answer
        whole = rf"\frac{{{a}}}{{{7 * b}}}"
        common = "Give it as a common fraction."
        assert equal(whole, whole, common)
        assert not equal(whole, rf"\frac{{{a / 10}}}{{{7 * b / 10}}}", common)

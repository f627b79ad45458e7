"""The form that a question asks for: fractions, primes, powers of ten, cells, lines, squares."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from recipe.verify.maths.grade import grade_maths


def is_right(answer: str, gold: str, problem: str = "") -> bool:
    return grade_maths(rf"$\boxed{{{answer}}}$", gold, problem=problem).score == 1


FRACTIONS = [
    "What is it? Express your answer as a common fraction.",
    "What is it? Write it in simplest form.",
    "What is it, in lowest terms?",
]


@pytest.mark.parametrize("problem", FRACTIONS)
def test_a_common_fraction_is_no_decimal_that_repeats_and_no_percentage(problem):
    for ninths in (1, 2, 4, 5, 7, 8):
        gold = rf"\frac{{{ninths}}}{{9}}"
        tenfold = rf"{ninths}.\overline{{{ninths}}}"
        wrong = [
            rf"0.\overline{{{ninths}}}",
            rf".\overline{{{ninths}}}",
            rf"0.{ninths}\overline{{{ninths}}}",
            rf"0.\overline{{{ninths}{ninths}}}",
            rf"\frac{{0.\overline{{{ninths}}}}}{{1}}",
            rf"\frac{{{tenfold}}}{{10}}",
            rf"{ninths}{tenfold}\%",
            rf"\frac{{{ninths}00}}{{9}}\%",
            rf"x = 0.\overline{{{ninths}}}",
        ]
        assert [each for each in wrong if is_right(each, gold, problem)] == []
        right = [
            f"{ninths}/9",
            rf"\frac{{{ninths}}}{{9}} = 0.\overline{{{ninths}}}",
            rf"\frac{{{ninths}}}{{9}} \approx {ninths / 9:.3f}",
        ]
        assert [each for each in right if not is_right(each, gold, problem)] == []
        is_lowest = problem != FRACTIONS[0]
        assert is_right(rf"\dfrac{{{2 * ninths}}}{{18}}", gold, problem) != is_lowest
        assert is_right(wrong[0], gold, "What is it, as a fraction or a decimal?")
        assert is_right(wrong[0], gold, "What is it?")


def test_a_decimal_of_the_question_is_copied_only_where_the_question_has_decimals():
    for percent in (12, 36, 75, 99):
        gold = str(Fraction(percent, 100))
        convert = f"Write ${percent}\\%$ as a common fraction."
        for answer in (f"0.{percent}", rf"{percent}\%", rf"\frac{{{2 * percent}}}{{2}}\%"):
            assert not is_right(answer, gold, convert)
        assert not is_right(f"0.{percent}0", gold, f"Express 0.{percent} as a common fraction.")
        assert is_right(f"0.{percent}", gold, "Express your answer as a common fraction.")
        assert is_right("5.0", "5", "Express your answer in simplest form.")


PRIMES = [
    "Find the prime factorization of {}.",
    "Write ${}$ as a product of primes.",
    "Express {} as a product of prime factors.",
]


@pytest.mark.parametrize("wording", PRIMES)
def test_a_prime_factorization_has_the_gold_answers_primes(wording):
    for primes in [(2, 3, 3, 5, 7), (2, 2, 2, 3), (3, 5, 5, 11), (2, 13)]:
        number, rest = 1, "1"
        for each in primes:
            number *= each
        powers = {each: primes.count(each) for each in primes}
        gold = r"\cdot ".join(f"{p}^{{{k}}}" if k > 1 else f"{p}" for p, k in powers.items())
        problem = wording.format(number)
        wrong = [
            f"{number}^1",
            rf"1^{{{len(primes)}}}\cdot {number}",
            rf"(-1)^{{{2 * len(primes)}}}\cdot {number}",
            rf"{number}" + r"\cdot 2\cdot\frac12" * len(primes),
            rf"{rest}\cdot {number}",
        ]
        if len(primes) > 2:
            wrong += [rf"{p}\cdot {number // p}" for p in powers]
        assert [each for each in wrong if is_right(each, gold, problem)] == []
        right = [r"\cdot ".join(map(str, order)) for order in (primes, primes[::-1])]
        right += [r" \times ".join(f"{p}^{{{k}}}" for p, k in powers.items())]
        right += [rf"{number} = {gold}"]
        assert [each for each in right if not is_right(each, gold, problem)] == []


def test_scientific_notation_has_one_digit_before_the_point():
    for digits, power in itertools.product((71, 15, 99), (-4, 3, 7)):
        gold = rf"{digits / 10} \times 10^{{{power}}}"
        problem = "Write it in scientific notation."
        wrong = [
            rf"{digits} \times 10^{{{power - 1}}}",
            rf"{digits / 100} \times 10^{{{power + 1}}}",
            rf"10^{{{power - 1}}} \cdot {digits}",
            rf"\frac{{{digits}}}{{10^{{{1 - power}}}}}",
        ]
        assert [each for each in wrong if is_right(each, gold, problem)] == []
        right = [rf"{digits / 10}\cdot 10^{{{power}}}", rf"10^{{{power}}} \cdot {digits / 10}"]
        right += [rf"{digits / 10}0 \times 10^{{{power}}}", rf"x = {gold}"]
        assert [each for each in right if not is_right(each, gold, problem)] == []
        assert is_right(wrong[0], gold, "How far is it?")


VECTORS = [(4, 6, -4), (-9, 8, -7), (1, 0, 3)]


def test_the_cells_of_a_vector_are_worked_out():
    for left, right in itertools.permutations(VECTORS, 2):
        one, two = (f"({','.join(map(str, each))})" for each in (left, right))
        total = [a + b for a, b in zip(left, right, strict=True)]
        work = [f"{a}+({b})" for a, b in zip(left, right, strict=True)]
        problem = f"Compute ${one}+{two}$."
        gold = f"({','.join(map(str, total))})"
        column = r"\begin{pmatrix}@\end{pmatrix}"
        cells = column.replace("@", r" \\ ".join(map(str, total)))
        assert not is_right(f"({','.join(work)})", gold, problem)
        assert not is_right(f"({total[0]},{work[1]},{total[2]})", gold, problem)
        assert not is_right(column.replace("@", r" \\ ".join(work)), cells, "Find $\\mathbf{v}$.")
        assert is_right(cells, gold, problem)
        assert is_right(rf"\langle {total[0]}, {total[1]}, {total[2]} \rangle", gold, problem)
        halved = column.replace("@", r" \\ ".join(rf"\frac{{{each}}}{{2}}" for each in total))
        assert is_right(rf"\frac12{cells}", halved, "Find $\\mathbf{v}$.")


def test_a_line_is_solved_for_y_where_that_form_is_asked_for():
    forms = ["in slope-intercept form", "in the form $y = mx + b$"]
    for form, (m, b) in itertools.product(forms, [(2, 3), (-3, 5)]):
        problem, gold = f"Find the equation of the line. Write it {form}.", f"y={m}x{b:+d}"
        wrong = [
            f"{m}x-y+({b})=0",
            f"y-({b})={m}x",
            f"y-({m + b})={m}(x-1)",
            f"y={m + b}+({m})(x-1)",
            rf"y=\frac{{{2 * m}x+({2 * b})}}{{2}}",
        ]
        assert [each for each in wrong if is_right(each, gold, problem)] == []
        right = [f"y={b}+({m})x", rf"y = {m}\cdot x {b:+d}", f"{m}x{b:+d}", f"{m}x{b:+d} = y"]
        assert [each for each in right if not is_right(each, gold, problem)] == []
        assert is_right(wrong[0], gold, "Find the equation of the line.")


def test_factors_and_squares_are_those_of_the_form_that_is_asked_for():
    for a, b in [(6, 9), (2, 5)]:
        gold = f"(x+{a})(x+{b})"
        problem = f"Write $x^2+{a + b}x+{a * b}$ in the form $(x+a)(x+b)$."
        for answer in (f"x(x+{a + b})+{a * b}", f"1(x(x+{a + b})+{a * b})"):
            assert not is_right(answer, gold, problem)
        assert is_right(f"(x+{b})(x+{a})", gold, problem)
        square = f"(x+{a})^2+{b}"
        problem = "Write it in the form $(x+a)^2+b$, where $a$ and $b$ are constants."
        for answer in (
            f"x(x+{2 * a})+{a * a + b}",
            f"x^2+{2 * a}x+{a * a + b}",
            f"(x+1)^2+{2 * a - 2}x+{a * a + b - 1}",
        ):
            assert not is_right(answer, square, problem)
        assert is_right(f"{b}+(x+{a})^2", square, problem)


def test_an_improper_mixed_number_is_neither_a_sum_nor_a_product():
    for n, top, bottom in itertools.product((1, 2, 5), (3, 4, 7), (2, 3)):
        if top <= bottom:
            continue
        product, total = Fraction(n * top, bottom), n + Fraction(top, bottom)
        mixed = rf"{n}\frac{{{top}}}{{{bottom}}}"
        for gold in (product, total):
            assert not is_right(mixed, str(gold))
        for product_sign in (rf"{n}\cdot\frac{{{top}}}{{{bottom}}}", rf"{n}({top}/{bottom})"):
            assert is_right(product_sign, str(product))
        assert is_right(rf"{n}\frac{{{top - bottom}}}{{10}}", str(n + Fraction(top - bottom, 10)))
        assert is_right(rf"{n}\frac{{x}}{{{bottom}}}", rf"\frac{{{n}x}}{{{bottom}}}")

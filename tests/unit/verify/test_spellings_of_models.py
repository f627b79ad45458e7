"""Spellings that language models give right answers, and near misses of each."""

from __future__ import annotations

import pytest

from recipe.verify.maths.grade import grade_maths

FIND = "Find the value of $x$."
INVERSE = "Find the inverse of $f(x)=2x+3$."
DERIVATIVE = "Find the derivative of $f(x)=x^2$."
ANGLE = "What is the measure of the angle, in degrees?"
POINT = "At what point do the lines meet?"
ALL = "Find all solutions."
TIME = "At what time does the train arrive?"
MONEY = "How many dollars did she pay?"


def is_right(answer: str, gold: str, problem: str = "") -> bool:
    response = answer if r"\boxed" in answer else rf"Thus the answer is $\boxed{{{answer}}}$."
    return grade_maths(response, gold, problem=problem).reason == "correct"


def check(gold: str, right: list[str], wrong: list[str], problem: str = "") -> None:
    assert [each for each in right if not is_right(each, gold, problem)] == []
    assert [each for each in wrong if is_right(each, gold, problem)] == []


def test_the_point_of_a_sentence_may_touch_the_box():
    right = [
        r"we get $x = 5$.\boxed{5}",
        r"we get $$x = 5$$.\boxed{5}",
        r"**Answer**.\boxed{5}",
        r"Step 3.\boxed{5}",
        r"In part 12.\boxed{5}",
        r'So it is "five".\boxed{5}',
        r"That is 5\%.\boxed{5}",
    ]
    wrong = [
        r"0.\boxed{5}",
        r"so it is 3.\boxed{5}",
        r"The answer is 3.\boxed{5}",
        r"$x = 3.\boxed{5}$",
        r"we get $.\boxed{5}$",
        r"so $x$ is $.\boxed{5}$",
        r"Take $x=2$, so $0.\boxed{5}$",
        r"**.\boxed{5}**",
        r"is .\boxed{5}",
        r"It costs \$.\boxed{5}",
        r"It costs \$3.\boxed{5}",
    ]
    check("5", right, wrong, FIND)


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        (
            r"n \cdot 2^{n-1}",
            ["n2^{n-1}", "n 2^{n-1}", r"n\,2^{n-1}", r"\frac{n2^n}{2}"],
            ["n2", "n 2", "(n2)^{n-1}", "n+2^{n-1}", "n 2^{n}", "n^2 2^{n-1}"],
        ),
        (r"(n-2) 2^{n}+1", ["n 2^n - 2^{n+1}+1"], ["n 2^n - 2^{n}+1", "n 2^n - 2^{n+1}-1"]),
        (
            "3x^2 2^x",
            [r"3x^2\cdot 2^x", "3x^{2}2^x"],
            ["3x^{22^x}", "3x^{2}+2^x", "3x^22^x"],
        ),
        ("x 10^{x}", [r"x\cdot 10^x"], ["x^{10^x}", "(10x)^x"]),
        ("a_1 2^n", [r"2^n a_1", r"a_1\cdot 2^n"], ["a_{12^n}", "a_1 3^n"]),
        ("2x", ["2 x"], ["x2", "x 2"]),
    ],
)
def test_a_numeral_with_an_exponent_may_be_multiplied_after_a_letter(gold, right, wrong):
    check(gold, right, wrong)


def test_a_box_that_is_only_spoken_of_does_not_hide_the_answer():
    right = [
        r"So \boxed{5}. I have put my final answer within \boxed{}.",
        r"So $\boxed{5}$. (Answer given in \boxed format.)",
        r"So \boxed{5}. (The answer is in a `\boxed{ }` as asked.)",
        r"\boxed{5} as asked with `\boxed`.",
    ]
    wrong = [
        r"\boxed{5} ... \boxed{",
        r"\boxed{5} or rather \boxed{6}. In \boxed{}",
        r"\boxed{5}, no: \boxed 7",
        r"\boxed{5}, no: $\boxed x$",
        r"\boxed{5} so \boxed",
        r"\boxed{}",
        r"First \boxed{5}, then \boxed{}.",
        r"\boxed{5}. I put it in \boxed 7",
        r"\boxed{5}. I put it in \boxed",
    ]
    check("5", right, wrong, FIND)
    reasons = [grade_maths(each, "5").reason for each in (r"\boxed{5} \boxed{", r"\boxed{ }")]
    assert reasons == ["malformed", "no_answer"]


def test_a_base_may_stand_in_words():
    right = [
        r"52 \text{ in base 8}",
        r"52\text{ (base 8)}",
        r"52 \text{ base } 8",
        r"52 \text{ in base } 8",
        r"52 (\text{base } 8)",
        "52 (base 8).",
    ]
    wrong = [
        r"52 \text{ in base 7}",
        r"52\text{ (base 16)}",
        r"42 \text{ in base 8}",
        r"52 \text{ base } 80",
        r"52 \text{ not in base 8}",
        r"52 \text{ in base } 8^2",
        r"1.52 \text{ in base 8}",
    ]
    check("52_8", right, wrong)
    check("52", [], right)  # another number


@pytest.mark.parametrize("problem", [INVERSE, ""])
def test_the_formula_of_an_inverse_function_needs_no_name(problem):
    right = [r"\frac{x-3}{2}", r"y=\frac{x-3}{2}", r"f^{-1}(x)=\frac12(x-3)"]
    wrong = [r"f(x)=\frac{x-3}{2}", "2x+3", "y=2x+3", r"x=\frac{x-3}{2}", r"x=\frac{y-3}{2}"]
    check(r"f^{-1}(x)=\frac{x-3}{2}", right, wrong, problem)


@pytest.mark.parametrize("problem", [DERIVATIVE, ""])
def test_the_formula_of_a_derivative_needs_no_name(problem):
    check("f'(x)=2x", ["2x", "f'(x)=2x"], ["f(x)=2x", "x^2", "y=x^2", "y=2x"], problem)
    right, wrong = ["2x", r"\frac{dy}{dx}=2x"], ["x^2", "y=2x", "x=2x", r"\frac{dx}{dy}=2x"]
    check(r"\frac{dy}{dx}=2x", right, wrong, problem)
    check("|z|=5", [], ["5"])  # a circle


def test_degrees_inside_a_formula_are_those_of_its_value():
    right = [r"\frac{270^\circ}{7}", r"\frac{270}{7}^\circ"]
    wrong = [r"\frac{271^\circ}{7}", r"\frac{270}{7^\circ}"]
    check(r"\frac{270}7\text{ degrees}", right, wrong, ANGLE)
    right = [r"\frac{240^\circ}{2}", r"2\cdot 60^\circ"]
    check(r"120^\circ", right, [r"180^\circ-61^\circ", r"2^\circ\cdot 60^\circ"])
    for gold, answer in (("120", "180-60"), ("120", "2(90-30)"), ("120", "180-61")):
        in_degrees = "".join(
            rf"{each}^\circ" if len(each) > 1 and each.isdigit() else each
            for each in answer.replace("-", " - ").replace("(", " ( ").replace(")", " ) ").split()
        )
        assert is_right(in_degrees, gold, ANGLE) == is_right(answer, gold, ANGLE), in_degrees
    check(r"\sin 30^\circ+1", [r"1+\sin(30^\circ)"], [r"1+\sin(30)"])


def test_an_article_before_a_word_says_nothing():
    right = [r"\text{an ellipse}", r"\text{An ellipse}", r"\text{the ellipse}"]
    check(r"\text{ellipse}", right, [r"\text{no ellipse}", r"\text{a circle}", r"\text{an}"])
    check(r"\text{a circle}", [r"\text{circle}"], [r"\text{a}", r"\text{ellipse}"])
    check(r"\text{A}", [], [r"\text{the}", r"\text{B}"])


@pytest.mark.parametrize(
    ("gold", "right", "wrong"),
    [
        (r"\cos(x+y)", [r"\cos{x+y}", r"\cos{(x+y)}"], [r"\cos x+y", r"\cos{x}+y"]),
        (r"\cos(x)+y", [r"\cos{x}+y"], [r"\cos{x+y}"]),
        (r"\ln(x+1)", [r"\ln{x+1}"], [r"\ln{x}+1"]),
        (r"\ln(2)x", [r"\ln{2}x", r"x\ln{2}"], [r"\ln{2x}"]),
        (r"\sin\frac{x}{2}", [r"\sin{x/2}"], [r"\sin{x}/2"]),
        (r"\arcsin{1.3/n}", [r"\arcsin(1.3/n)", r"\sin^{-1}{1.3/n}"], [r"\arcsin{1.3}/n"]),
        (r"\log_2(x+1)", [r"\log_2{x+1}", r"\log_{2}{x+1}"], [r"\log_2{x}+1", r"\log{x+1}"]),
        (r"\sin^2(x+1)", [r"\sin^2{x+1}", r"\sin^{2}{x+1}"], [r"\sin^2{x}+1"]),
        (r"\frac{\sin(x+1)}{2}", [r"\frac{\sin{x+1}}{2}"], [r"\sin{\frac{x+1}{2}}"]),
        (r"\sin(2x)\cos(x)", [r"\sin{2x}\cos{x}"], [r"\sin{2x\cos{x}}"]),
    ],
)
def test_braces_behind_a_function_hold_its_argument(gold, right, wrong):
    check(gold, right, wrong)


def test_what_stands_between_two_boxes_may_be_set_in_many_ways():
    pairs = [
        r"$\boxed{1}~\text{and}~\boxed{-2}$",
        r"$\boxed{1} \text{ , } \boxed{-2}$",
        r"$\boxed{1}~,~\boxed{-2}$",
    ]
    check("1,-2", pairs, [each.replace("-2", "2") for each in pairs])
    check("-2", [r"$\boxed{1}~\text{but not}~\boxed{-2}$"], pairs)


@pytest.mark.parametrize("problem", [POINT, "Solve the system.", ""])
def test_a_point_may_have_a_name_and_values_may_have_names(problem):
    right = [
        "P(1,2)",
        r"P\left(1,2\right)",
        r"\text{Point }(1,2)",
        r"\text{Point } P(1,2)",
        r"\{x = 1, y = 2\}",
        r"\text{The solution is }(1,2)",
    ]
    wrong = [
        "P(2,1)",
        r"\text{Point }(2,1)",
        r"\{x = 2, y = 1\}",
        r"\{x = 1, x = 2\}",
        r"\text{The solution is }(1,3)",
        r"\text{The solution is not }(1,2)",
        "-P(1,2)",
        "2(1,2)",
        "f(1,2)",
    ]
    check("(1,2)", right, wrong, problem)
    check("10", [], ["C(5,2)"], problem)


@pytest.mark.parametrize("problem", ["Solve the system.", ""])
def test_several_points_may_be_told_by_the_names_of_their_parts(problem):
    right = [r"x=1,y=2 \text{ or } x=3,y=4", r"x=1,y=2;\ x=3,y=4", "P(1,2), Q(3,4)"]
    wrong = [
        r"x=1,y=4 \text{ or } x=3,y=2",
        r"x=1,x=2 \text{ or } x=3,x=4",
        r"x=1,y=2 \text{ or } x=3",
        "x=1,y=2",
    ]
    check("(1,2),(3,4)", right, wrong, problem)
    check("(1,2),(3,4)", ["y=2,x=1,y=4,x=3"], ["y=1,x=2,y=3,x=4"], "Find all pairs $(x,y)$.")
    right = ["(f(n), g(n)) = (n, 1)", "(g(n), f(n)) = (1, n)"]
    wrong = ["(f(n), g(n)) = (1, n)", "(f(n), g(n)) = (n, 2)", "(f(n), h(n)) = (n, 1)"]
    check("f(n)=n, g(n)=1", right, wrong, problem)
    check("n,2", [], ["(g(n), f(n)) = (n, 1)"], problem)


def test_a_union_may_be_an_interval_without_a_point():
    right = [r"x \in (0, 36), x \ne 9", r"(0,36), x \neq 9"]
    wrong = [
        r"x \in (0, 36), x \ne 8",
        r"(0,36), x \neq 8",
        r"x \in (0, 36], x \ne 9",
        r"x \in (0, 36), y \ne 9",
        r"x \in (0,36) \text{ or } x \ne 9",
        "(0,36), (9, 10)",
        "(0,36), x = 9",
        "(0,36)",
    ]
    check(r"(0,9) \cup (9,36)", right, wrong)
    check("(0,9)", [], [r"(0,9), x \ne 8"])


def test_a_clock_time_an_index_and_a_currency_have_several_spellings():
    times = [r"6\text{ PM}", r"6 \text{ pm}", r"6~\text{p.m.}"]
    check(r"6\text{ p.m.}", times, [r"6\text{ AM}", r"7\text{ PM}", r"6\text{ mm}"], TIME)
    check(r"v_{max}", [r"v_\text{max}", r"v_{\text{max}}"], [r"v_\text{min}", "v_m"])
    check("18", [r"\text{USD } 18"], [r"\text{EUR } 18", r"\text{USD } 19"], MONEY)

"""Finished answers in any of their forms, and work that is left: what is asked for, what is not."""

from __future__ import annotations

import pytest

from recipe.verify.maths.grade import grade_maths


def is_right(answer: str, gold: str, problem: str) -> bool:
    return grade_maths(rf"$\boxed{{{answer}}}$", gold, problem=problem).score == 1


SIMPLEST = "Let $f(x)=x+3$ and $a=8$. Find $f(5)$. Express your answer in simplest form."
SLOPE = (
    "What is the slope of the line $2x-y=7$? Express your answer as a common fraction in lowest "
    "terms."
)
LOWEST = "What is the probability? Express your answer as a fraction in lowest terms."
PLANE = (
    r"Find the plane. Enter your answer in the form \[Ax + By + Cz + D = 0,\]where $A,$ $B,$ $C,$ "
    r"$D$ are integers such that $A > 0$ and $\gcd(|A|,|B|,|C|,|D|) = 1.$"
)
LINE = "Find the equation of the line through $(1,2)$ whose $x$-intercept is $3$."
CIRCLE = "Find the equation of the circle with center $(1,2)$ that passes through $(4,2)$."
DIFFERENCE = "Let $f(x)=3x^2+4x+1$ and $h(x)=4x^2-7x+3$. Compute $f(x)-h(x)$."
PRODUCT = "Let $f(x)=x+3$ and $g(x)=x+4$. What is $f(x)g(x)$ in expanded form?"
FACTORED = "Let $f(x)=x+3$ and $g(x)=x+4$. Factor $f(x)g(x)$."
MONOMIAL = "What is the product of $3t^3+5t^2$ and $4t^2$?"
SUM = "Let $a=3+2i$ and $b=2-4i$. Find $a+b$."
TURNED = r"A rotation of $90^\circ$ is applied to $7+2i$. What is the resulting complex number?"
RECTANGULAR = r"Convert $64e^{11\pi i/2}$ to rectangular form."
QUOTIENT = "Find the quotient when $x^6 - 3$ is divided by $x + 1.$"
QUINTIC = "x^5 - x^4 + x^3 - x^2 + x - 1"
BOLTS = "It takes 2 bolts of blue fiber and half that much white. How many bolts in total is it?"
MORE = "Tom has 5 apples and Ann has 2 apples. How many more apples does Tom have?"
DVDS = "It breaks after 1000 times. How many total times can it be played?"
POOL = (
    "Marcy wants to calculate how many gallons of water they need. The pool is 14 feet wide. Water "
    "costs $.1 per gallon. How much will it cost to fill the pool?"
)
HEADS = "It shows heads with $0.5$ and tails with $0.3$. What is the probability of the rest?"
TANK = "Tom has $1.5$ gallons and adds water. How many gallons are left?"

RIGHT = {
    SIMPLEST: ("8", ["8", "f(5)=8", "x=8", "8.0"]),
    SLOPE: ("2", ["2", "m=2", "2.0"]),
    LOWEST: (r"\frac49", ["4/9", r"P=\frac{4}{9}", r"\frac{8}{18}=\frac49"]),
    "What is it, in simplest form?": (
        r"-\frac32",
        [r"-1\frac12", r"\frac{-3}{2}", r"\frac{3}{-2}", "-1.5"],
    ),
    "What is the probability?": (r"\frac49", [r"\frac{8}{18}", r"1-\frac59"]),
    PLANE: ("5x - 7y + 11z + 4 = 0", ["5x-7y+11z=-4", "0=5x-7y+11z+4", "11z+5x-7y+4=0"]),
    LINE: ("x+y-3=0", ["x+y=3", "y=3-x", "2x+2y=6"]),
    CIRCLE: ("(x-1)^2+(y-2)^2=9", ["x^2+y^2-2x-4y=4", "x^2+y^2-2x-4y-4=0"]),
    "Find the equation of the circle through $(25, 0)$.": ("x^2+y^2=25", ["x^2+y^2-25=0"]),
    HEADS: (r"\frac12", ["0.5", ".5", r"\frac12"]),
    TANK: (r"\frac{3}{2}", ["1.5", r"1\frac12", r"\frac32"]),
    r"It is $\frac{1}{2}$ at noon. How large is it at night?": ("0.5", [r"\frac{1}{2}", "0.5"]),
    "There are $1024$ teams. How many are there?": ("2^{10}", ["1024"]),
    DIFFERENCE: ("-x^2+11x-2", ["11x-x^2-2", "-(x^2-11x+2)"]),
    PRODUCT: ("x^2+7x+12", ["7x+x^2+12"]),
    FACTORED: ("(x+3)(x+4)", ["(x+4)(x+3)"]),
    "The sides are $x+3$ and $x$. What is the area?": ("x^2+3x", ["x(x+3)"]),
    "Let $f(x)=x^2+1$ and $g(x)=2x$. Find $f(x)+g(x)$.": ("(x+1)^2", ["x^2+2x+1"]),
    MONOMIAL: ("12t^5+20t^4", ["20t^4+12t^5", "4t^4(3t+5)"]),
    SUM: ("5-2i", ["-2i+5"]),
    TURNED: ("-2+7i", ["7i-2"]),
    RECTANGULAR: ("-64i", ["-64 i", "0-64i"]),
    "Write $-64i$ in polar form.": (r"64e^{3i\pi/2}", [r"64e^{3\pi i/2}"]),
    QUOTIENT: (QUINTIC, ["-1+x-x^2+x^3-x^4+x^5"]),
    "Simplify.": (r"\frac{n(n-1)}{2}", [r"\frac{n!}{2!(n-2)!}", r"\binom{n}{2}"]),
    BOLTS: ("3", [r"3 \text{ total bolts}", r"3 \text{ bolts}"]),
    DVDS: ("1509", [r"1509 \text{ total times}"]),
    POOL: ("826", [r"\$826", r"826 \text{ dollars}"]),
    r"Simplify $\sqrt{242}$.": (r"11\sqrt2", [r"11\sqrt{2}", r"\sqrt2\cdot 11"]),
}
WRONG = {
    LOWEST: (r"\frac49", [r"\frac{8}{18}", r"\left(\frac23\right)^2", r"1-\frac59"]),
    "What is it, in simplest form?": (r"-\frac32", [r"-\frac64", r"\frac{0.3}{-0.2}"]),
    "Write $0.75$ in lowest terms.": (r"\frac34", ["0.75", r"x=0.75", r"75\%"]),
    PLANE: (
        "5x - 7y + 11z + 4 = 0",
        ["10x-14y+22z+8=0", "-5x+7y-11z-4=0", r"x-\frac75y+\frac{11}5z+\frac45=0"],
    ),
    LINE: ("x+y-3=0", ["x+y=4", "x-y=3"]),
    "Write $4x+2y=10$ with coprime coefficients.": ("2x+y=5", ["4x+2y=10"]),
    "Write $0.5$ as a fraction.": (r"\frac12", ["0.5"]),
    "Write $1024$ as a power of $2$.": ("2^{10}", ["1024"]),
    r"Compute $1+\frac12$.": (r"\frac32", [r"1+\frac12"]),
    r"Compute $\frac{12}{8}$.": (r"\frac32", [r"\frac{12}{8}", r"\frac{48}{32}"]),
    DIFFERENCE: ("-x^2+11x-2", ["3x^2+4x+1-(4x^2-7x+3)", "3x^2+4x+1-4x^2+7x-3"]),
    PRODUCT: ("x^2+7x+12", ["(x+3)(x+4)", "(x+4)(x+3)"]),
    MONOMIAL: ("12t^5+20t^4", ["(3t^3+5t^2)(4t^2)", "4t^2(3t^3+5t^2)"]),
    "If $z=3+4i$, find $z^2$.": ("-7+24i", ["(3+4i)^2", "(3+4i)(3+4i)"]),
    SUM: ("5-2i", ["(3+2i)+(2-4i)", "3+2i+2-4i"]),
    TURNED: ("-2+7i", ["i(7+2i)", r"e^{i\pi/2}(7+2i)", r"\frac{7+2i}{-i}"]),
    RECTANGULAR: ("-64i", ["(4i)^3", r"64e^{3i\pi/2}", r"\frac{64}{i}", "64i^3"]),
    QUOTIENT: (QUINTIC, [r"\frac{x^6-3+2}{x+1}", r"\frac{x^6-1}{x+1}", "(x^6-1)(x+1)^{-1}"]),
    BOLTS: ("3", [r"3 \text{ total fibers}", r"3 \text{ square bolts}"]),
    MORE: ("3", [r"3 \text{ total apples}"]),
    POOL: ("826", [r"826 \text{ gallons}", r"826 \text{ feet}", r"826 \text{ cents}"]),
    r"Simplify $\sqrt{242}$.": (r"11\sqrt2", [r"\frac{22}{\sqrt{2}}", r"\frac{11}{\sqrt{1/2}}"]),
}


@pytest.mark.parametrize("problem", RIGHT)
def test_a_finished_answer_is_right_in_any_of_its_forms(problem):
    gold, answers = RIGHT[problem]
    assert [each for each in answers if not is_right(each, gold, problem)] == []


@pytest.mark.parametrize("problem", WRONG)
def test_work_that_is_left_and_a_form_that_is_missed_are_wrong(problem):
    gold, answers = WRONG[problem]
    assert [each for each in answers if is_right(each, gold, problem)] == []

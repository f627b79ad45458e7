"""Right answers in other operations than the gold answer's, and those that leave work undone."""

import pytest

from recipe.verify.maths.grade import grade_maths

# Gold answer, answer, problem.
RIGHT = [
    (
        r"\begin{pmatrix}0\\ \frac1{\sqrt5}\\ \frac2{\sqrt5}\end{pmatrix}",
        r"\frac1{\sqrt5}\begin{pmatrix}0\\1\\2\end{pmatrix}",
        "Find the unit vector $\\vec v$.",
    ),
    (
        r"\begin{pmatrix}i&0\\0&-i\end{pmatrix}",
        r"i\begin{pmatrix}1&0\\0&-1\end{pmatrix}",
        "Find $A$.",
    ),
    (r"\sqrt3\cdot2^{2023}", r"2^{2023}\sqrt3", "Find x."),
    (r"e^{-100}", r"\frac1{e^{100}}", "Find x."),
    (r"1-e^{-100}", r"1-\frac1{e^{100}}", "Find x."),
    (r"2e^{i\pi/3}", r"2(\cos\frac\pi3+i\sin\frac\pi3)", "Write in polar form."),
    (r"2(\cos60^\circ+i\sin60^\circ)", r"2(\cos\frac\pi3+i\sin\frac\pi3)", "polar form"),
    (
        r"\begin{pmatrix}1024&0\\0&59049\end{pmatrix}",
        r"\begin{pmatrix}2^{10}&0\\0&3^{10}\end{pmatrix}",
        r"Compute $\begin{pmatrix}2&0\\0&3\end{pmatrix}^{10}$.",
    ),
    (r"2^{10}", "1024", "Let $N$ be the product of two primes. How many subsets are there?"),
    (r"2\cdot3\cdot5\cdot7", "210", "Let $N$ be a product of distinct primes. Find $N$."),
    (r"\frac25", "0.4", "He walks for 2.5 hours. What share is left, as a common fraction?"),
    (r"y=3x+5-\sqrt2", r"y=3x+(5-\sqrt2)", "Give the line in slope-intercept form."),
    (r"\frac{e-e^{-1}}2", r"\sinh 1", "Compute the integral."),
    (r"\sqrt2", r"\sqrt{2}", "x"),
]
UNDONE = [
    (
        r"\sqrt2",
        "".join("+\\sqrt3-\\sqrt3" for _ in range(42))[1:] + r"+\sqrt2\cdot\sqrt9-2\sqrt2",
        "x",
    ),
    (
        r"2\cdot3^2\cdot5\cdot7",
        r"2\cdot3^{3-1}\cdot5\cdot7",
        "Find the prime factorization of 630.",
    ),
    (r"2+i", r"\sqrt{3+4i}", "Find the square root of $3+4i$ with positive real part."),
    ("x>2", r"x>\log_2 4", "For which x?"),
    (r"\frac{18}{25}", "0.72", r"Write $72\%$ as a common fraction."),
    (r"2\cdot3^2\cdot5\cdot7", r"3\cdot210", "Find the prime factorization of 630."),
    (r"(-5,14,-11)", "(4+(-9),6+8,-4+(-7))", "Compute $(4,6,-4)+(-9,8,-7)$."),
]


def is_right(gold, answer, problem):
    return grade_maths(rf"\boxed{{{answer}}}", gold, problem=problem).score > 0


@pytest.mark.parametrize(("gold", "answer", "problem"), RIGHT)
def test_it_is_accepted(gold, answer, problem):
    assert is_right(gold, answer, problem)

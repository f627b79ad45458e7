"""A copy of the question's formula is no answer, however the question sets or words it."""

from __future__ import annotations

import random

import pytest

from recipe.verify.maths.grade import grade_maths
from recipe.verify.maths.keys import key
from recipe.verify.maths.reading import read
from recipe.verify.maths.stated import formulas_of


def graded(gold: str, answer: str, problem: str) -> bool:
    return grade_maths(rf"$\boxed{{{answer}}}$", gold, problem=problem).score == 1


def key_of(text: str) -> str:
    return key(read(text).trees[0])


WORK = [
    *((rf"{a} \times {b} + {c}", f"{a * b + c}") for a, b, c in [(12, 34, 56), (7, 81, 9)]),
    *((f"({a}+{b})({b}+{c})", f"{(a + b) * (b + c)}") for a, b, c in [(3, 4, 5), (11, 2, 8)]),
    (r"\frac{3}{4}+\frac{5}{6}", r"\frac{19}{12}"),
    ("2^{10}-7", "1017"),
    (r"\sqrt{72}", r"6\sqrt{2}"),
    (r"\sqrt{27}-\sqrt{3}", r"2\sqrt{3}"),
    (r"\cos 15^\circ", r"\frac{\sqrt{6}+\sqrt{2}}{4}"),
    ("(2+3i)(4-i)", "11+10i"),
    ("(x+1)(x+2)", "x^2+3x+2"),
    (r"3x(x-2)", "3x^2-6x"),
]
WORDINGS = [
    *("Compute $@$.", "Compute $@=?$", "Compute $@=$ ____.", r"$$@ = \square$$", r"$@=\_\_\_$"),
    *(r"Compute $@ = \underline{\hspace{1cm}}$", r"Find $@=\boxed{?}$", r"\(@ = ?\)", r"\[@=\]"),
    *("Compute $@:$", r"Compute $@\text{ in simplest form}$.", r"Compute $@ \quad\text{exactly}$."),
    *(r"\begin{align*}@\end{align*}", "\\begin{align}\n&@ = ?\n\\end{align}"),
    *(r"Evaluate \begin{equation*}@\end{equation*}", r"Find \begin{gather*}@.\end{gather*}"),
    *("Compute <math>@</math>.", "Compute <math>@ = ?</math>", "Compute `@`.", "计算：$@=$"),
    *(r"Compute $\left[@\right]$.", r"\[\begin{aligned}@&=?\end{aligned}\]", r"$\{@\}=?$"),
    *("What is @?", "Compute @ = ____", "Compute **@**."),
]


@pytest.mark.parametrize("wording", WORDINGS)
def test_the_formula_of_a_question_is_found_in_every_setting(wording):
    for formula, gold in WORK:
        problem = wording.replace("@", formula)
        for copy in (formula, f"({formula})+0"):
            assert not graded(gold, copy, problem), (copy, problem)
        assert graded(gold, f"{gold} ", problem)


PLAIN = [
    *((f"1,{a} + 5,{b}", f"{1000 + a + 5000 + b}") for a, b in [(234, 678), (100, 999)]),
    *(("1{,}234 + 5{,}678", "6912"), (r"3\,000 + 4", "3004"), ("12,345 - 678", "11667")),
    *(("5² + 12²", "169"), ("6 − 9", "-3"), ("6 – 9", "-3"), ("48 ÷ 6 + 2", "10"), ("2¹⁰", "1024")),
    *(("√72", r"6\sqrt2"), ("sqrt(72)", r"6\sqrt2"), ("√27 − √3", r"2\sqrt3")),
    *(("cos 15°", r"\frac{\sqrt6+\sqrt2}{4}"), ("sin(π/3)", r"\frac{\sqrt3}{2}")),
    *(("[3 + (4 - 2)] * 5", "25"), ("2[3(4+1)-5]", "20")),
]


@pytest.mark.parametrize("wording", ["What is @?", "Compute @.", "Calculate: @ =", "@ = ?", "@"])
def test_a_formula_without_marks_is_found(wording):
    for formula, gold in PLAIN:
        copy = formula.replace("[", "(").replace("]", ")")
        for answer in (copy, f"{copy}+0"):
            assert not graded(gold, answer, wording.replace("@", formula)), answer
        assert graded(gold, f"{gold} ", wording.replace("@", formula))


def test_brackets_that_group_are_no_interval_and_no_set():
    for formula in (r"2[3(4+1)-5]", r"2\{3(4+1)-5\}", r"2\left[3(4+1)-5\right]", "2[3[4+1]-5]"):
        keys = formulas_of(f"Evaluate ${formula}$.")[0]
        assert key_of("2(3(4+1)-5)") in keys
    assert graded("[1,2]", "[1, 2]", "Solve $x^2-3x+2 \\le 0$ on $[1,2]$.")
    assert key_of(r"\sqrt[3]{54}") in formulas_of(r"Simplify $\sqrt[3]{54}=?$")[0]


@pytest.mark.parametrize(
    "asking",
    [
        *(
            "Factorization: $@=$ ____",
            "Decompose into factors: $@$.",
            "分解因式：$@$",
            "因式分解 $@$",
        ),
        *("Factorise $@$.", "Write $@$ in factored form.", "Break $@$ into linear factors."),
    ],
)
def test_factors_are_asked_for_in_many_words(asking):
    for root in range(2, 8):
        asked = asking.replace("@", f"x^3+{2 * root}x^2+{root * root}x")
        assert not graded(f"x(x+{root})^2", f"x(x^2+{2 * root}x+{root * root})", asked)
        assert graded(f"x(x+{root})^2", f"(x+{root})^2x", asked)


def powers() -> list[tuple[str, str]]:
    """Formulas that a law of exponents, signs or fractions makes shorter, and what they become."""
    cases, draw = [], random.Random(20_261_127)
    for a, b, c in [draw.sample(range(2, 10), 3) for _ in range(3)]:
        x, y, z = draw.sample("abcmnpxyz", 3)
        cases += [
            (rf"{x}^{{{a}}}\cdot {x}^{{{b}}}", f"{x}^{{{a + b}}}"),
            (f"({x}^{a})^{b}", f"{x}^{{{a * b}}}"),
            (f"({x}^{a}{y}^{b})^{c}", f"{x}^{{{a * c}}}{y}^{{{b * c}}}"),
            (f"({a}{x})({x}^{b})", f"{a}{x}^{{{b + 1}}}"),
            (f"-{x}^{a} \\cdot {x}^{b}", f"-{x}^{{{a + b}}}"),
            (rf"{a}^{{{b}}}\cdot {a}^{{{c}}}", f"{a}^{{{b + c}}}"),
            (f"{x}^{{1/{a}}}{x}^{{1/{b}}}", f"{x}^{{{a + b}/{a * b}}}"),
            (f"({x}^{{-{a}}})^{b}", rf"\frac{{1}}{{{x}^{{{a * b}}}}}"),
            (f"{x}-({y}-{z})", f"{x}-{y}+{z}"),
            (rf"\frac{{{x}}}{{{y}/{z}}}", rf"\frac{{{x}{z}}}{{{y}}}"),
            (rf"\frac{{{x}}}{{{y}}}\cdot\frac{{{z}}}{{{x}+{y}}}",)
            + (rf"\frac{{{x}{z}}}{{{y}({x}+{y})}}",),
        ]
    return cases


@pytest.mark.parametrize("asking", ["Simplify $@$.", "What is $@$?", "Write $@$ as one power: ___"])
def test_a_formula_that_a_law_makes_shorter_is_no_answer(asking):
    for formula, gold in powers():
        asked = asking.replace("@", formula)
        for copy in (formula, rf"1\cdot({formula})"):
            assert not graded(gold, copy, asked), (copy, asked)
        assert graded(gold, f"{gold} ", asked)


def test_an_answer_may_be_the_formula_that_the_gold_answer_is():
    for gold, answers in (
        (r"\frac{x}{2}", (r"\frac12 x", r"x\cdot\frac{1}{2}", "x/2")),
        (r"\frac{ac}{b}", (r"a\cdot\frac{c}{b}", r"\frac{c}{b}a", "ca/b")),
        ("a-b+c", ("c-b+a", "-b+(a+c)", "(a-b)+c", "a+(-b)+c")),
        ("x^2y", ("yx^2", r"x^2\cdot y", "1yx^2+0")),
    ):
        for answer in answers:
            for stated in (gold, answer):
                assert graded(gold, answer, f"Let $f={stated}$. What is $f$?"), (answer, stated)


EXPANDED = [
    *(("(a+b)^2", "a^2+2ab+b^2"), ("x(x+3)", "x^2+3x"), ("(x-1)(x^2+x+1)", "x^3-1")),
    *(("(x+y)(x-y)", "x^2-y^2"), ("2x(x+2)", "2x^2+4x"), ("a-(b-c)", "a-b+c")),
    *((r"\frac{1}{x}+\frac{1}{y}", r"\frac{x+y}{xy}"), ("(2x+y)(x-3y)", "2x^2-5xy-3y^2")),
]
PADDINGS = [
    *("@+1-1", "@+1-1+1-1", r"(@)\cdot 1!", r"(@)\cdot 0!", "@+0!-1", r"@+0\cdot 5", "2(@)/2"),
    *(r"(@)\cdot\frac{2}{2}", r"@+\sin 0", r"@+\ln 1", r"\binom{@}{1}", r"(@)\cdot 2^0", "-(-(@))"),
    *("1-1+@", r"\frac{@}{1!}", r"\frac{1}{\frac{1}{@}}", "@+e^0-1", r"\sqrt[1]{@}", "7+@-7"),
    *(r"3\cdot(@)\cdot\frac13", r"(@)\cdot(-1)^2", "@+i^2+1", "(@)^1"),
]


@pytest.mark.parametrize("padding", PADDINGS)
def test_a_formula_with_something_around_it_is_no_answer(padding):
    for formula, gold in EXPANDED:
        for asking in ("Multiply: $@$.", "Simplify $@=?$"):
            asked = asking.replace("@", formula)
            assert not graded(gold, padding.replace("@", formula), asked), (padding, asked)


def test_a_long_text_of_marks_is_read_once():
    for mark in (r"\begin{align}", "<math>", "`", "[", r"\text{", "=", "1,234", r"\sqrt[", "²"):
        formulas_of(mark * 4000)

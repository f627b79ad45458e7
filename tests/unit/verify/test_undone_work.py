"""Work left undone: an operation that the gold answer lacks, in a member, a side or a term."""

from __future__ import annotations

import itertools

import pytest

from recipe.verify.maths.grade import grade_maths


def is_right(answer: str, gold: str, problem: str = "") -> bool:
    return grade_maths(rf"$\boxed{{{answer}}}$", gold, problem=problem).score == 1


def undone(n: int) -> list[str]:
    """The whole number n with a root or function that somebody has to work out."""
    return [
        rf"\sqrt{{{n * n}}}",
        f"{n * n}^{{1/2}}",
        rf"\sqrt[3]{{{n**3}}}",
        rf"\sqrt{{{n * n - 1}+1}}",
        rf"(\log_2 {2**n})",
        rf"\frac{{\ln {3**n}}}{{\ln 3}}",
        rf"{n}\sin\frac{{\pi}}{{2}}",
        rf"{n}\cos 0",
        rf"{n}\tan\frac{{\pi}}{{4}}",
        rf"\frac{{{n}\pi}}{{\pi}}",
        rf"(-{n}e^{{i\pi}})",
    ]


# Gold answers that are no rational numbers; @ is a number.
FRAMES = [
    "x > @",
    r"x \ge @",
    r"1 < x \le @",
    r"(@,\infty)",
    r"[@,\infty)",
    r"(-\infty,@)\cup(50,\infty)",
    r"(@, \frac{\pi}{2})",
    r"(\frac{\pi}{2}, @)",
    r"(@, \sqrt{2})",
    r"@, \sqrt{2}",
    r"\sqrt{2}, @",
    r"@+2\pi",
    r"@+\sqrt{2}",
    r"\sqrt{3}-@",
    r"@\pi",
    "@+i",
    "@x+1",
    "x^2+@",
    "y=@x+1",
    r"\begin{pmatrix} @ \\ 1 \end{pmatrix}",
    r"\begin{pmatrix} @ & \sqrt{2} \end{pmatrix}",
    r"@+\ln 3",
    r"\arctan 2+@",
    r"\{@, \pi\}",
    r"@:\sqrt{3}",
    r"\frac{x^2}{@}+y^2=1",
    "x^2+y^2=@",
]


@pytest.mark.parametrize("frame", FRAMES)
def test_no_root_or_function_stands_for_a_number_beside_whatever_else(frame):
    gold = frame.replace("@", "5")
    assert is_right(f"{gold} ", gold)
    assert [each for each in undone(5) if is_right(frame.replace("@", each), gold)] == []


def test_an_inequality_is_undone_also_where_the_gold_answer_is_an_interval():
    for n in (2, 7):
        for gold, other in itertools.permutations((rf"({n},\infty)", f"x > {n}"), 2):
            assert is_right(other, gold)
            for number in undone(n):
                assert not is_right(other.replace(f"{n}", number, 1), gold)


ANGLES = [
    (r"\frac{\pi}{6}", r"\arcsin\frac12"),
    (r"\frac{\pi}{4}", r"\arctan 1"),
    (r"\frac{\pi}{2}", r"\arccos\frac{0}{\sqrt{0^2+3^2}}"),
    (r"\frac{\pi}{7}", r"\arccos(\cos\frac{\pi}{7})"),
    (r"\frac{\sqrt6+\sqrt2}{4}", r"\sin 75^\circ"),
    (r"\frac{\sqrt6+\sqrt2}{4}", r"\cos 15^\circ"),
    (r"\frac{\sqrt6+\sqrt2}{4}", r"\frac{i^{75/90}-i^{-75/90}}{2i}"),
    (r"\frac{\sqrt3}{2}", r"\sin\frac{\pi}{3}"),
    (r"\frac{\sqrt{21}}{5}", r"\cos(\arcsin\frac25)"),
    ("2+i", r"\sqrt{3+4i}"),
    ("2+i", "(3+4i)^{1/2}"),
    ("2.12345", r"\log_2 2^{2.12345}"),
    ("-2.12345", r"-\log_2 2^{2.12345}"),
]


@pytest.mark.parametrize(("gold", "answer"), ANGLES)
def test_a_function_of_the_question_is_no_value(gold, answer):
    for problem in ("", "What is the sine of 75 degrees?"):
        assert not is_right(answer, gold, problem)
        assert not is_right(rf"({answer}, \sqrt{{5}})", rf"({gold}, \sqrt{{5}})", problem)
        assert is_right(f"{gold} ", gold, problem)
    assert is_right(f"{answer} = {gold}", gold)  # one side is finished


SAME = [
    (r"\arctan 2", r"\arcsin\frac{2}{\sqrt5}"),
    (r"\arctan 2", r"\frac{\pi}{2}-\arctan\frac12"),
    (r"\log_2 5", r"\frac{\ln 5}{\ln 2}"),
    (r"\log 6", r"\log 2+\log 3"),
    (r"\frac12\ln 2", r"\ln\sqrt2"),
    (r"\sqrt{e}", "e^{1/2}"),
    (r"\sqrt{8}", r"2\sqrt2"),
    (r"2\sqrt2", "8^{1/2}"),
    (r"i\sqrt3", r"\sqrt{-3}"),
    (r"\sin 40^\circ", r"\cos\frac{5\pi}{18}"),
    (r"\cos 40^\circ", r"\sqrt{1-\sin^2 40^\circ}"),
    (r"\frac{e^x-e^{-x}}{2}", r"\sinh x"),
    (r"\cos x+i\sin x", "e^{ix}"),
    (r"\frac{-1+i\sqrt3}{2}", r"e^{2\pi i/3}"),
    (r"2^n", r"e^{n\ln 2}"),
    (r"\sqrt{x^n}", "x^{n/2}"),
    ("|x|", r"\sqrt{x^2}"),
    ("1.41421", r"\sqrt2"),
    ("120", "5!"),
    ("10", r"\binom{5}{2}"),
    (r"\sqrt2, 3", r"3, 2^{1/2}"),
    (r"(\sqrt2, 3)", r"(\frac{2}{\sqrt2}, 3)"),
    (r"x > \sqrt2", r"(\sqrt2,\infty)"),
    (r"(\sqrt2,3)", r"\sqrt2 < x < 3"),
    (r"\sqrt2 < x < 3", r"(\sqrt2,3)"),
    (r"\sqrt2 x+y=1", r"x+\frac{y}{\sqrt2}=\frac{\sqrt2}{2}"),
    (r"1+\sqrt2", r"1+\sqrt2 \approx 2.414"),
]


@pytest.mark.parametrize(("gold", "answer"), SAME)
def test_operations_of_the_gold_answer_may_be_written_otherwise(gold, answer):
    assert is_right(answer, gold)


def test_a_tolerance_leaves_the_operations_open():
    assert is_right(r"\sqrt{17.64}", "4.2 (tolerance 0.1)")

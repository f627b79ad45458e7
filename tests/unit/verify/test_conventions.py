"""Signs that mean something by convention, and points, holes and forms: right and wrong ones."""

from __future__ import annotations

import pytest

from recipe.verify.maths.grade import grade_maths

INTERVAL = "Solve $x^2<4x+5$. Give the answer in interval notation."
VECTOR = r"Find the vector $\mathbf{v}$."
CROSS = r"Compute $\mathbf{a} \times \mathbf{b}$."
COMMITTEES = "How many committees of 3 can be chosen from 10 people?"
BASE = "Write $42$ in base eight."
BETWEEN = r"Find the angle between the vectors $(1,0)$ and $(1,\sqrt{3})$."
HOURS = "How many hours does the trip take?"
MINUTES = "How many minutes does the trip take?"
HOLE = r"Simplify $\frac{x^2-4}{x-2}$."
TWO_HOLES = r"Simplify $\frac{x^2}{x(x-3)}$."
DECIMAL = "Add $1.25$ to the number $2.4$. Express the result as a decimal."
LINE = 'Find the line. Express your answer in the form "$y = mx + b$".'
POLAR = "Write $z$ in polar form."
REMAINDER = "Find the remainder when $p(x)$ is divided by $x^2-1$."

# gold answer, problem, right answers, wrong ones
FRENCH = [
    (
        "(-1,5)",
        INTERVAL,
        ["]-1,5[", "]-1;5[", r"\left]-1,5\right[", r"x\in]-1,5["],
        ["[-1,5[", "]-1,5]", "]5,-1[", "]-1,5", "-1,5[", "(-1,5[", "]-1,5)", "]1,5[", "[]-1,5[]"],
    ),
    ("[-2,3)", INTERVAL, ["[-2,3["], ["]-2,3[", "[-2,3]", "]-2,3]", "[3,-2[", "]]-2,3["]),
    ("(-2,3]", INTERVAL, ["]-2,3]"], ["]-2,3[", "[-2,3[", "[-2,3]"]),
    (
        r"(-\infty,1)\cup(2,3]",
        INTERVAL,
        [r"]-\infty,1[\cup]2,3]", r"]-\infty,1[ U ]2,3]"],
        [r"]-\infty,1]\cup]2,3]", r"]-\infty,1[\cap]2,3]", r"]-\infty,3]"],
    ),
]
POINTS = [
    ("(-1,5)", "Solve the system $x+y=4$, $x-y=-6$.", ["x=-1, y=5"], ["]-1,5[", "-1<x<5"]),
    ("(-1,5)", "Find the intersection of the two lines.", ["(-1,5)"], ["]-1,5[", "-1<x<5"]),
    ("(-1,5)", "Where do the lines $y=x+6$ and $y=4-x$ meet?", ["(-1,5)"], ["]-1,5[", "-1<x<5"]),
    ("(-1,5)", "What is the vertex of the parabola?", ["(-1,5)"], ["]-1,5[", "-1<x<5"]),
    ("(-1,5)", "Find the intersection of the intervals.", ["]-1,5[", "-1<x<5"], ["[-1,5["]),
    ("(-1,5)", "Solve the system of inequalities.", ["]-1,5[", "-1<x<5"], [r"-1\le x<5"]),
    (
        "(-1,5)",
        "Find all values of $k$ for which the system has a solution.",
        ["]-1,5[", "-1<k<5"],
        ["-1<k", r"-1<k\le 5"],
    ),
    ("(-1,5)", "Solve for $x$ and $y$: $x+y=4$, $y-x=6$.", ["x=-1, y=5"], ["]-1,5[", "-1<x<5"]),
    ("(-1,5)", r"Find $A\cap B$, the intersection $A\cap B$.", ["]-1,5[", "-1<x<5"], ["[-1,5["]),
    ("(-1,5)", "Find the intersection of $(-1,7)$ and $(-2,5)$.", ["-1<x<5"], ["[-1,5["]),
    (
        r"(-\infty,5)",
        "For which $k$ do the graphs not intersect?",
        ["]-\\infty,5[", "k<5"],
        ["k>5"],
    ),
]
VECTORS = [
    (
        r"\begin{pmatrix}1\\2\end{pmatrix}",
        VECTOR,
        [
            "(1,2)^T",
            r"(1,2)^{\top}",
            r"[1,2]^\intercal",
            r"(1,2)^{\text{T}}",
            r"\langle 1,2\rangle",
        ],
        ["(2,1)^T", "(1,2)^{2}", "(1,2)^{-T}", "(1,2)^{TT}", "(1,2)^T+1", "(1,2,0)^T", "1^T"],
    ),
    (
        r"\begin{pmatrix}1\\2\end{pmatrix}",
        VECTOR,
        [r"\mathbf{i}+2\mathbf{j}", r"\hat\imath+2\hat{\jmath}", r"\vec{i}+2\vec{j}", "v=i+2j"],
        [
            r"\mathbf{j}+2\mathbf{i}",
            r"\mathbf{i}-2\mathbf{j}",
            r"\mathbf{i}+2\mathbf{k}",
            r"\mathbf{i}+2",
            r"\mathbf{i}\mathbf{j}",
            "1+2i",
            r"\mathbf{i}+2\mathbf{j}+\mathbf{k}",
            r"\mathbf{i}+\mathbf{j}+\mathbf{j}",
            r"2(\mathbf{i}+2\mathbf{j})",
            "x+2y",
        ],
    ),
    (
        "(2,0)",
        VECTOR,
        [r"2\hat{i}", r"2\mathbf{i}+0\mathbf{j}"],
        ["2i", "-2i", r"2\mathbf{j}", "2"],
    ),
    ("(3,-4,0)", CROSS, [r"3\mathbf{i}-4\mathbf{j}"], [r"3\mathbf{i}+4\mathbf{j}", r"3i-4k"]),
    ("2-3i", "Compute $z$.", ["2-3i"], [r"2\mathbf{i}-3\mathbf{j}", "2-3j"]),
    ("(2,-3)", INTERVAL, [], [r"2\mathbf{i}-3\mathbf{j}", "(2,-3)^T"]),
    (
        r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
        r"What is the transpose of $\begin{pmatrix}1&3\\2&4\end{pmatrix}$?",
        [r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"],
        [
            r"\begin{pmatrix}1&3\\2&4\end{pmatrix}^T",
            r"\begin{bmatrix}1&3\\2&4\end{bmatrix}^{\top}",
            r"\begin{pmatrix}1&2\\3&4\end{pmatrix}^T",
            r"\begin{pmatrix}1&3\\2&4\end{pmatrix}",
        ],
    ),
    (
        r"\begin{pmatrix}1\\2\\3\end{pmatrix}",
        VECTOR,
        [r"\begin{pmatrix}1&2&3\end{pmatrix}^T", "(1,2,3)^T"],
        [r"\begin{pmatrix}3&2&1\end{pmatrix}^T", r"2(1,2,3)^T", r"((1,2,3)^T)^2", "]1,2,3[^T"],
    ),
    ("(0,2)", "For what values of $x$ is $f$ negative?", ["0<x<2"], ["2j", r"2\mathbf{j}"]),
]
COMBINATIONS = [
    (
        "120",
        COMMITTEES,
        ["_{10}C_3", r"{}_{10}\mathrm{C}_{3}", "{}^{10}C_3", "C(10,3)", "C(10,3)=120"],
        ["_{3}C_{10}", "_{10}C_4", "C(3,10)", "_{10}P_3", "x_{10}C_3", "2^{10}C_3", "D(10,3)"],
    ),
    ("(10,3)", "Find the point $C$.", ["C(10,3)"], ["C(3,10)", "120", "_{10}C_3"]),
    ("120", "Find the point $C$.", [], ["C(10,3)"]),
    ("120", "In how many ways, $C(10,3)$?", ["120", "C(10,3)=120"], ["C(10,3)", "_{10}C_3"]),
    ("120", "Compute $C(10,3)$.", ["120"], ["C(10,3)", "_{10}C_3", r"\binom{10}{3}"]),
    ("5", "The point $C(5,1)$ is chosen. What is its abscissa?", ["5"], ["C(5,1)"]),
]
BASES = [
    (
        "52_8",
        BASE,
        [r"52_{\text{eight}}", "52_{eight}", r"52_\text{Eight}", r"52_{\text{base }8}"],
        [r"52_{\text{nine}}", r"52_{\text{eighty}}", r"25_{\text{eight}}", "52_{e}", "52_{one}"],
    ),
    (
        "52_8",
        BASE,
        [r"52 \text{ in base eight}"],
        [r"52 \text{ in base nine}", r"52_{\text{base}}"],
    ),
    ("52", BASE, [r"52_{\text{eight}}"], [r"52_{\text{six}}", r"52_{\text{ten}}"]),
]
ANGLES = [
    (
        r"\frac{\pi}{3}",
        BETWEEN,
        [r"60^\circ", r"60 \text{ degrees}"],
        ["60", r"61^\circ", r"-60^\circ", r"60 \text{ radians}", r"60\pi"],
    ),
    (r"\frac{\pi}{3}", f"{BETWEEN} Answer in radians.", [], [r"60^\circ", "60"]),
    (r"\frac{\pi}{3}", r"Find the angle $\theta$ in $[0,2\pi)$.", [], [r"60^\circ"]),
    (r"\frac{\pi}{3}", "What is the area of the sector with angle $A$?", [], [r"60^\circ"]),
    (r"\frac{\pi}{3}", r"Compute $\arccos\frac12$.", [], [r"60^\circ"]),
    (r"\frac{\pi}{3}", "Find the angle bisector length.", [], [r"60^\circ"]),
    (r"\frac{\pi}{3}", "Find the angle's sine.", [], [r"60^\circ"]),
    (
        r"2\operatorname{cis}60^\circ",
        r"Write $1+i\sqrt3$ in polar form.",
        [r"2(\cos60^\circ+i\sin60^\circ)"],
        [r"1+i\sqrt3", r"2(\frac12+\frac{i\sqrt3}{2})", r"2\operatorname{cis}30^\circ"],
    ),
    (
        r"2e^{i\pi/3}",
        POLAR,
        [r"2\operatorname{cis}\frac{\pi}{3}", r"2\text{ cis }60^\circ"],
        [r"2\operatorname{cis}\frac{\pi}{6}", r"\operatorname{cis}\frac{\pi}{3}"],
    ),
    (r"1+i\sqrt3", "Find $z$.", [], [r"2\operatorname{cis}\frac{\pi}{3}"]),
]
COMPOUNDS = [
    (
        "2.5",
        HOURS,
        [
            r"2 \text{ hours } 30 \text{ minutes}",
            r"\text{2 hours and 30 minutes}",
            r"2\text{ h }30\text{ min}",
        ],
        [
            r"2 \text{ hours } 50 \text{ minutes}",
            r"1 \text{ hours } 90 \text{ minutes}",
            r"2 \text{ minutes } 30 \text{ seconds}",
            r"30 \text{ minutes } 2 \text{ hours}",
            r"-2 \text{ hours } 30 \text{ minutes}",
            r"\text{2 hours or 30 minutes}",
            r"150 \text{ minutes}",
        ],
    ),
    ("150", MINUTES, [r"150 \text{ minutes}"], [r"2 \text{ hours } 30 \text{ minutes}"]),
    (r"150 \text{ minutes}", "", [r"2 \text{ hours } 30 \text{ minutes}"], ["2.5"]),
    (r"2.5 \text{ hours}", "", [r"2 \text{ hours } 30 \text{ minutes}"], [r"2.5 \text{ minutes}"]),
    (r"2 \text{ hours } 30 \text{ minutes}", "", [r"2.5 \text{ hours}"], ["2.5", "150", "2"]),
    ("2.5", "How many apples are left?", [], [r"2 \text{ hours } 30 \text{ minutes}"]),
    (
        "2.5",
        "How many hours are 2 hours 30 minutes?",
        ["2.5"],
        [r"2 \text{ hours } 30 \text{ minutes}"],
    ),
    (
        r"150 \text{ minutes}",
        "Convert 2.5 hours to minutes.",
        ["150"],
        [r"2 \text{ hours } 30 \text{ minutes}", r"2.5 \text{ hours}"],
    ),
    *(
        (
            r"150 \text{ minutes}",
            f"Convert {stated} to minutes.",
            ["150"],
            [r"2 \text{ hours } 30 \text{ minutes}"],
        )
        for stated in (
            "2 h 30 min",
            "$2$ hours $30$ minutes",
            r"$2\text{ h } 30\text{ min}$",
            "2:30",
        )
    ),
    (
        r"2 \text{ hours } 30 \text{ minutes}",
        "Convert 150 minutes to hours and minutes. Show all steps.",
        [r"2 \text{ hours } 30 \text{ minutes}"],
        [r"150 \text{ minutes}", r"2.5 \text{ hours}", "150"],
    ),
    (
        r"2 \text{ hours}, 30 \text{ minutes}",
        "How long do both take?",
        [r"2 \text{ hours}, 30 \text{ minutes}"],
        [r"150 \text{ minutes}", r"2.5 \text{ hours}"],
    ),
    (
        "5.5",
        "How tall is he, in feet?",
        [r"5 \text{ feet } 6 \text{ inches}"],
        [r"5 \text{ feet}"],
    ),
    ("3.50", "How many dollars is it?", [r"3 \text{ dollars and } 50 \text{ cents}"], ["3.05"]),
]
HOLES = [
    (
        "x+2",
        HOLE,
        [r"x+2, x\ne 2", r"x+2 \text{ for } x \neq 2"],
        [r"x+2, x\ne 3", r"x+2, x\ne -2", r"x+2, x\ne 2, 3", r"x+2, x\ne \pm 2", r"x+2, y\ne 2"],
    ),
    (
        r"\frac{x}{x-3}",
        TWO_HOLES,
        [r"\frac{x}{x-3}, x\ne 3", r"\frac{x}{x-3}, x\ne 0, 3"],
        [r"\frac{x}{x-3}, x\ne 1", r"\frac{x}{x-3}, x\ne 0, 1"],
    ),
]
ROUNDINGS = [
    ("12.34567", "", ["12.34567", "12.345670"], ["12.345671", "12.345672"]),
    ("2.71828", "", ["2.71828"], ["2.718281", "2.718282"]),
    ("0.333333", "", [r"\frac13"], ["0.3333333"]),
    ("3.14159265", "", ["3.141593", "3.1415926"], ["3.141594", "3.141592653"]),
    ("0.12345678", "Write it as a terminating decimal.", ["0.12345678"], ["0.123457"]),
    ("0.375", "What fraction of them passed?", ["0.375", r"37.5\%"], ["0.38"]),
    ("4.2 (tolerance 0.1)", "Simplify it.", ["4.25"], ["4.4"]),
]
FORMS = [
    ("y=2x+3", LINE, ["y=2x+3", "y=3+2x"], ["2x-y+3=0", "y-3=2x", "y=2(x+1)+1"]),
    ("3.65", DECIMAL, ["3.65", "3.650"], ["1.25+2.4", r"\frac{73}{20}", r"3\frac{13}{20}"]),
    ("-0.5", "Write the slope as a decimal.", ["-0.5", r"-\frac12=-0.5"], [r"-\frac12", "0.5"]),
    ("3.65", "Find it as a fraction or a decimal.", ["3.65", r"\frac{73}{20}"], ["3.6"]),
    (
        r"\frac{\sqrt{6}+\sqrt{2}}{4}",
        r"Find the exact value of $\sin 75^\circ$.",
        [r"\frac{\sqrt6}{4}+\frac{\sqrt2}{4}"],
        [
            r"\sin 75^\circ",
            r"\cos 15^\circ",
            r"\frac{\sqrt6}{4}-\frac{\sqrt2}{4}",
            r"2\sin75^\circ/2",
        ],
    ),
    (
        r"\begin{cases} x & x>0 \\ -x & x\le 0\end{cases}",
        "",
        [r"\begin{cases} x, & \text{if } x>0 \\ -x, & \text{for } x\leq 0\end{cases}"],
        [r"\begin{cases} x & x<0 \\ -x & x\le 0\end{cases}", "x"],
    ),
    *(
        ("y=2x+3", f"Give the line {form}.", ["y=2x+3"], ["2x-y+3=0", "y=2(x+1)+1"])
        for form in (
            "in the form: $y=mx+b$",
            r"in the form \(y=mx+b\)",
            "as $y=mx+b$",
            "in the form ‘$y=mx+b$’",
            "in the form `y=mx+b`",
        )
    ),
    ("y=2x+3", "Find the line, such as $y=mx+b$.", ["y-3=2x"], ["y=2x"]),
    ("0.75", "Give it in decimal form, or as a fraction.", ["0.75", r"\frac34"], ["0.8"]),
    ("3.65", "Give the answer in decimal form.", ["3.65"], ["1.25+2.4", r"\frac{73}{20}"]),
    (
        r"3\sqrt3",
        r"Compute $\sqrt{12}+\sqrt{27}-2\tan 60^\circ$.",
        [r"3\sqrt3"],
        [r"\sqrt{12}+\sqrt{27}-2\sqrt3"],
    ),
    ("25.0", "Round to one decimal place.", ["25", "25.0"], ["24.9"]),
]
NAMES = [
    ("-2,-2", "Find $a$ and $b$.", ["a=b=-2"], ["a=b=2", "a=b", "a=-2=b=3", "a=b=c=-2"]),
    ("(1,1,1)", "Find all $(x,y,z)$.", ["x=y=z=1"], ["x=y=1", "x=y=z", "x=y=z=1=2"]),
    ("5", "Find $x+y$.", ["x+y=5"], ["x=y=5"]),
    (
        "f(n)=n, g(n)=1",
        "Find all pairs of functions.",
        [r"f(n)=n \text{ and } g(n)=1"],
        [r"f(n)=n \text{ or } g(n)=1", "f(n)=1, g(n)=n"],
    ),
    ("x=1, y=2", "Find $x$ and $y$.", ["x=1, y=2"], [r"x=1 \text{ or } y=2"]),
    ("1,2", "Solve for $x$.", [r"x=1 \text{ or } x=2"], [r"x=1 \text{ or } y=2"]),
    ("-13x+3", REMAINDER, ["r(x)=-13x+3"], ["r(x)=-13x-3", "s(x)=-13x+3"]),
    ("-13x+3", REMAINDER, ["R(x)=-13x+3"], ["r(2)=-13x+3", "r(x)"]),
    ("-13x+3", "Simplify $5x-18x+3$.", ["-13x+3"], ["r(x)=-13x+3"]),
]
TABLES = [
    FRENCH, POINTS, VECTORS, COMBINATIONS, BASES, ANGLES, COMPOUNDS, HOLES, ROUNDINGS, FORMS, NAMES,
]  # fmt: skip


@pytest.mark.parametrize(
    ("gold", "problem", "right", "wrong"), [row for table in TABLES for row in table]
)
def test_a_right_spelling_is_accepted_and_a_near_miss_refused(gold, problem, right, wrong):
    assert [each for each in right if not is_right(rf"\boxed{{{each}}}", gold, problem)] == []
    assert [each for each in wrong if is_right(rf"\boxed{{{each}}}", gold, problem)] == []


@pytest.mark.parametrize(
    ("response", "right", "wrong"),
    [
        (r"$\boxed{52}_{\text{eight}}$", "52_8", "52_9"),
        (r"$\boxed{52}_{eight}$", "52_8", "52_9"),
        (r"$\boxed{52}_{\text{base 8}}$", "52_8", "52_9"),
        (r"$\boxed{52}_{\text{eighteen}}$", "52_{18}", "52_8"),
        (r"$\boxed{5}_{\text{total}}$", "5", "6"),
        (r"It costs \boxed{5} dollars and 25 cents more than before.", "5", "5.25"),
        (r"There are \boxed{12} apples and a quarter of the pears.", "12", "12.25"),
        ("It takes \\boxed{2} hours.\n\n30 minutes are for lunch.", "2", "2.5"),
        (r"It takes $\boxed{2}$ hours.", "2", "3"),
        (r"It takes $\boxed{45}$ minutes, 15 minutes more than before.", "45", "60"),
    ],
)
def test_a_base_or_unit_behind_a_box_is_read(response, right, wrong):
    assert is_right(response, right)
    assert not is_right(response, wrong)


@pytest.mark.parametrize(
    "response",
    [
        r"It takes \boxed{2} hours and 30 minutes.",
        r"It takes $\boxed{2 \text{ hours}}$ and 30 minutes.",
        r"It takes $\boxed{2}\text{ hours } 30 \text{ minutes}$.",
        r"It costs \$\boxed{2} and 50 cents.",
        r"It takes \boxed{2} hours and thirty minutes.",
        r"It takes \boxed{2} hours plus 30.5 minutes.",
        r"It takes $\boxed{2}\,\text{h}\,30\,\text{min}$.",
        r"It takes \boxed{2 \text{ hours}}, 30 minutes.",
        r"It takes \boxed{2} HOURS AND 30 MINUTES.",
        r"It takes \boxed{2}:30 hours.",
        r"It takes \boxed{2}½ hours.",
        r"It takes \boxed{2} and a half hours.",
        r"It measures \boxed{2} ft. 6 in.",
    ],
)
def test_a_box_with_a_smaller_unit_behind_it_is_only_a_part(response):
    assert not is_right(response, "2")


def is_right(response: str, gold: str, problem: str = "") -> bool:
    verdict = grade_maths(f"Thus the answer is {response}.", gold, problem=problem)
    return verdict.reason == "correct"

"""Notation with more than one reading: generated right answers, and near misses of them."""

from __future__ import annotations

import itertools
import random

from recipe.verify.choice import choice_verdict
from recipe.verify.maths.grade import grade_maths, quick_verdict

BRACKETS = (("(", ")"), ("[", "]"), (r"\begin{pmatrix}", r"\end{pmatrix}"))


def accepts(gold, candidate, problem=""):
    return grade_maths(rf"\boxed{{{candidate}}}", gold, problem=problem).reason == "correct"


def bracketed(pair, members):
    return pair[0] + (r"\\ " if "begin" in pair[0] else ",").join(map(str, members)) + pair[1]


def test_a_sign_pair_inside_a_bracket_makes_two_brackets_and_no_longer_one():
    rng = random.Random(6)
    for pair, size in itertools.product(BRACKETS, (2, 3, 4)):
        values = rng.sample(range(1, 40), size)
        place = rng.randrange(size)
        value = values[place]
        with_sign = [[*values[:place], s * value, *values[place + 1 :]] for s in (1, -1)]
        answer = bracketed(pair, [*values[:place], rf"\pm {value}", *values[place + 1 :]])
        assert accepts(",".join(bracketed(pair, each) for each in with_sign), answer)
        for order in ((value, -value), (-value, value)):
            spliced = bracketed(pair, [*values[:place], *order, *values[place + 1 :]])
            assert not accepts(spliced, answer), answer
            assert not accepts(spliced, answer.strip("()[]")), answer  # nor without brackets
        assert not any(accepts(bracketed(pair, each), answer) for each in with_sign)


def test_a_sum_that_the_gold_lacks_is_refused_before_it_is_added_up():
    rng = random.Random(7)
    bodies = ("k^{n}", r"\sin(k n)", r"\sqrt[7]{k+\sin(k)}", r"\log(k+n^2)", r"\frac{1}{k+n}")
    for gold, body in itertools.product(("n", "(-1)^n", r"\sqrt{n}+1", r"\sqrt{2}"), bodies):
        series = rng.choice((r"\sum", r"\prod")) + rf"_{{k=1}}^{{{rng.randint(1500, 1990)}}} {body}"
        for answer in (rf"{gold}+0\cdot {series}", rf"{gold}\cdot 1^{{{series}}}"):
            # no algebra: the calling process decides, in milliseconds
            assert quick_verdict(rf"\boxed{{{answer}}}", gold).reason == "wrong"


def test_a_sum_that_is_worked_out_on_the_other_side_is_still_right():
    assert accepts("5050", r"\sum_{k=1}^{100} k = 5050")
    assert accepts("x^2+x+1", r"\sum_{k=0}^{2} x^k = 1+x+x^2")
    assert not accepts("5050", r"\sum_{k=1}^{100} k") and not accepts("5050", r"\sum_{k=1}^{99} k")
    assert accepts(r"\sum_{k=1}^{10} k^n", r"\sum_{j=1}^{10} j^n")


FORMULAS = (("$", "$"), ("$$", "$$"), (r"\[ ", r" \]"), (r"\(", r"\)"), ("$x = ", "$"))
# What stands before and behind a box: the first change its value, the second do not.
CHANGING = [(sign, "") for sign in ("-", "- ", r"-\,", r"\pm", r"\mp ", "−", "-1\\cdot", "0-")]
CHANGING += [(factor, "") for factor in ("2", r"2\cdot ", r"\pi", r"\frac{1}{2}", r"\sqrt{3}\,")]
CHANGING += [("", tail) for tail in (r"\pi", "^2", "^{-1}", r"\cdot 3", "/4", r"\times 10^3", "i")]
CHANGING += [(r"\frac{", "}{2}"), (r"-\frac{", "}{3}"), (r"-\left(", r"\right)")]
CHANGING += [("-", r"\text{ cm}"), ("", r"\pi\text{ cm}^2"), (r"-\$", "")]
CHANGING += [("", tail) for tail in ("6", "{6}", ",000", "{,}000", ".5")]
KEEPING = [("", tail) for tail in (".", "!", r"\text{ cm}^2", r"\ ")]
KEEPING += [("", tail) for tail in (r"\text{ and so on}", r"\pmod{7}", " = y", r"\,\mathrm{m/s}")]
KEEPING += [
    ("", tail) for tail in (r"\quad (1)", r"\tag{2}", r"\checkmark", "x^2", r"^{\text{th}}")
]
KEEPING += [(r"\$", ""), ("+", ""), ("{", "}"), (r"\textbf{", "}"), ("2^{", "}"), ("3+", "i")]
KEEPING += [(r"\left(", r"\right)"), ("x-", ""), (r"2\text{ or }", "")]
PROSE = [("- ", ""), ("**", "**"), ("so - ", " dollars"), ("$x$ - ", "")]
PROSE += [
    ("It is ", " (five)"),
    ("", " - done"),
    ("1. ", "\n\n2"),
    ("costs $10 - so ", "!"),
    ("", "th"),
]


def test_a_sign_factor_or_power_at_the_box_makes_the_answer_another():
    for (start, end), (left, right) in itertools.product(FORMULAS, CHANGING):
        response = rf"So it is {start}{left}\boxed{{5}}{right}{end}."
        assert grade_maths(response, "5").reason == "malformed", response


def test_units_words_and_punctuation_at_the_box_change_nothing():
    for (start, end), (left, right) in itertools.product(FORMULAS, KEEPING):
        response = rf"So it is {start}{left}\boxed{{5}}{right}{end}."
        assert grade_maths(response, "5").reason == "correct", response
    for left, right in PROSE:
        assert grade_maths(rf"{left}\boxed{{5}}{right}", "5").reason == "correct", (left, right)
        assert grade_maths(rf"{left}$\boxed{{5}}${right}", "5").reason == "correct", (left, right)


# Right answers, and at their end the same notation of another value.
SPELLINGS = {
    r"({a},{b}]": [
        *(r"\{x \mid {a} < x \le {b}\}", r"\{x : {a} < x \leq {b}\}", r"\{x : {a} < x < {b}\}"),
    ],
    r"(-\infty,{a})\cup({b},\infty)": [
        *(r"\{x \in \mathbb{R} \mid x < {a} \text{ or } x > {b}\}", r"(-\infty,{a}), ({b},\infty)"),
        *(r"(-\infty,{a}) \text{ and } ({b},\infty)", r"(-\infty,{b}), ({a},\infty)"),
    ],
    r"(-\infty,{a})\cup({a},\infty)": [
        *(r"\mathbb{R} - \{{a}\}", r"\{x : x \ne {a}\}", r"\mathbb{R} - \{{b}\}"),
    ],
    r"({a},{b})": [
        r"\begin{cases} x = {a} \\ y = {b} \end{cases}",
        r"\begin{cases} x = {b} \\ y = {a} \end{cases}",
    ],
    "{a}": [
        *(r"\text{Answer: }{a}", r"\text{The answer is {a}}", r"\text{Number of cats} = {a}"),
        r"\text{Number of dogs} = {a}",
    ],
    "{a}:{b}": [r"{a} \text{ to } {b}", r"{b} \text{ to } {a}"],
    r"\frac{\pi}{{a}} + 2k\pi": [
        r"\frac{\pi}{{a}} + 2k\pi, k \in \mathbb{Z}",
        r"\frac{\pi}{{a}} + 2\pi k \ (k \in \mathbb{Z})",
        r"x = \frac{\pi}{{a}} + 2k\pi \text{ for all } k",
        r"\frac{\pi}{{a}} + k\pi, k \in \mathbb{Z}",
    ],
    "x > {a}": [r"x > {a}, x \in \mathbb{R}", r"x > {a}, x \in \mathbb{Z}"],
    r"\text{no solution}": [r"\emptyset", r"\text{There are no real solutions}", "0"],
    r"7:{b} \text{ p.m.}": [r"7:{b} \text{ PM}", r"\text{7:{b} pm}", r"7:{b} \text{ AM}"],
    "7:{b}": [r"7:{b} \text{ a.m.}", r"7:{b} AM", r"7:{b} PM"],
}  # fmt: skip


def test_behind_the_word_approximately_stands_a_rounding():
    cases = [(r"\frac{5}{7}", "0.714", "0.73"), ("100", "100.0", "101")]
    for value, near, far in [*cases, (r"\sqrt{2}", "1.414", "1.43"), ("12345", "12000", "13400")]:
        assert accepts(value, rf"{value} \approx {near}")
        assert not accepts(value, rf"{value} \approx {far}")


# What ends before the box is no factor of it.
ENDED = ("So x = {}. ", "x = 3 + 4 = {}! ", "x = {}; ", "x = {}: ", "x < {}? ", "x = {}  ")
ENDED += (r"\( x = {} \) ", r"\[ x = {}. \] ", r"\(x = {}\), ", "9 + 9 = ${}. ", "= ${} ")
ENDED += (r"$$x = {}$$ ", "= {} (", "- x = {}.\n- ", r"\[ {} \] ", r"= {} \\[4pt] ", "so {} - ")


def test_a_sentence_or_formula_that_ends_before_the_box_is_no_part_of_it():
    rng = random.Random(21)
    numbers = ["18", "-5", "0.25", r"\frac{3}{4}", r"2\sqrt{3}", "x^2", "(1, 2)", "7,200"]
    numbers += [str(rng.randint(1, 10**6)) for _ in range(20)]
    for before, number, box in itertools.product(ENDED, numbers, (r"\boxed", r"\\boxed")):
        response = before.replace("{}", number) + rf"{box}{{{number}}}"
        assert grade_maths(response, number).reason == "correct", response
    for before in ("So x = 18. $-", r"x = -\; ", r"x = 18 \cdot ", r"\(x = 3\) $2", "x = 3 "):
        assert grade_maths(rf"{before}\boxed{{18}}$", "18").reason == "malformed", before


def test_a_gold_with_a_fraction_for_an_exponent_may_be_answered_with_a_root():
    rng = random.Random(9)
    for base, (top, bottom) in itertools.product((2, 3, 10), ((1, 2), (1, 3), (2, 3), (1, 100))):
        gold = f"{base}^{{{top}/{bottom}}}"
        root = rf"\sqrt[{bottom}]{{{base**top}}}"
        assert accepts(gold, root) and accepts(f"{gold}, 8", f"{root}, 8")
        for wrong in (
            rf"\sqrt[{bottom}]{{{base**top + rng.randint(1, 9)}}}",
            rf"\sqrt[{bottom + 1}]{{{base**top}}}",
            rf"{root}+x-x",
            rf"{root}+\sum_{{k=1}}^{{2}}k-3",
        ):
            assert not accepts(gold, wrong), wrong
    assert not accepts("2^{10}", r"\sqrt{1048576}")  # whole exponents: to be worked out


def test_infinity_may_be_written_as_a_bound_of_an_inequality():
    for bound, (mark, bracket) in itertools.product((-3, 0, 2), (("<", "()"), (r"\le ", "[]"))):
        above = rf"{bracket[0]}{bound},\infty)"
        below = rf"(-\infty,{bound}{bracket[1]}"
        assert accepts(above, rf"{bound}{mark}x<\infty")
        assert accepts(below, rf"-\infty<x{mark}{bound}")
        for gold, other in itertools.permutations((above, below)):
            assert not accepts(gold, rf"-\infty<x{mark}{bound}" if gold == above else other)
        for wrong in (
            rf"{bound}{mark}x\le\infty",  # infinity is no member
            rf"{bound}{mark}x<-\infty",
            rf"{bound + 1}{mark}x<\infty",
            rf"{bound}{mark}x<{bound + 7}",
        ):
            assert not accepts(above, wrong), wrong


def test_rows_of_a_matrix_may_be_set_apart_and_a_base_may_stand_in_brackets():
    for gap in ("4pt", "-2 mm", "0.5em", "1ex"):
        column = rf"\begin{{pmatrix}} 1 \\[{gap}] 2 \end{{pmatrix}}"
        assert accepts(r"\begin{pmatrix}1\\2\end{pmatrix}", column)
        assert not accepts(r"\begin{pmatrix}1\\3\end{pmatrix}", column)
    assert not accepts(r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1\\[4]2\end{pmatrix}")
    for base in (5, 8, 16):
        assert accepts(f"43_{{{base}}}", f"43_{{({base})}}")
        assert not accepts(f"43_{{{base}}}", f"43_{{({base + 1})}}")


def test_a_letter_may_have_a_size_a_font_and_space_around_it():
    for before, after in itertools.product(
        ("", r"\,", r"\ ", r"\large ", r"\quad ", "~"), ("", r"\,", "~", r"\ ")
    ):
        for letter in ("B", r"\textbf{B}", r"\bm{B}", r"\text{B}.", r"\mathbf{(B)}"):
            response = rf"\boxed{{{before}{letter}{after}}}"
            assert choice_verdict(response, "B").reason == "correct", response
            assert choice_verdict(response, "C").reason == "wrong"
    for text in (
        "AB",
        r"A\,B",
        r"\textbf{A}\textbf{B}",
        r"\large A B",
        r"B\quad A",
        r"\large",
        "~",
    ):
        assert choice_verdict(rf"\boxed{{{text}}}", "B").reason == "malformed", text


def test_a_point_beside_an_inequality_and_points_left_out_are_sets_of_numbers():
    rng = random.Random(12)
    for _ in range(30):
        low, high = sorted(rng.sample(range(-20, 20), 2))
        both = rf"(-\infty,{low})\cup\{{{high}\}}"
        for right in (rf"x<{low}\text{{ or }}x={high}", rf"x={high}\text{{ or }}x<{low}"):
            assert accepts(both, right)
            assert not accepts(both, right.replace("or", "and"))
            assert not accepts(both, right.replace("<", r"\le "))
            assert not accepts(both, right.replace(f"x={high}", f"x={high + 1}"))
            assert not accepts(both, right.replace(f"x={high}", f"y={high}"))
        ray = rf"({low},{high})\cup({high},\infty)"
        for right in (rf"x>{low}, x\ne {high}", rf"x\ne {high}, x>{low}"):
            assert accepts(ray, right)
            assert not accepts(ray, right.replace(",", r"\text{ or }"))
            assert not accepts(ray, right.replace(rf"\ne {high}", rf"\ne {high + 1}"))
            assert not accepts(ray, right.replace(r"\ne", "="))
            assert not accepts(ray, right.replace("x>", "y>"))
            assert not accepts(ray, rf"{right}, x<{high + 5}")  # two bounds: and, or?


def test_points_left_out_may_share_one_sign():
    for value in range(1, 9):
        gold = rf"(-\infty,-{value})\cup(-{value},{value})\cup({value},\infty)"
        pair = rf"x\ne\pm {value}"
        assert accepts(gold, pair) and accepts(gold, rf"x\ne {value}, -{value}")
        assert accepts(gold, rf"x \neq -{value} \text{{ and }} {value}")
        assert accepts(rf"(0,{value})\cup({value},\infty)", f"x>0, {pair}")
        for wrong in (
            rf"x\ne\pm {value + 1}",
            rf"x\ne {value}",
            rf"x\ne {value}, {value + 1}",
            rf"x\ne {value}\text{{ or }}-{value}",
            rf"{pair}\text{{ or }}x={value}",
            rf"x=\pm {value}",
            rf"x\ne {value}, y\ne -{value}",
        ):
            assert not accepts(gold, wrong), wrong
        assert not accepts(f"{value},-{value}", pair) and not accepts(r"\mathbb{R}", pair)


ALIKE = (  # one answer, and spellings of it
    ("120", r"\frac{10!}{3!7!}", r"\frac{10!}{3! \cdot 7!}", r"\frac{10!}{7!3!}", "5!", "20(3!)"),
    (r"\sin x", r"\operatorname{sin}x", r"\mathrm{sin}\,x", r"\operatorname{sin}(x)"),
    (r"\log_2 3", r"\mathrm{log}_2 3", r"\operatorname{log}_{2}(3)", r"\log_{2}{3}"),
    (r"\sin^2 x", r"\operatorname{sin}^2 x", r"\mathrm{sin}^{2}(x)"),
)
# The same with what LaTeX would not set, or with another value.
UNLIKE = (
    ("42", "3!8", "3!7!", "3!-7", "3!/7", "37!", "37"),
    (r"\log_2 3", r"\log_7_2 3", r"\log_{2}_{2} 3", r"\mathrm{log}_3 2", r"\text{log}_3 2"),
    (r"\sin^2 x", r"\sin^3^2 x", r"\sin^{2}^{2} x", r"\operatorname{sinh}^2 x"),
    ("5", r"5\%\text{ cm}", r"5\text{ percent km}", r"5\text{ cm per percent}", r"5\%/\text{h}"),
    ("0.5", r"0.5 \equiv \mathbb{R}", r"\mathbb{N} = 0.5", r"(0.5 \approx \mathbb{R})"),
)


def test_factorials_side_by_side_and_names_of_functions_in_a_font_are_read():
    for gold, *others in ALIKE:
        for other in others:
            assert accepts(gold, other), other
    for gold, *others in UNLIKE:
        for other in others:
            assert not accepts(gold, other), other


def test_a_number_too_long_to_be_written_is_wrong_and_no_fault_of_the_verifier():
    problem = "What is the remainder modulo 7 when $n$ is divided by 7?"
    golds = ("5", "0", r"\sqrt{2}", "x^2", r"\{1,2\}", "(1,2)", "x>3", r"\pm3", "10^{-20}")
    for gold, size in itertools.product(golds, ("9999", "-9999", "4300", "-5000")):
        for text in ("1e{}", "0.1e{}", "x+1e{}", "1, 2.5e{}", r"5\pmod{{(10^{{{}}})}}", "1e{}!"):
            answer = text.format(size)
            assert grade_maths(rf"\boxed{{{answer}}}", gold, problem=problem).reason == "wrong"
    for answer in (r"\lfloor ½, x\rfloor", r"\sqrt{½,}", r"\frac{¼,000}{2}"):
        assert grade_maths(rf"\boxed{{{answer}}}", "5").reason == "wrong"


def test_a_degree_sign_inside_a_formula_needs_an_angle_in_the_problem():
    for gold, answer in (
        ("2x+1", r"2x^\circ+1"),
        ("3+4i", r"3^\circ+4i"),
        ("e^x", r"e^{x^\circ}"),
        (r"\frac{x}{2}", r"\frac{x^\circ}{2}"),
        ("(x+1, 2)", r"(x^\circ+1, 2)"),
    ):
        assert not accepts(gold, answer, "Find $f(x)$."), answer
        assert accepts(gold, answer, "Find the angle $A$ in terms of $x$."), answer
    assert accepts(r"90^\circ-\frac{x}{2}", r"90-\frac{x}{2}", "Find $f(x)$.")
    assert accepts(r"2\sin\frac{\pi}{5}+x", r"2\sin 36^\circ + x", "Find $f(x)$.")


EXACT = (
    "Find the exact value of $y$.",
    "Express your answer as a common fraction.",
    "Simplify $y$.",
    "Give $y$ in simplest radical form.",
    "What is $y$ in lowest terms?",
)


def test_a_rounded_decimal_is_no_exact_value():
    golds = (r"\sqrt{2}", "1.4142135624"), (r"\frac{1}{7}", "0.1428571429"), ("2", "2.0000000000")
    for problem, (gold, decimal) in itertools.product(EXACT, golds):
        is_exact = gold == "2"
        assert accepts(gold, decimal, problem) is is_exact, (problem, gold)
        assert accepts(gold, gold, problem) and accepts(gold, decimal, "Find $y$.")
        assert accepts(gold, decimal, f"{problem} Round it to 10 decimal places.")
        assert accepts(decimal, decimal, problem) and accepts(decimal, gold, problem)


def test_a_percentage_that_is_stated_in_words_is_not_what_is_asked():
    stated = "If Ann improves by forty percent, how many yards does she run?"
    assert not accepts("75", r"75\%", stated) and not accepts("75", r"75\text{ percent}", stated)
    asked = "Ann improves by forty percent. By what percent does Ben improve?"
    assert accepts("75", r"75\%", asked) and accepts("75", "75", asked)

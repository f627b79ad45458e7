"""Which value is which, intervals beside lists, domains behind formulas, percents of the story."""

import itertools
import math
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pytest

from recipe.verify.grading import grade
from recipe.verify.schema import Item


def is_right(answer, gold, problem):
    return grade(Item(rf"\boxed{{{answer}}}", gold, problem=problem)).score == 1


SYSTEM = "Solve the system of equations in $x$, $y$ and $z$."


@pytest.mark.parametrize("values", [*itertools.permutations("123")])
def test_names_in_brackets_say_which_value_is_which(values):
    is_same = values == ("1", "2", "3")
    assert is_right(f"(x,y,z) = ({','.join(values)})", "1,2,3", SYSTEM) == is_same


def test_a_list_without_names_has_no_order_and_pairs_keep_theirs():
    assert is_right("3, 1, 2", "1,2,3", "Find all real $x$.")
    assert is_right("(x,y) = (3,4), (1,2)", "(1,2),(3,4)", "Find all pairs $(x,y)$.")
    assert not is_right("(x,y) = (4,3), (1,2)", "(1,2),(3,4)", "Find all pairs $(x,y)$.")


ENDS = [("-1", "2"), ("0", r"\frac{1}{2}"), (r"\frac{1}{100}", "100"), ("-3", r"\sqrt{2}")]
ROOTS = "Find all real numbers $x$ that satisfy the equation."


@pytest.mark.parametrize("ends", ENDS)
def test_an_interval_is_not_its_two_ends(ends):
    low, high = ends
    gold, interval = f"{low},{high}", f"({low},{high})"
    assert is_right(rf"x \in \{{{gold}\}}", gold, ROOTS)
    assert not is_right(rf"x \in {interval}", gold, ROOTS)
    assert not is_right(rf"x \in \left({low},{high}\right)", gold, ROOTS)
    signs = "For which values of $k$ has the equation no real root?"
    for answer in (gold, rf"{low} \text{{ and }} {high}"):
        assert not is_right(answer, interval, signs)
    assert is_right(rf"k \in {interval}", interval, signs)
    assert is_right(interval, interval, signs)
    assert is_right(gold, interval, "At which point do the lines meet?")


@pytest.mark.parametrize("gold", [r"(2,\infty)", r"(-\infty,-5)"])
def test_no_question_makes_an_infinite_interval_a_pair(gold):
    for problem in ("", "At which point $(x, y)$?", "Solve it."):
        assert is_right(gold, gold, problem)
        assert not is_right(gold.strip("()"), gold, problem)


WRITINGS = [
    "10%",
    "10 %",
    r"10\%",
    r"10 \%",
    r"10\,\%",
    r"$10$ %",
    r"$10 \%$",
    r"$10$\%",
    "10 percent",
]


@pytest.mark.parametrize("writing", WRITINGS)
def test_a_percentage_of_the_story_is_no_question_for_percent(writing):
    problem = f"How many are left if {writing} of them break?"
    assert is_right("5", "5", problem)
    assert not is_right(r"5\%", "5", problem)
    chance = f"What is the probability that it is below {writing}?"
    assert is_right(r"25\%", r"\frac{1}{4}", chance)
    assert is_right(r"5\%", "5", f"By how many percent does it grow, if {writing} break?")


SETS = [
    r"\mathbb{N}",
    r"\mathbb{Z}",
    r"\mathbb{Q}",
    r"\mathbb{R}",
    r"\mathbb{R}^+",
    r"\mathbb{R}_{>0}",
]
SETS += [r"\mathbb{Z}_{\ge 0}", r"\mathbb{N}^*", r"\mathbb{Z}_{+}"]
KINDS = ["", "real ", "real numbers ", "integers ", "positive integers ", "non-negative integers "]
KINDS += ["positive real numbers ", "rational ", "rational numbers ", "natural numbers "]
DOMAINS = [rf"\text{{ for {all_} {kind}}} n" for all_ in ("all", "every", "each") for kind in KINDS]
DOMAINS += [rf"\text{{ for all }} n \in {each}" for each in SETS]
DOMAINS += [rf", \quad \forall n \in {each}" for each in SETS] + [r"\text{ for all } n \ge 1"]
DOMAINS += [
    r"\text{ for all $n$}",
    r"\text{ for all $n \in \mathbb{Z}$}",
    r"\text{ for all } n > 0",
]


NARROW = ("positive", "negative", "natural", "rational", "{N}", "{Q}", "^", "_", ">", "ge 1")
FUNCTION = r"Find all functions $f$ such that $f(f(n)) = n$ for all {} $n$."
OWN = {"Q": FUNCTION.format("rational numbers"), "R": FUNCTION.format("positive real numbers")}


# What a phrase holds of -1, 0, 1/2, 1 and 2.
IS_WHOLE = {-1, 0, 1, 2}
OF_PROBLEM = {
    "positive integers": {1, 2},
    "non-negative integers": {0, 1, 2},
    "integers": IS_WHOLE,
    "positive real numbers": {0.5, 1, 2},
    "real numbers": {*IS_WHOLE, 0.5},
    "positive rational numbers": {0.5, 1, 2},
}
OF_ANSWER = {
    r"\text{ for all negative integers } t": {-1},
    r"\text{ for all positive integers } t": {1, 2},
    r"\text{ for every non-negative integer } t": {0, 1, 2},
    r"\text{ for all nonzero integers } t": {-1, 1, 2},
    r"\text{ for all integers } t": IS_WHOLE,
    r"\text{ for all negative } t": {-1},
    r"\text{ for all negative real numbers } t": {-1},
    r"\text{ for all positive real numbers } t": {0.5, 1, 2},
    r"\text{ for } t > 0": {0.5, 1, 2},
    r"\text{ for } t > 1": {2},
    r"\text{ for all } t \ge 1": {1, 2},
    r"\text{ for all } t \ge 0": {0, 0.5, 1, 2},
    r"\text{ for all } t": {*IS_WHOLE, 0.5},
    r", \forall t \in \mathbb{Z}_{>0}": {1, 2},
    r", \forall t \in \mathbb{R}^{+}": {0.5, 1, 2},
    r", \forall t \in \mathbb{R}": {*IS_WHOLE, 0.5},
}


@pytest.mark.parametrize("bound", [", n > 0", r"\ (n \ge 1)", r", n \ne 0"])
def test_a_bound_without_for_all_stays_a_part_of_the_answer(bound):
    assert not is_right(f"f(n) = n {bound}", "f(n) = n", "Find $f(n)$.")
    assert not is_right(r"n < 5 \text{ for all } n \in \mathbb{N}", "n < 5", "Find $n$.")


CONSTANTS = {r"\pi": math.pi, r"100\pi": 100 * math.pi, r"2\sqrt{3}": 2 * math.sqrt(3)}
CONSTANTS |= {r"\frac{20000}{\pi}": 20000 / math.pi, r"\frac{1}{7}": 1 / 7, r"e^3": math.e**3}


@pytest.mark.parametrize("gold", CONSTANTS)
@pytest.mark.parametrize("digits", range(4, 12))
def test_a_decimal_of_six_digits_or_more_may_round_a_constant(gold, digits):
    value = CONSTANTS[gold]
    with localcontext(prec=digits, rounding=ROUND_HALF_UP):
        rounded = +Decimal(value)
    step = Decimal(1).scaleb(rounded.as_tuple().exponent)
    assert is_right(str(rounded), gold, "What is the area?") == (digits >= 6)
    assert not is_right(str(rounded + 2 * step), gold, "What is the area?")


@pytest.mark.parametrize("cents", [1, 25, 37, 67, 99])
@pytest.mark.parametrize("whole", [1234, 12345, 123456])
def test_an_amount_that_ends_is_not_right_without_its_last_digit(whole, cents):
    gold, tenths = f"{whole}.{cents:02}", whole * 10 + cents // 10
    for answer in (tenths, tenths + 1):
        if answer * 10 != whole * 100 + cents:
            assert not is_right(str(Decimal(answer) / 10), gold, "What does it cost?")
    assert not is_right(f"{gold}78", gold, "What does it cost?")
    assert not is_right(str(whole + 0.3), rf"\frac{{{4 * whole + 1}}}{{4}}", "What does it cost?")


PAIRS = [
    "Solve the system for $x$ and $y$.",
    r"Find all \((x, y)\) with $x < y$.",
    "Find the vertex.",
]
PAIRS += ["Find all pairs of positive integers (m, n).", "What is the center of the circle?", ""]


@pytest.mark.parametrize("problem", PAIRS)
def test_a_pair_may_stand_without_brackets_where_no_range_is_asked_for(problem):
    is_asked_for_interval = "<" in problem
    assert is_right("3, 4", "(3,4)", problem) == (not is_asked_for_interval)
    assert not is_right("4, 3", "(3,4)", problem)


def test_invented_names_give_a_set_no_order():
    problem = "Find all real roots of $t^2 - 3t + 2$."
    assert is_right("(x_1,x_2) = (2,1)", "1, 2", problem)
    assert is_right(r"x \in (3,5,7)", "3,5,7", "Find all real roots.")
    assert not is_right("(x,y) = (2,1)", "1, 2", "Solve for $x$ and $y$.")


@pytest.mark.parametrize(
    "problem", ["In $2020$, percent of what grows?", "From 40 to 50\n\nPercent growth?"]
)
def test_a_number_before_a_comma_or_a_line_is_no_percentage(problem):
    assert is_right(r"25\%", "25", problem)


def test_a_triangle_or_rectangle_asks_for_no_angle():
    for problem in (
        "What is the area of a rectangle of 5 by 8?",
        "A triangle has sides 3, 4 and 5. What is $\\sin A + \\sin B$?",
    ):
        assert is_right("40", "40", problem)
        assert not is_right(r"40^\circ", "40", problem)
    for problem in (
        "A triangle has angles of 60 and 80. What is the third angle?",
        r"In triangle $ABC$, find $\angle A$.",
        "By how many degrees does it turn?",
    ):
        assert is_right(r"40^\circ", "40", problem)


def test_an_equation_that_holds_the_unknown_is_not_solved():
    gold, problem = r"d = \frac{1+n}{2}", "For each $n$, compute $d$."
    for answer in (
        "2d - 1 = n",
        "2d = n + 1",
        "d + 7 = \\frac{n+1}{2} + 7",
        "-d = -\\frac{1+n}{2}",
    ):
        assert not is_right(answer, gold, problem), answer
        line = "What is the equation of the line?"
        assert is_right(answer.replace("d", "y").replace("n", "x"), "y = \\frac{1+x}{2}", line)
    assert is_right(r"d = \frac{n}{2} + \frac12", gold, problem)
    assert not is_right(r"7 \approx 0", "7", "What is $x$?")

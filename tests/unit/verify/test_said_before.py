"""What stands around a box: its value once more, a factor or sign of it, another value or box."""

from __future__ import annotations

import itertools
import random

import pytest
from growth import LINEAR, exponent

from recipe.hint.verify.choice import choice_verdict
from recipe.hint.verify.maths.grade import grade_maths, quick_verdict
from recipe.hint.verify.maths.reading import read

BEFORE = (
    *(r"= \$@ #", r"@ = #", "$x = @ #$", r"so $@ = #$.", r"The total is \$@ #", r"$= @\ #$"),
    *(r"\[ x = @ = # \]", r"\( x = @ \) #", "$@$ #", r"$\$@ #$", "= **@** #"),
    *(r"$x = @ \Rightarrow #$", r"$x = @ \quad #$", "$x = (@) #$", r"$= \left(@\right) #$"),
    *("$= {@} #$", r"$= @\, #$", r"$= @\; #$", r"= \$@#", r"= \$ @ #", "$x = @ ~ #$"),
    *(r"= \$@. #", r"= \$@.#", r"= \$@.00 #", r"$= \mathbf{@} #$", "= €@ #", r"= @\% #"),
    *(r"$ = @^\circ #$", r"$ = @ \text{ cm} #$", r"= @\text{ units} #", "# @", "$# @$"),
)  # fmt: skip
FACTORS = (
    *("$= @ #$", r"$x = \$@ #$", r"$= @\, #$", "$= (@) #$", "$= {@} #$", r"$x = @ \cdot #$"),
    *(r"$= \$@ #$", "$= € @ #$"),
)
VALUES = [str(value) for value in random.Random(3).sample(range(2, 5000), 40)]
VALUES += [r"\frac{3}{7}", r"2\sqrt{3}", "-18", r"\frac{\pi}{6}", "0.25", "1{,}000", "x^2+1"]


@pytest.mark.parametrize("form", BEFORE)
def test_a_value_may_be_said_before_its_box(form):
    for value in VALUES:
        if "00" in form and not value.isdigit():
            continue
        response = form.replace("@", value).replace("#", rf"\boxed{{{value}}}")
        assert grade_maths(response, value).reason == "correct", response


@pytest.mark.parametrize("form", FACTORS)
def test_another_value_at_the_box_is_a_factor(form):
    for value, other in zip(VALUES[:40], VALUES[1:40], strict=False):
        response = form.replace("@", other).replace("#", rf"\boxed{{{value}}}")
        assert grade_maths(response, value).reason == "malformed", response


TOUCHING = ("-", "−", "±", "+-", "2", "10", "1/", "0.", "√", r"\sqrt{", r"\frac{", r"\pi")
PROSE_ENDS = (
    "It is {}",
    "{}",
    "So the answer is {}.",
    "**{}**",
    "Thus\n{}\nas claimed",
    "= 9. {} ",
)


def test_what_touches_a_box_in_prose_changes_it_as_in_a_formula():
    for touching, sentence in itertools.product(TOUCHING, PROSE_ENDS):
        right = "}{2}" if "frac" in touching else "}" if touching.endswith("{") else ""
        boxes = [rf"{touching}\boxed{{5}}{right}"]
        boxes += [rf"{touching}$\boxed{{5}}$"] if touching[0] in "-−±+" else []
        for box in boxes:
            response = sentence.replace("{}", box)
            assert grade_maths(response, "5").reason == "malformed", response
    for scale, mark in itertools.product(
        ("million", "thousand", "dozen"), (" ", "$ ", r"\ \text{")
    ):
        response = rf"So $\boxed{{5}}{mark}{scale}"
        assert grade_maths(response, "5", problem=f"How many {scale}s?").reason == "correct"
        assert grade_maths(response, "5", problem="How many?").reason == "malformed", response


GLUE = (", ", " and ", " or ", "$ and $", "$, $", r"\text{ or }", r"\), \(", "; ", "", r",\quad ")
APART = (" ", "\n\n", ". Then ", " is wrong, ", ", so it is ", r"\, ")


def test_boxes_side_by_side_are_one_answer_and_neither_of_them_alone():
    rng = random.Random(31)
    for glue, size in itertools.product(GLUE, (2, 3, 5)):
        values = [str(value) for value in rng.sample(range(2, 900), size)]
        response = "So $" + glue.join(rf"\boxed{{{value}}}" for value in values) + "$."
        assert grade_maths(response, ", ".join(values)).reason == "correct", response
        assert not any(grade_maths(response, value).score for value in values), response
        letters = glue.join(rf"\boxed{{{letter}}}" for letter in "ABCDE"[:size])
        assert not any(choice_verdict(letters, letter).score for letter in "ABCDE")
        again = glue.join([rf"\boxed{{{values[0]}}}", rf"\boxed{{{values[0]}.0}}"])
        assert grade_maths(again, values[0]).reason == "correct", again
    for apart in APART:
        assert grade_maths(rf"\boxed{{3}}{apart}\boxed{{4}}", "4").reason == "correct", apart


def test_another_value_that_is_offered_behind_the_box_spoils_it():
    for tail in (" or 7", "$ or $7$.", r" \text{ or } 7", " or maybe 70.5", "$ or possibly 8$"):
        assert grade_maths(rf"So $\boxed{{5}}{tail}", "5").reason == "malformed", tail
    for tail in (
        " or 5.0",
        r"$ or $\frac{10}{2}$",
        " or 7 cm",
        " or more",
        " or seven",
        " or 700\\%",
    ):
        assert grade_maths(rf"So $\boxed{{5}}{tail}", "5").reason == "correct", tail
    assert choice_verdict(r"\boxed{B} or C.", "B").reason == "malformed"
    assert choice_verdict(r"\boxed{B} or A similar one.", "B").reason == "correct"


@pytest.mark.parametrize("unit", ["x'", "a b ", "1/", r"\pi", "{}", "$x$ ", ")", "in m "])
def test_a_long_answer_beside_a_value_is_not_read_by_the_caller(unit):
    def grade(text):
        for response in (rf"$= 5 \boxed{{{text}}}$", rf"$\boxed{{{text}}} 5$"):
            read.cache_clear()
            quick_verdict(response, "7919")

    assert exponent(grade, lambda n: unit * (n // len(unit)), 240) < LINEAR

"""A value said at its box is said twice; another value there is a factor, and the box no answer."""

from __future__ import annotations

import random

import pytest
from growth import LINEAR, exponent

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


@pytest.mark.parametrize("unit", ["x'", "a b ", "1/", r"\pi", "{}", "$x$ ", ")", "in m "])
def test_a_long_answer_beside_a_value_is_not_read_by_the_caller(unit):
    def grade(text):
        for response in (rf"$= 5 \boxed{{{text}}}$", rf"$\boxed{{{text}}} 5$"):
            read.cache_clear()
            quick_verdict(response, "7919")

    assert exponent(grade, lambda n: unit * (n // len(unit)), 240) < LINEAR

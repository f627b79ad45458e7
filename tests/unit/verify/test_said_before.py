"""What stands around a box: its value once more, a factor or sign of it, another value or box."""

from __future__ import annotations

import itertools
import random

import pytest
from growth import LINEAR, exponent

from recipe.verify.choice import choice_verdict
from recipe.verify.maths.grade import grade_maths, quick_verdict
from recipe.verify.maths.reading import read

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


MARKS = (r"\%", "%", r"^\circ", r"^{\circ}", "°", "_7", "_{7}", "_{12}")
GAPS = ("", "$", " ", r"\,", "** ", r"$$", r"\)")  # before a base nothing
PROBLEMS = ("What is $x$?", "What percent is it?", "Find the angle in degrees.", "In base 7?")


def test_a_mark_behind_the_box_says_what_it_says_inside():
    reasons = set()
    for mark, problem, value in itertools.product(MARKS, PROBLEMS, VALUES[:8]):
        for gold in (value, value + mark):
            inside = grade_maths(rf"So $\boxed{{{value}{mark}}}$.", gold, problem=problem)
            for gap in GAPS[: 1 if "_" in mark else None]:
                behind = rf"So $\boxed{{{value}}}{gap}{mark}."
                assert grade_maths(behind, gold, problem=problem) == inside, behind
            reasons.add(inside.reason)
    assert reasons == {"correct", "wrong"}


# @ is the box, # another value.
PARTS = (
    *(r"$@\,000$", r"$@\!000$", r"$@\ 000$", "$@~000$", "$@{}0$", r"$@\text{0}$", "@e3", "$.@$"),
    *(r"$0.\overline{@}$", r"$@ \pm 1$", r"$\binom{@}{2}$", r"$\lceil @/3\rceil$", r"$-\text{@}$"),
    *(r"$-\mathbf{@}$", r"@\text{ squared}", "@ cubed", r"\boxed{#}/@", r"\boxed{#}-@"),
    *(r"$\frac{\boxed{#}}{@}$", r"$\boxed{#} \lor @$"),
)
HEDGES = (
    *("$x=@, #$", r"@\text{ and } #", r"@ or $\frac{#}{2}$", "$x=@$ or $x=#$", "@ and #.", "@/#"),
    *("@, #", "$@$, $#$", r"$@ \vee #$", "@ (maybe #)", "@ (possibly #)"),
)
HARMLESS = (
    *("- $@$", "1. @", "$@$!", "$x = @$, and # more.", "@, which is it.", "In 2020, @", "#. @"),
    *("we get x = #. @", "...@", "answer:@", "$2^{@}$", r"$\text{@}$", r"@ (not #)", "@ and so on"),
    *("@\n#", "@\n\n# is wrong", r"so $#, 4$: @", "$@$ and C"),
)


@pytest.mark.parametrize("form", [*PARTS, *HEDGES])
def test_a_box_that_is_a_part_of_a_value_or_one_of_several_is_no_answer(form):
    for value in VALUES[:40]:
        other = str(7 * int(value) + 1)
        response = "So " + form.replace("@", rf"\boxed{{{value}}}").replace("#", other)
        verdict = grade_maths(response, value, problem="What is $x$?")
        assert verdict.reason in ("malformed", "wrong"), response


@pytest.mark.parametrize("form", HARMLESS)
def test_words_marks_and_other_sentences_at_a_box_change_nothing(form):
    for value in VALUES[:40]:
        other = str(7 * int(value) + 1)
        response = "So " + form.replace("@", rf"\boxed{{{value}}}").replace("#", other)
        assert grade_maths(response, value).reason == "correct", response


def test_a_group_of_three_digits_behind_a_comma_is_a_part_of_a_number():
    assert grade_maths(r"$1,\boxed{468}$", "468").reason == "malformed"
    assert grade_maths(r"$1{,}\boxed{468}$", "468").reason == "malformed"
    assert grade_maths(r"for $n = 1,$ \boxed{468}", "468").reason == "correct"


def test_another_letter_offered_at_a_choice_spoils_it():
    for tail in (", A", "/A", " and A", " or option A", " (maybe A)", " or A, I think"):
        assert choice_verdict(rf"\boxed{{B}}{tail}", "B").reason == "malformed", tail
    assert choice_verdict(r"$\boxed{B}$ or $\text{A}$", "B").reason == "malformed"
    for tail in (".", ", A is wrong.", " and not A.", " (A is excluded)", "\n\nA"):
        assert choice_verdict(rf"\boxed{{B}}{tail}", "B").reason == "correct", tail


@pytest.mark.parametrize("blanks", [1, 60, 150])
@pytest.mark.parametrize("size", [1, 5, 11, 12, 13, 40])
def test_no_number_of_boxes_or_blanks_takes_another_one_out_of_the_answer(size, blanks):
    glue = "," + " " * blanks
    response = rf"\boxed{{7}}{glue}" + glue.join([r"\boxed{5}"] * size)
    assert grade_maths(response, "5").reason in ("malformed", "wrong")
    letters = rf"\boxed{{A}}{glue}" + glue.join([r"\boxed{B}"] * size)
    assert choice_verdict(letters, "B").reason == "malformed"


@pytest.mark.parametrize("unit", ["x'", "a b ", "1/", r"\pi", "{}", "$x$ ", ")", "in m "])
def test_a_long_answer_beside_a_value_is_not_read_by_the_caller(unit):
    def grade(text):
        for response in (rf"$= 5 \boxed{{{text}}}$", rf"$\boxed{{{text}}} 5$"):
            read.cache_clear()
            quick_verdict(response, "7919")

    assert exponent(grade, lambda n: unit * (n // len(unit)), 240) < LINEAR


def test_what_is_no_mark_of_the_value_changes_nothing():
    for behind in ("_1", "_\n2. Check it", "%\n\\]", "_{1}", "_x", "^\\circ C", " °F"):
        response = rf"\[\boxed{{5}}{behind}"
        assert grade_maths(response, "5", problem="What is it?").reason == "correct", response
    for inside, mark, problem in [
        (r"50\%", r"\%", "What percent is it?"),
        (r"50^\circ", r"^\circ", "Find the angle."),
        ("1011_2", "_2", "Write it in base 2."),
        ("1A", "_{16}", "Write it in hexadecimal."),
        ("-11", "_2", "Write it in binary."),
    ]:
        response = rf"So $\boxed{{{inside}}}{mark}$."
        assert grade_maths(response, inside, problem=problem).reason == "correct", response
    assert (
        choice_verdict(r"\boxed{B}%", "B").score == choice_verdict(r"\boxed{B}_2", "B").score == 1
    )


def test_a_base_of_a_number_in_the_problem_is_not_the_answers():
    problem = "Convert the base 8 number 64 to base 10."
    assert grade_maths(r"\boxed{52_8}", "52", problem=problem).reason == "wrong"
    assert grade_maths(r"\boxed{52}_{10}", "52", problem=problem).reason == "correct"
    for problem in (
        "What is the base 10 value of the binary number 1011?",
        "How many octal digits?",
    ):
        assert grade_maths(r"\boxed{18_8}", "18", problem=problem).reason == "wrong"
    problem = "Let $b$ be an eight-digit base 2 integer. Express the largest in base 10."
    assert grade_maths(r"\boxed{255}_2", "255", problem=problem).reason == "wrong"


def test_a_base_may_be_written_where_the_problem_names_it():
    for base, named in [(2, "binary"), (8, "octal"), (16, "hexadecimal"), (7, "base seven")]:
        for text in (named, f"base {base}", f"base ${base}$", f"base-{base}", f"base ${{{base}}}$"):
            problem = f"Write it in {text}."
            for other in (2, 7, 8, 16):
                response = rf"So $\boxed{{1011}}_{{{other}}}$."
                reason = grade_maths(response, "1011", problem=problem).reason
                assert reason == ("correct" if other == base else "wrong"), (problem, response)


def test_degrees_alone_are_those_of_the_temperature_that_is_asked_for():
    for scale, letter in itertools.product(("Celsius", "Fahrenheit"), "CF"):
        problem = f"What was the temperature, in degrees {scale}, at noon?"
        for mark in (r"^\circ", "°", r"^{\circ}"):
            assert grade_maths(rf"\boxed{{-3}}{mark}", "-3", problem=problem).score == 1
            inside = grade_maths(rf"\boxed{{-3{mark} {letter}}}", "-3", problem=problem)
            assert inside.score == (scale[0] == letter)

"""Boxes side by side, domains within wrappers, lines solved for x, numbers in words with a noun."""

import pytest

from recipe.verify.grading import grade
from recipe.verify.schema import Item


def is_right(response, gold, problem=""):
    if r"\boxed" not in response.partition("{")[0]:
        response = rf"\boxed{{{response}}}"
    return grade(Item(response, gold, problem=problem)).score == 1


ROPE = "Find the length of the rope in cm."
TIME = "For how long does the lamp burn?"
DOLLARS = "How many dollars does she pay?"
POINT = "At which point $(x, y)$ do the lines meet?"
FRUIT = "How many apples and how many pears are left?"


@pytest.mark.parametrize(
    ("boxes", "gold", "problem"),
    [
        (r"\boxed{15\text{ m}}, \boxed{15\text{ cm}}", r"15\text{ cm}", ROPE),
        (r"\boxed{15\text{ cm}}, \boxed{15\text{ m}}", r"15\text{ cm}", ROPE),
        (r"$\boxed{15\text{ km}}$ or $\boxed{15\text{ cm}}$", "15", ROPE),
        (r"\boxed{15\text{ m}} and \boxed{15\text{ cm}^2}", r"15\text{ m}", ROPE),
        (r"\boxed{15\text{ m}}, \boxed{15\text{ cm}}, \boxed{15}", "15", ROPE),
        (r"\boxed{15\text{ cm}}, \boxed{15}, \boxed{15\text{ m}}", r"15\text{ m}", ROPE),
        (r"\boxed{15}, \boxed{15\text{ m}}, \boxed{15\text{ cm}}", r"15\text{ cm}", ROPE),
        (r"\boxed{5\text{ hours}}, \boxed{5\text{ minutes}}", r"5 \text{ minutes}", TIME),
        (r"\boxed{5\text{ minutes}} or \boxed{5\text{ hours}}", r"5 \text{ minutes}", TIME),
        (r"\boxed{50} or \boxed{50\%}", "0.5", ""),
        (r"\boxed{50} or \boxed{50}\%", "0.5", ""),
        (r"\boxed{0.5\%} or \boxed{0.5}", "0.5", ""),
        (r"\boxed{50\%}, \boxed{50}", "50", "What is the number?"),
        (r"$\boxed{18\text{ cents}}$ or $\boxed{18}$", "18", DOLLARS),
        (r"$\boxed{18}$ or $\boxed{18\text{ cents}}$", "18", DOLLARS),
        (r"\boxed{18\text{ cents}} or \boxed{\$18}", "18", DOLLARS),
        (r"\boxed{\$5} or \boxed{5\text{ cents}}", r"5\text{ cents}", "How much is it?"),
        (r"\boxed{\$5} or \boxed{5\text{ euros}}", r"\$5", "How much is it?"),
        (r"\boxed{y=5} \text{ or } \boxed{x=5}", "x=5", "Solve for $x$."),
        (r"\boxed{y=5} \text{ or } \boxed{x=5}", "5", "Solve for $x$."),
        (r"\boxed{y=5}, \boxed{x=5}, \boxed{5}", "5", "Solve for $x$."),
        (r"\boxed{5\text{ pears}} or \boxed{5\text{ apples}}", "5", "How many apples are left?"),
        (r"\boxed{5\text{ kg}} or \boxed{5\text{ apples}}", "5", "How many apples are left?"),
        (r"\boxed{12_8} or \boxed{12_7}", "12_7", "Write 9 in base 7."),
    ],
)
def test_boxes_with_other_units_names_or_percents_are_several_answers(boxes, gold, problem):
    assert not is_right(boxes, gold, problem)


@pytest.mark.parametrize(
    ("boxes", "gold", "problem"),
    [
        (r"\boxed{15}, \boxed{15\text{ cm}}", "15", ROPE),
        (r"\boxed{15\text{ cm}}, \boxed{15}", "15", ROPE),
        (r"\boxed{15} $$ \boxed{15\text{ cm}}", r"15\text{ cm}", ROPE),
        (r"\boxed{15\text{ cm}}, \boxed{15\text{ centimeters}}", r"15\text{ cm}", ROPE),
        (r"\boxed{15}, \boxed{15\text{ cm}}, \boxed{x=15}", "15", ROPE),
        (r"$\boxed{\$18}$ or $\boxed{18\text{ dollars}}$", "18", DOLLARS),
        (r"\boxed{18}, \boxed{18}", "18", DOLLARS),
        (r"\boxed{\frac12} or \boxed{0.5}", "0.5", ""),
        (r"\boxed{50\%}, \boxed{50\%}", "0.5", ""),
        (r"\boxed{50\%}, \boxed{50}\%", "0.5", ""),
        (r"\boxed{5} or \boxed{x=5}", "x=5", "Solve for $x$."),
        (r"x = \boxed{5}, x = \boxed{5}", "5", "Solve for $x$."),
        (r"\boxed{60}, \boxed{60}^\circ", "60", "Find the angle in degrees."),
        (r"\boxed{5}, \boxed{5\text{ apples}}", "5", "How many apples are left?"),
        (r"\boxed{12}, \boxed{12}_7", "12_7", "Write 9 in base 7."),
    ],
)
def test_a_box_may_say_the_value_again_without_its_unit_or_name(boxes, gold, problem):
    assert is_right(boxes, gold, problem)


@pytest.mark.parametrize(
    ("boxes", "gold", "problem"),
    [
        (r"\boxed{x=VALUE}, \boxed{y=OTHER}", "(VALUE,OTHER)", POINT),
        (r"\boxed{x=VALUE} and \boxed{y=OTHER}", "x=VALUE, y=OTHER", POINT),
        (r"x = \boxed{VALUE}, y = \boxed{OTHER}", "(VALUE,OTHER)", POINT),
        (
            r"\boxed{VALUE\text{ apples}} and \boxed{OTHER\text{ pears}}",
            r"VALUE\text{ apples}, OTHER\text{ pears}",
            FRUIT,
        ),
    ],
)
def test_equal_values_of_different_things_are_one_list(boxes, gold, problem):
    def written(text, value, other):
        return text.replace("VALUE", value).replace("OTHER", other)

    for pair in (("2", "2"), ("2", "3"), ("-7", "-7"), (r"\frac12", r"\frac12")):
        if "apples" in boxes and not pair[0].isdigit():
            continue
        assert is_right(written(boxes, *pair), written(gold, *pair), problem), pair
        for wrong in (("2", "4"), ("5", "2"), ("4", "4"), ("3", "2"), ("0", "0"), ("2", "-2")):
            assert not is_right(written(boxes, *wrong), written(gold, *pair), problem), wrong


FORMULA, DOMAIN = r"\frac{\pi}{4}+k\pi", r"k\in\mathbb{Z}"
FAMILY = f"{FORMULA}, {DOMAIN}"
WRAPPERS = [
    "{}",
    "${}$",
    "$${}$$",
    r"\({}\)",
    r"\[{}\]",
    "{{{}}}",
    "{{{{{}}}}}",
    r"\boxed{{{}}}",
    r"\,{}\,",
    r"{}\,",
    "{}~",
    r"{}\ ",
    r"\quad {} \quad",
    r"\fbox{{${}$}}",
    r"\fbox{{ ${}$ }}",
    r"\underline{{{}}}",
    r"{{\,${}$}}",
    "${}$.",
]
TAN = r"Solve $\tan x = 1$."


def test_a_wrapper_makes_no_narrower_domain_wide():
    problem = "Find all functions on the positive integers."
    answer = r"f(n) = 2n \text{ for } n > 1"
    for wrapper in WRAPPERS:
        assert not is_right(wrapper.format(answer), "f(n) = 2n", problem), wrapper


LINE = "Find the equation of the line."


@pytest.mark.parametrize(
    ("gold", "answers", "others"),
    [
        (
            r"y=\frac12x+3",
            ["x=2y-6", "x=2(y-3)", "2y-6=x"],
            ["x=2y+6", "x=y-6", "x=2y", r"x=\frac12y+3", "x=-6", "x=2z-6", "y=2x-6", "a=2b-6"],
        ),
        (
            "y=2x+1",
            [r"x=\frac{y-1}{2}", r"x=\frac y2-\frac12"],
            ["x=2y+1", r"x=\frac{y+1}{2}", r"x=\frac{1-y}{2}", "x=2y-1", r"x=\frac12", "x=y"],
        ),
        (
            r"y=\frac x3",
            ["x=3y"],
            [r"x=\frac y3", "x=3", "x=3y+1", "x=-3y", "x=3z", "z=3y", "x=y", "x=3y+z-z"],
        ),
        (
            "x=2y-6",
            [r"y=\frac12x+3", r"y=\frac{x+6}{2}"],
            ["y=2x-6", r"y=\frac12x-3", "y=3", r"y=\frac12z+3", "y=x+3", r"z=\frac12x+3"],
        ),
        ("F=3v", [r"v=\frac F3"], [r"v=\frac{f}3", "v=3F", r"v=\frac13", "v=F", r"w=\frac F3"]),
    ],
)
def test_a_line_may_be_solved_for_the_other_variable(gold, answers, others):
    for answer in answers:
        assert is_right(answer, gold, LINE), answer
        assert is_right(answer, gold), answer
    for other in others:
        assert not is_right(other, gold, LINE), other
        assert not is_right(other, gold), other


@pytest.mark.parametrize(
    "problem",
    [
        "The line passes through two points. Express $y$ in terms of $x$.",
        "Solve the equation for $y$.",
        "Solve for $y$: the equation of the line is $2x-y+1=0$.",
        "Find the equation of the line in slope-intercept form.",
        "Find the line in the form $y = mx + b$.",
        "Write the line through the points as a function.",
        "Find the equation of the inverse of the function.",
        "What is $y$?",
        "How many apples are left?",
    ],
)
def test_a_question_for_one_variable_wants_that(problem):
    assert is_right("y=2x+1", "y=2x+1", problem)
    assert not is_right(r"x=\frac{y-1}{2}", "y=2x+1", problem)


def test_what_is_added_and_taken_away_adds_a_name():
    for answer in ("2x+1+y-y", "y=2x+1+z-z", r"x=\frac{y-1}{2}+z-z"):
        assert not is_right(answer, "y=2x+1", LINE), answer


APPLES = "Ann had ten apples and ate some. How many apples are left?"
KM = "What is the distance, in km?"


@pytest.mark.parametrize(
    ("problem", "gold", "answers", "others"),
    [
        (
            APPLES,
            "4",
            [
                "four apples",
                r"\text{four apples}",
                r"\text{Four apples}",
                r"\text{four apples left}",
            ],
            [
                "four pears",
                r"\text{five apples}",
                r"\text{fourteen apples}",
                r"\text{four hundred apples}",
                r"\text{four dozen apples}",
                r"\text{four dozens apples}",
                r"\text{minus four apples}",
                r"\text{four percent}",
                r"\text{four squared apples}",
                r"\text{four more apples}",
                r"\text{four pairs of apples}",
                r"\text{four times apples}",
                r"\text{four fifth apples}",
                r"\text{no four apples}",
                r"\text{not four apples}",
                r"\text{four or five apples}",
                r"\text{apples four}",
                r"\text{four apples and one}",
                r"\text{four to one apples}",
                r"\text{four kilograms}",
            ],
        ),
        (
            "How many eggs are in the box?",
            "12",
            [r"\text{twelve eggs}", r"\text{a dozen eggs}"],
            [
                r"\text{twelve hens}",
                r"\text{twenty eggs}",
                r"\text{two dozen eggs}",
                r"\text{dozens eggs}",
                r"\text{twelve boxes}",
                r"\text{twelve dollars}",
                r"\text{a hundred eggs}",
            ],
        ),
        (
            DOLLARS,
            "5",
            [r"\text{five dollars}", "five dollars"],
            [
                r"\text{five cents}",
                r"\text{five euros}",
                r"\text{five million dollars}",
                r"\text{five hundred dollars}",
                r"\text{five dollars per hour}",
                r"\text{fifty dollars}",
                r"\text{five pens}",
            ],
        ),
        (
            "How many real solutions are there?",
            "0",
            [r"\text{zero solutions}", r"\text{zero real solutions}"],
            [
                r"\text{one solution}",
                r"\text{zero imaginary solutions}",
                r"\text{zero roots}",
                r"\text{zero equations}",
                r"\text{zero dollars}",
                r"\text{ten solutions}",
                r"\text{nonzero solutions}",
            ],
        ),
        (
            KM,
            "90",
            [r"\text{ninety kilometers}", r"\text{ninety km}", r"ninety\text{ km}", "ninety km"],
            [
                r"\text{ninety miles}",
                r"\text{ninety meters}",
                r"\text{nineteen kilometers}",
                r"\text{ninety-one kilometers}",
                r"\text{ninety square kilometers}",
                r"\text{ninety kilometers per hour}",
                r"\text{ninety thousand kilometers}",
                r"\text{ninety kilometers squared}",
            ],
        ),
        (
            "How many pencils are there?",
            "25",
            [r"\text{twenty-five pencils}", r"\text{twenty five pencils}"],
            [
                r"\text{twenty pencils}",
                r"\text{twenty-five pens}",
                r"\text{five twenty pencils}",
                r"\text{twenty-fifth pencils}",
                r"\text{twenty-five thousand pencils}",
                r"\text{twenty-five}\%",
            ],
        ),
    ],
)
def test_a_number_in_words_may_have_a_noun_or_unit(problem, gold, answers, others):
    for answer in answers:
        assert is_right(answer, gold, problem), answer
    for other in others:
        assert not is_right(other, gold, problem), other


def test_words_that_only_begin_with_a_number_stay_words():
    for gold, other in [
        ("one-to-one", "1"),
        ("half circle", r"\frac12"),
        ("a third person", r"\frac13"),
        ("gross profit", "144"),
        ("score board", "20"),
        ("two of the", "2"),
        ("one or more", "1"),
    ]:
        assert is_right(rf"\text{{{gold}}}", rf"\text{{{gold}}}"), gold
        assert not is_right(other, rf"\text{{{gold}}}"), gold

"""One letter in the last box decides; everything else is malformed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from attacks.choices import near_misses, notations
from growth import LINEAR, exponent

from recipe.verify.choice import choice_verdict, read_letter
from recipe.verify.grading import grade, quick_grade
from recipe.verify.schema import Item, Verdict

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "choice.json"
CASES = json.loads(GOLDEN.read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["content"] for case in CASES])
def test_a_letter_is_right_or_wrong_and_no_letter_is_malformed(case):
    assert read_letter(case["content"]) == case["letter"]
    response = rf"first \boxed{{A}}, no: \boxed{{{case['content']}}}"
    for gold in "BJ":
        reason = "correct" if case["letter"] == gold else "wrong" if case["letter"] else "malformed"
        assert choice_verdict(response, gold).reason == reason


@pytest.mark.parametrize("gold", ["C", "c", "(C)", "C."])
def test_the_gold_letter_may_be_wrapped(gold):
    assert choice_verdict(r"\boxed{C}", gold) == Verdict(1.0, "correct", "C", "letter")


@pytest.mark.parametrize(
    ("response", "is_truncated", "reason"),
    [
        ("the answer is C", False, "no_answer"),
        ("the answer is", True, "truncated"),
        (r"\boxed{C} or \boxed{", False, "malformed"),
        (r"\boxed{}", False, "no_answer"),
        (r"\boxed{C} and on", True, "correct"),
    ],
)
def test_without_a_complete_box_there_is_no_answer(response, is_truncated, reason):
    assert choice_verdict(response, "C", is_truncated=is_truncated).reason == reason


@pytest.mark.parametrize("gold", ["", "4", "A and B"])
def test_a_gold_answer_that_is_no_letter_is_an_error(gold):
    assert choice_verdict(r"\boxed{C}", gold) == Verdict(0.0, "error", "C")


QUESTION = "Where is it?\n\nA. Rome\nB. Paris, France\nC. $\\frac{1}{2}$\n(D) Rome and Paris"


@pytest.mark.parametrize(
    ("content", "letter"),
    [
        *((form, "B") for form in ("B. Paris, France", "b) paris, france.", "(B) Paris, France")),
        *((form, "B") for form in (r"\text{B. Paris, France}", r"\textbf{(B)} Paris, France")),
        (r"B: \text{Paris, France}", "B"),
        (r"C. \frac{1}{2}", "C"),
        (r"(C) $\frac{1}{2}$", "C"),
        ("D. Rome and Paris", "D"),
        # The text of another option, of none, of a part, of more; no letter; two.
        *((form, "") for form in ("A. Paris, France", "B. London", "B. Paris", "E. Paris, France")),
        *((form, "") for form in ("B. Paris, France, or C", "Paris, France", "A. Rome B. Paris")),
        *((form, "") for form in ("B. Paris, France\nC. 1", "A. Rome and Paris", "B. B")),
    ],
)
def test_a_letter_may_stand_before_the_text_of_its_own_option(content, letter):
    found = choice_verdict(rf"\boxed{{{content}}}", "B", QUESTION)
    expected = "correct" if letter == "B" else "wrong" if letter else "malformed"
    assert (found.reason, found.extracted if letter else "") == (expected, letter)
    if letter and len(content) > 3:  # without the options nobody knows
        assert choice_verdict(rf"\boxed{{{content}}}", "B").reason == "malformed"


def test_a_megabyte_in_the_box_costs_nothing():
    assert choice_verdict(r"\boxed{" + "(" * 1_000_000 + "}", "C").reason == "malformed"


def test_choice_never_needs_a_process():
    item = Item(r"\boxed{C}", "C", kind="choice")
    assert quick_grade(item) == grade(item) == Verdict(1.0, "correct", "C", "letter")


# Words, quantities, formulas, prices, signs, logic, ten letters.
OPTIONS = (
    "12 cm|-12 cm|12 m|1.2 cm|12.5 cm|120 cm|0.12 cm|-1.2 cm|21 cm|2 cm",
    "$x^2$|$x^3$|$\\frac{x}{2}$|\\sqrt{2}|2^{-3}|3 × 10^8 m/s|$\\alpha + 1$|(0, 1)|{1, 2}|x^{2} y",
    "$1,400.00|$14.00|.04 per mile|50%|-15.88 cal/deg|- 3.5 cal/deg|98.6°|45 °C|1/2|0.5",
    "Yes, as it's late.|No, as it's late.|A diet high in calcium|Both a and b|None|Neither",
    "the mitochondria|the ribosome (60S)|Steyn (2003)|Na+ and K+ ions|vitamin B|Ca2+|He is B. Lee",
    "~P|P|P ∨ Q|P ⊃ ~Q|I only|II only|I and II|Options D and E|one of two lines|Zürich & Bern",
)
HEADS = ("{}. ", "({}) ", "{}) ", "{}: ", "**{}.** ", r"\textbf{{({})}} ", "- {}. ")


def questions(rng):
    """A letter and its text by letter, and the text of the question."""
    for line in OPTIONS:
        texts = line.split("|")
        rng.shuffle(texts)
        options = dict(zip("ABCDEFGHIJ", texts, strict=False))
        head = rng.choice(HEADS)
        listed = "\n".join(head.format(letter) + text for letter, text in options.items())
        yield options, rng.choice(("A. Use this.\nWhich?\nOptions:\n", "Which?\n\n")) + listed


def test_a_letter_beside_its_text_is_that_letter_in_every_notation():
    rng = random.Random(20_261_124)
    asked = [each for _ in range(8) for each in questions(rng)]
    refused = [
        (box, text)
        for options, problem in asked
        for letter, text in options.items()
        for box in notations(letter, text, rng, 6)
        if choice_verdict(rf"\boxed{{{box}}}", letter, problem).reason != "correct"
    ]
    assert refused == []


def test_a_letter_beside_another_text_is_no_letter():
    rng = random.Random(20_261_125)
    accepted = []
    for _ in range(20):
        for options, problem in questions(rng):
            for box in near_misses(options, rng, 30):
                found = choice_verdict(rf"\boxed{{{box}}}", "A", problem)
                if found.basis == "letter":
                    accepted.append((box, found.extracted, options[found.extracted]))
    assert accepted == []


@pytest.mark.parametrize(
    "unit", ["\\", "{", "}", "$", "(", r"\text{", r"\,", "~", "*", ".", "A ", "-", "½"]
)
def test_a_choice_costs_no_more_than_its_length(unit):
    def grade_both(text):
        for response in (rf"\boxed{{B. {text}}}", rf"\boxed{{{text} (B)}}"):
            choice_verdict(response, "B", QUESTION)
        choice_verdict(r"\boxed{B. x}", "B", text)

    # Beyond the cap on an option's text nothing is read, so that growth is seen below it.
    assert exponent(grade_both, lambda n: unit * (n // len(unit)), 240) < LINEAR

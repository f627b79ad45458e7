"""Generated leaks are found, generated honest hints are kept, both without exception."""

import asyncio
from dataclasses import replace
from fractions import Fraction

import pytest
from fakes import problem
from growth import LINEAR, exponent
from leak_forms import STATEMENTS, WRAPPERS, cardinal, share_forms, whole_forms
from leak_sayings import (
    BESIDE_THE_ANSWER,
    OPTIONS,
    QUESTIONS,
    WITH_NUMBERS_OF_THE_PROBLEM,
    honest_hints,
    option_hints,
)

from recipe.hint.hints.leak import find_leaks, graded_equal
from recipe.hint.hints.leak_numbers import Sizes, numbers
from recipe.hint.hints.leak_text import written
from recipe.verify.grading import grade

QUESTION = "How many books has she left?"


async def judge_all(items):
    return [grade(item) for item in items]


def leaking(hints, answer, question=QUESTION, kind="maths"):
    asked = replace(problem(), text=question, answer=answer, kind=kind)
    found = asyncio.run(find_leaks(hints, asked, graded_equal(judge_all)))
    for hint, leaks in zip(hints, found, strict=True):
        assert all(0 <= leak.start < leak.end <= len(hint) for leak in leaks)
    return [hint for hint, leaks in zip(hints, found, strict=True) if leaks]


@pytest.mark.parametrize("number", [7, 12, 42, 437, 1437, 12500])
def test_a_stated_number_is_found_in_any_writing_markup_and_sentence(number):
    hints = [saying.format(form) for form in whole_forms(number) for saying in STATEMENTS[:6]]
    looks = [look.format(number) for look in WRAPPERS]
    hints += [saying.format(look) for look in looks for saying in STATEMENTS]
    assert sorted({*hints} - {*leaking(hints, str(number))}) == []


SHARES = [("3/4", r"\frac{3}{4}"), ("3/4", "0.75"), ("5/8", "5/8"), ("7/20", "0.35")]


@pytest.mark.parametrize(("share", "answer"), SHARES)
def test_a_stated_share_is_found_in_any_writing(share, answer):
    forms = share_forms(Fraction(share))
    hints = [saying.format(form) for form in forms for saying in STATEMENTS[:6]]
    assert sorted({*hints} - {*leaking(hints, answer)}) == []


@pytest.mark.parametrize("number", [*range(2, 13), 60, 100])
def test_an_honest_hint_may_name_the_number_of_a_small_answer(number):
    hints = [each.format(a=a) for each in BESIDE_THE_ANSWER for a in (number, cardinal(number))]
    assert leaking(hints, str(number), "What is y?") == []


@pytest.mark.parametrize("answer", ["1", "2", "3", "4", "5", "7", "12", "42", "437", "0.75", "60"])
def test_an_honest_hint_may_name_other_numbers(answer):
    question = "Ann has 15 boxes of 38 pens and sells 9 of them. What is left?"
    texts = WITH_NUMBERS_OF_THE_PROBLEM
    hints = [each.format(n=n, m=m) for each in texts for n in (15, 9) for m in (38, 9)]
    assert leaking(hints, answer, question) == []


def test_a_sentence_of_the_problem_may_be_repeated():
    question = "A jar of butter costs $3. Ann leaves 28 dollars. What is left?"
    for answer in ("3", "28"):
        hints = [f"Remember: {each}." for each in question.split(". ")[:2]]
        assert leaking(hints, answer, question) == []


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("letter", OPTIONS)
def test_an_option_is_found_by_its_letter_place_text_or_by_ruling_out_all_others(letter, question):
    hints = list(option_hints(letter))
    assert sorted({*hints} - {*leaking(hints, letter, question, "choice")}) == []


@pytest.mark.parametrize("letter", OPTIONS)
def test_an_honest_hint_may_speak_of_options(letter):
    assert leaking(list(honest_hints(letter)), letter, QUESTIONS[0], "choice") == []


def test_a_place_in_rewritten_signs_is_one_of_the_original():
    hint = "4\u200b2 is\u00a0½ of 8&#52;, x² + 1\\,437"
    read = written(hint)
    assert read.text == "42 is 1/2 of 84, x² + 1437"
    shown = [hint[slice(*read.span(*span))] for span in ((0, 2), (6, 9), (13, 15), (22, 26))]
    assert shown == ["4\u200b2", "½", "8&#52;", "1\\,437"]


GOES_ON = ["2 more than you think", "3x", "40+2+1", "12 minus the number", "3 of the 8", "3-digit"]


class Every:
    """Each number is looked for."""

    def __contains__(self, number):
        return True


@pytest.mark.parametrize("text", [*GOES_ON, "3rd", "I think", "C", "one of the cases"])
def test_what_goes_on_is_not_a_number_by_itself(text):
    for number in numbers(text, Sizes(Every(), Every())):
        assert leaking([f"The answer is {text}."], str(number.value), "What is y?") == []


@pytest.mark.parametrize("text", ["1/0", "2^999999", "10^-5", "sqrt", "9" * 99, "half of", "1e99"])
def test_a_number_without_a_small_exact_value_is_harmless(text):
    assert all(abs(number.value) < 10**100 for number in numbers(text, Sizes(Every(), Every())))


PUMPS = ["answer is ", "the answer A ", "not A, ", "A, ", "A ", "option ", "A is ", "all ", "A or "]
PUMPS += ["the second ", "it is ", "Mars ", "answer", "- ", "4 ", "\u200b", "½", "&#5", "1_"]
PUMPS += [
    "437 ",
    "437" + " " * 400,
    "half of 874, ",
    "change 1 ",
    "is the answer ",
    "<b ",
    "[a](",
    "\\bf",
    "((",
    "one-",
    "1,000",
]


@pytest.mark.parametrize("kind", ["choice", "maths"])
@pytest.mark.parametrize("pump", PUMPS)
def test_the_work_on_a_hostile_hint_grows_with_its_size(pump, kind):
    answer = {"choice": "B", "maths": "437"}[kind]
    asked = replace(problem(), text=QUESTIONS[0], answer=answer, kind=kind)

    async def everything_equal(problem, candidates):
        return [True] * len(candidates)

    def look(hint):
        return asyncio.run(find_leaks([hint], asked, everything_equal))

    assert exponent(look, lambda size: pump * (size // len(pump)), 2_000) < LINEAR

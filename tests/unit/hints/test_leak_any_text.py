"""The leak guard on any text: no blank value, nothing lost, work that grows with the size."""

import asyncio
from dataclasses import replace
from fractions import Fraction

import pytest
from fakes import problem
from growth import LINEAR, exponent
from hypothesis import given
from hypothesis import strategies as st

from recipe.hint.hints.leak import find_leaks, redact
from recipe.hint.hints.leak_numbers import numbers, sizes_of
from recipe.hint.hints.leak_text import compact, plain, unmarked, values, written

PIECES = st.sampled_from(
    [r"\frac{1}{2}", r"\boxed{", "}", "$", "$$", r"\(", r"\$", "=", "12", "1,200", "twenty", "-"]
    + ["a half", "the answer is ", "and ", " ", "\n", "(", ")", "x", "^", "!", "%", r"\\", "&", ","]
    + [
        r"\begin{pmatrix}",
        r"\end{pmatrix}",
        "=12",
        "to be ",
        "there are ",
        ".",
        "\x00",
        "é",
        r"\boxed{}",
        r"\cdot",
        "**",
        "_",
        "`",
        "=>",
        "####",
        "<answer>",
        "</answer>",
        r"\text{",
        "４",
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=60))


@given(TEXTS)
def test_a_place_is_the_same_without_markup(text):
    assert len(plain(text)) == len(unmarked(text)) == len(text)


@given(TEXTS, st.sampled_from(["12", "1/2", "x+1", r"\text{no}", "(1,2)"]))
def test_any_hint_is_read_and_only_leaks_are_replaced(hint, answer):
    async def equal(problem, candidates):
        return [candidate == problem.answer for candidate in candidates]

    asked = replace(problem(), answer=answer)
    [leaks] = asyncio.run(find_leaks([hint], asked, equal))
    kept, at = [], 0
    for leak in leaks:
        assert at <= leak.start < leak.end <= len(hint)
        kept += [hint[at : leak.start], "[...]"]
        at = leak.end
    assert redact(hint, leaks) == "".join(kept) + hint[at:]


NUMBERS = ["3", "0.5", "50.42", "1,437", "1.437", "one", "seventy", "hundred", "dozen", "half", "a"]
BETWEEN = ["", " ", ".", "..", ",", "-", " point ", " and ", "/", "^", "**", " over ", "e", " e-"]
BETWEEN += [r"\frac", "}{", " % of ", " times ", "\u00bd", "\u00b2", "&#52;", "_", r"\,", " base "]


@given(st.lists(st.sampled_from(NUMBERS + BETWEEN), max_size=12).map("".join))
def test_any_row_of_numbers_and_signs_is_read(text):
    for number in numbers(written(text).text, sizes_of({3, Fraction(1, 2)})):
        assert 0 <= number.start < number.end


@pytest.mark.parametrize("number", NUMBERS)
def test_a_loop_of_numbers_is_read_however_long(number):
    # A model that loops fills its response; of 4,301 digits Python makes no number.
    for sign in BETWEEN:
        text = written(f"{number}{sign}" * 4400).text
        assert len(list(numbers(text, sizes_of({3, Fraction(1, 2)})))) <= 3 * 4400


@given(TEXTS)
def test_a_mention_lies_within_the_text_and_holds_a_value(text):
    for value in values(text):
        assert 0 <= value.statement <= value.start < value.end <= len(text)
        assert compact(value.text) != ""


# What a box, a sign or a command may hold that is no value.
BLANK = st.lists(
    st.sampled_from(["", " ", "\n", "{}", "$", r"\left", r"\,", r"\text{}", r"\cdot", "*", "()"]),
    max_size=4,
).map("".join)
HOLDERS = st.sampled_from(
    [
        r"\boxed{%s}",
        r"\boxed {%s}",
        r"\boxed{\boxed{%s}}",
        "$%s$",
        "The answer is %s.",
        "= %s",
        "%s",
    ]
    + [r"\text{%s}", r"\frac{%s}{%s}", "(%s)", "x = %s", r"\boxed{%s", "option (%s)"]
)


@given(
    st.lists(st.tuples(HOLDERS, BLANK), min_size=1, max_size=4),
    BLANK,
    st.sampled_from(["12", "1/2", "x+1", "(1,2)", r"\text{no}", "B", "()", "{}", r"\text{}", "$"]),
    st.sampled_from(["maths", "choice"]),
)
def test_what_holds_no_value_is_neither_compared_nor_a_leak(held, question, answer, kind):
    asked_for = []

    async def equal(problem, candidates):
        asked_for.extend(candidates)
        return [compact(candidate) == compact(problem.answer) for candidate in candidates]

    hint = " ".join(holder.replace("%s", blank) for holder, blank in held)
    asked = replace(problem(), text=question, answer=answer, kind=kind)
    [leaks] = asyncio.run(find_leaks([hint], asked, equal))
    assert all(compact(each) for each in asked_for)
    assert all(compact(hint[leak.start : leak.end]) for leak in leaks)


HOSTILE = {
    "brackets": lambda size: "(" * size,
    "a bracket and spaces": lambda size: "(" + " " * size + "12",
    "fillers": lambda size: "to be " * (size // 6) + "12",
    "numbers": lambda size: "12 " * (size // 3),
    "equations": lambda size: "= 12 " * (size // 5),
    "dollars": lambda size: "$" * size,
    "boxes": lambda size: r"\boxed{12} " * (size // 11),
    "boxes never closed": lambda size: r"\boxed{" * (size // 7),
    "boxes in boxes": lambda size: r"\boxed{" * (size // 8) + "}" * (size // 8),
    "bangs": lambda size: "5!" + " " * size + "5! " * (size // 3),
    "numbers in words": lambda size: "two and " * (size // 8),
    "fractions in words": lambda size: "two hundred and a half " * (size // 23),
    "digits": lambda size: "1" * size,
    "thousands": lambda size: "1,000" + ",000" * (size // 4),
    "formulas": lambda size: r"$\frac{1}{2}$ " * (size // 14),
    "texts never closed": lambda size: r"\text{a" * (size // 7),
    "emphasis never closed": lambda size: "*a" * (size // 2),
    "emphasis in emphasis": lambda size: "**_a " * (size // 5) + "_**" * (size // 6),
    "arrows": lambda size: "=>" * (size // 2),
    "last lines": lambda size: "####" + "1," * (size // 2),
    "one long statement": lambda size: "x = 12 + y " * (size // 11),
}


async def everything_equal(problem, candidates):
    return [True] * len(candidates)


@pytest.mark.parametrize("name", HOSTILE)
def test_the_work_on_a_hostile_hint_grows_with_its_size(name):
    def look(hint):
        return asyncio.run(find_leaks([hint], problem(), everything_equal))[0]

    assert exponent(look, HOSTILE[name], 2_000) < LINEAR

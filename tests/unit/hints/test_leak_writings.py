"""Answers that are no plain number: found word for word, as lists, as residues, with a sign."""

import asyncio
import itertools
from dataclasses import replace

import pytest
from fakes import problem
from growth import LINEAR, exponent

from recipe.hint.hints.leak import find_leaks, graded_equal
from recipe.verify.grading import grade


async def judge_all(items):
    return [grade(item) for item in items]


def leaking(hints, answer, question="What is asked?"):
    asked = replace(problem(), text=question, answer=answer)
    found = asyncio.run(find_leaks(hints, asked, graded_equal(judge_all)))
    return [hint for hint, leaks in zip(hints, found, strict=True) if leaks]


OWN = ["April 11", "3 hours 20 minutes", "Team 7", "2 boys and 3 girls", "Room 12B", "1st and 3rd"]
OWN += [
    "x-axis",
    "non-negative",
    "Zoë",
    "O'Brien",
    "3:2",
    "3 : 2",
    "1:2:3",
    "12, 15, 20",
    "5:30 PM",
]
OWN += [
    "10:30 a.m.",
    "Day 5",
    "50% off",
    r"\text{April } 11",
    "New York",
    "Type II error",
    "Ann, Bob",
]
SAYINGS = ["The answer is {}.", "It is {}.", "{}", "**{}**", "Answer: {}", "{} is the answer."]
SAYINGS += [r"$\boxed{{{}}}$", "The final answer is **{}**.", "You should get {}.", "${}$"]


@pytest.mark.parametrize("answer", OWN)
def test_the_own_text_of_an_answer_is_found(answer):
    hints = [saying.format(answer) for saying in SAYINGS]
    assert sorted({*hints} - {*leaking(hints, answer)}) == []


@pytest.mark.parametrize("answer", ["April 11", "Room 12B", "3:2", "x-axis", "Zoë", "12, 15, 20"])
@pytest.mark.parametrize("longer", ["1{}", "{}1", "a{}", "{}s", "x-{}", "{}-like"])
def test_a_part_of_longer_words_is_not(answer, longer):
    assert leaking([f"Think of {longer.format(answer)} first."], answer) == []


def test_the_number_of_an_answer_in_words_is_not_the_answer():
    assert leaking(["The answer is 11.", "Go on for 11 days."], "April 11") == []
    assert leaking(["The answer is 12."], "12 km") == ["The answer is 12."]


@pytest.mark.parametrize("answer", ["3:2", "Team 7"])
def test_a_text_of_the_problem_may_be_repeated(answer):
    question = f"One of them has {answer}. What is asked?"
    assert (
        leaking([f"One of them has {answer}.", f"Look at {answer} again."], answer, question) == []
    )
    assert leaking([f"The answer is {answer}."], answer, question)


AND = [", ", " and ", ", and ", " or ", "; "]


@pytest.mark.parametrize("sign", AND)
def test_a_list_is_found_with_any_sign_between_its_values(sign):
    hints = [look.replace("&", sign) for look in ("So -125&317.", "$-125$&$317$", "317&-125")]
    hints += [f"$x = -125${sign}$x = 317$", f"x_1=317{sign}x_2=-125", f"$x=-125{sign}x=317$"]
    assert sorted({*hints} - {*leaking(hints, "-125, 317")}) == []
    assert leaking([hint.replace("-", "") for hint in hints], "-125, 317") == []


@pytest.mark.parametrize("numbers", itertools.permutations(["12", "15", "20"]))
def test_a_list_of_three_is_found_in_any_order(numbers):
    one, two, three = numbers
    hints = [f"{one}, {two}, {three}", f"{one}, {two} and {three}", f"{one}, {two}, and {three}"]
    assert leaking(hints, "12, 15, 20") == hints
    assert leaking([f"{one} and {two}", f"{one}, {two}, {three}1"], "12, 15, 20") == []


NEGATIVE = [r"\frac{-7}{3}", r"\frac{7}{-3}", r"\dfrac{-7}{3}", r"\frac{ -7 }{3}", "(-7)/3", "-7/3"]


@pytest.mark.parametrize("form", [*NEGATIVE, r"-\frac{7}{3}", r"-\frac{-7}{-3}", r"\frac{-14}{6}"])
def test_a_negative_fraction_is_found_wherever_its_sign_stands(form):
    hints = [f"The answer is ${form}$.", f"$x={form}$", f"So it is ${form}$."]
    assert leaking(hints, r"-\frac{7}{3}") == hints
    assert leaking(hints, r"\frac{7}{3}") == []


@pytest.mark.parametrize(
    "form", [r"\frac{7}{3}", r"-\frac{-7}{3}", r"\frac{-7}{-3}", r"\frac{5-7}{3}"]
)
def test_a_fraction_with_another_sign_is_another_one(form):
    assert leaking([f"The answer is ${form}$.", f"$x={form}$"], r"-\frac{7}{3}") == []


@pytest.mark.parametrize(("answer", "percent"), [(r"\frac{3}{10}", 30), ("0.35", 35), ("7/20", 35)])
@pytest.mark.parametrize("form", ["{}%", r"{}\%", "{} percent"])
def test_a_share_is_found_in_percent(answer, percent, form):
    hints = [f"The probability is {form}.", f"$P = {form}$", f"That is a {form} chance."]
    same = [hint.format(percent) for hint in hints]
    assert leaking(same, answer) == same
    assert leaking([hint.format(percent + 1) for hint in hints], answer) == []


MODULI = [r"\pmod{23}", r"\pmod 23", "(mod 23)", r"\mod 23", r"(\bmod 23)", r"(\text{mod } 23)"]


@pytest.mark.parametrize("modulus", [*MODULI, r"\pmod n", "( mod 23 )"])
def test_a_residue_is_found_before_its_modulus(modulus):
    hints = [rf"$7^{{100}} \equiv 17 {modulus}$", f"7^100 ≡ 17 {modulus}", f"≡ 17 {modulus}."]
    assert leaking(hints, "17") == hints
    assert leaking([rf"$7 \equiv 1 {modulus}$", f"7 ≡ 1 {modulus}"], "1") == []
    assert leaking(hints, "23") == []


WORDS = {
    "even": ["f is even if f(-x) = f(x).", "Is it odd or even?", "Even functions are symmetric."],
    "No": ["No two terms are equal.", "There is no bound.", "No, look again at line 2."],
    "True": ["Check whether it is true for n = 1.", "Is it true?", "Suppose it is true."],
    r"\text{False}": ["Assume it is false.", "If it is false, what follows?", "A false start."],
    "right": ["You are on the right track.", "Look at the right side.", "Right behind it."],
    "increases": ["See what happens when x increases.", "The answer increases the sum."],
}


@pytest.mark.parametrize("answer", WORDS)
def test_a_common_word_is_the_answer_only_where_it_is_said_to_be(answer):
    word = answer.removeprefix(r"\text{").removesuffix("}")
    hints = [f"The answer is {word.lower()}.", word, rf"$\boxed{{{answer}}}$", f"**{word}**."]
    hints += [rf"\textbf{{{word}}}", f"What is asked? {word}.", f"{word}, it is."]
    assert sorted({*hints} - {*leaking(hints, answer)}) == []
    assert leaking(WORDS[answer], answer) == []


HOSTILE = ["12, ", "12 and ", "x = 1 or ", "12,", "Team ", "Team 7, ", "3 : ", "even, ", "No, it "]
HOSTILE += [r"\pmod{", r"(mod ", r"\mod 1 ", r"\frac{-", "(-7)/", "sqrt(", "9 pi", "f'", "'("]
HOSTILE += ["12," + " " * 400, "3" + " " * 400]


@pytest.mark.parametrize(
    ("pump", "answer"), zip(HOSTILE, itertools.cycle(["12, 15, 20", "even", "-7/3"]), strict=False)
)
def test_the_work_on_a_hostile_hint_grows_with_its_size(pump, answer):
    asked = replace(problem(), answer=answer)

    async def everything_equal(problem, candidates):
        return [True] * len(candidates)

    def look(hint):
        return asyncio.run(find_leaks([hint], asked, everything_equal))

    assert exponent(look, lambda size: pump * (size // len(pump)), 1_000) < LINEAR


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ("12, 15, 20", "The divisors of 60 above 9 are 10, 12, 15, 20, 30: which three fit?"),
        ("1, 2, 3", "Try n = 0, 1, 2, 3, 4."),
        ("1, 2, 3", "In steps 1, 2, 3 you use the same idea."),
        ("1, 2", "In lines 1, 2 the sign changes."),
        ("0, 1", "Compare x = 0 and x = 1 with x = 2."),
    ],
)
def test_a_part_of_a_longer_list_and_numbers_of_steps_are_no_list_of_the_answer(answer, hint):
    assert leaking([hint], answer) == []


@pytest.mark.parametrize(
    ("answer", "hints"),
    [
        ("odd", ["So f is odd.", "Therefore f is odd, since f(-x) = -f(x).", "Thus f is odd."]),
        ("irrational", ["It turns out to be irrational.", "Hence the sum is irrational."]),
        ("no", ["Therefore no, it does not converge.", "So no."]),
        ("yes", ["Yes: 7*13.", "So yes, it is."]),
    ],
)
def test_a_word_that_is_concluded_is_found(answer, hints):
    assert leaking(hints, answer) == hints


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        ("odd", "So if f is odd, what is f(0)?"),
        ("even", "It is known that the sum of two odd numbers is even or zero."),
        ("no", "So no term can be negative."),
        ("yes", "Thus ask: yes or no?"),
    ],
)
def test_a_word_in_what_is_assumed_or_asked_is_not(answer, hint):
    assert leaking([hint], answer) == []


@pytest.mark.parametrize("num_blocks", range(1, 7))
def test_a_right_program_is_found_among_up_to_six_blocks_with_words_between(num_blocks):
    block = "```python\ndef f(x):\n    return {}\n```"
    for place in range(num_blocks):
        blocks = [block.format("x * x" if at == place else "0") for at in range(num_blocks)]
        asked = replace(problem(), answer="assert f(3) == 9", kind="program")
        hint = "First:\n" + "\nor\n".join(blocks) + "\nThen stop."

        async def equal(_, candidates):
            return [each.count("def f") == 1 and "x * x" in each for each in candidates]

        [leaks] = asyncio.run(find_leaks([hint], asked, equal))
        assert [hint[each.start : each.end] for each in leaks] == ["\nor\n".join(blocks)]

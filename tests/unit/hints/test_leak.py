"""Which values of a hint give the answer away."""

import asyncio
from dataclasses import replace

import pytest
from fakes import problem

from recipe.hint.hints.leak import find_leaks, graded_equal, redact
from recipe.hint.hints.leak_text import values
from recipe.verify.grading import grade
from recipe.verify.schema import Verdict


async def judge_all(items):
    return [grade(item) for item in items]


EQUAL = graded_equal(judge_all)


def spans(hint: str, answer: str, question: str = "How many are there?", kind="maths") -> list[str]:
    asked = replace(problem(), text=question, answer=answer, kind=kind)
    [found] = asyncio.run(find_leaks([hint], asked, EQUAL))
    return [hint[leak.start : leak.end] for leak in found]


# -- a rare answer leaks wherever it stands -------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "answer", "leak"),
    [
        ("Think of 437 first.", "437", "437"),
        ("It is 1,437 in all.", "1437", "1,437"),
        (r"So $\boxed{437}$.", "437", "437"),
        ("It is four hundred thirty-seven.", "437", "four hundred thirty-seven"),
        (r"You get $\frac{7}{9}$.", "7/9", r"\frac{7}{9}"),
        ("You get 7/9.", r"\frac{7}{9}", "7/9"),
        ("That is seven ninths.", r"\frac79", "seven ninths"),
        ("That is 3 3/4 cups.", "3.75", "3 3/4"),
        ("It costs $18.90 now.", r"\$18.90", "18.90"),
        (r"It costs \$18.9 now.", r"\$18.90", "18.9"),
        ("$30 + $12 + $48 = $90", "90", "90"),
        ("A rise of 37%.", r"37\%", "37%"),
        ("You land at -3.", "-3", "-3"),
        (r"so it is $2\sqrt{5}$.", r"2\sqrt{5}", r"2\sqrt{5}"),
        (
            r"\[= \begin{pmatrix} 1 \\ -2 \end{pmatrix}.\]",
            r"\begin{pmatrix} 1 \\ -2 \end{pmatrix}",
            None,
        ),
        ("It is at (2, 7) then.", "(2,7)", "(2, 7)"),
        ("It ends on a thursday.", r"\text{Thursday}", "thursday"),
    ],
)
def test_a_rare_value_is_found_in_any_writing(hint, answer, leak):
    found = spans(hint, answer)
    assert len(found) == 1
    assert leak is None or found == [leak]


@pytest.mark.parametrize(
    ("hint", "answer"),
    [
        ("Multiply 19 by 23.", "437"),  # a product that is left to do
        (r"Compute $19 \cdot 23$ or $\frac{874}{2}$.", "437"),
        ("Divide: 874 / 2", "437"),
        (r"Simplify $\sqrt{2}\sqrt{10}$ further.", r"2\sqrt{5}"),
        ("The exponent in $x^{437}$, the index of $a_{437}$, the factor of $437x$.", "437"),
        ("37. Start here.", "37"),
        ("In step 37 you divide.", "37"),
    ],
)
def test_what_is_left_to_do_or_a_part_of_a_formula_is_no_leak(hint, answer):
    assert spans(hint, answer) == []


# -- a common answer leaks as a result only -------------------------------------------------------


@pytest.mark.parametrize(
    "hint",
    [
        "The answer is 2.",
        r"The final answer is therefore $\boxed{2}$.",
        "Answer: 2",
        "2 is the answer.",
        "$x = 2$",
        "10 / 5 = 2",
        "Ten divided by five gives 2.",
        "That leaves two.",
        "So there are 2.",
        "200 apples - 198 apples = 2 apples",
    ],
)
def test_a_two_that_is_a_result_leaks(hint):
    assert spans(hint, "2", "What is x?") in (["2"], ["two"])


@pytest.mark.parametrize(
    "hint",
    [
        "There are 2 ways to go on.",
        "Step 2: simplify.",
        "2. Simplify.",
        "The answer is not 2.",
        "The answer is more than 2.",
        "The answer is 2 more than you think.",
        "Let $x = 2$ and see what happens.",
        "$2x = 8$",
        "Square it: $x^2$.",
        "Use the two sides.",
        "Solve $x - 7 = 2$.",
    ],
)
def test_a_two_in_another_role_does_not(hint):
    assert spans(hint, "2", "What is y?") == []


@pytest.mark.parametrize("answer", ["2", "12", "100", "x+1", r"\frac{1}{2}"])
@pytest.mark.parametrize("shape", ["{}", "{}.", "**{}**", "${}$", " - ${}$!", "$$\n{}\n$$"])
def test_a_hint_of_nothing_but_the_answer_leaks(answer, shape):
    assert spans(shape.format(answer), answer)
    assert not spans(shape.format(3), answer)


def test_a_number_that_the_problem_gives_is_no_leak_by_itself():
    question = "Two dice show 40 and 17 in a game. What is x?"
    assert spans("Start from the 40.", "40", question) == []
    assert spans("One shows 40.", "40", question) == []
    assert spans("23 + 17 = 40", "40", question) == ["40"]
    assert spans("The answer is 40.", "40", question) == ["40"]


def test_an_equation_of_the_problem_may_be_repeated():
    question = "If 3x + 1 = 10 and y = 5, what is y + x - 3?"
    assert spans("You know that $y = 5$.", "5", question) == []
    assert spans("Then y + x - 3 = 5 + 3 - 3 = 5.", "5", question) == ["5"]


# -- kinds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hint",
    [
        *("Choose B.", "The answer is (B).", r"\boxed{B}", "So option B", "Go with B."),
        *(
            "B is correct.",
            "(B) is the right one.",
            "Think.\n**B**",
            "**(B)**",
            "B) Mars is correct",
        ),
    ],
)
def test_the_letter_of_a_choice_leaks_where_it_is_named_as_one(hint):
    assert spans(hint, "B", kind="choice") == ["B"]
    assert spans(hint, r"\text{(B)}") == ["B"]


@pytest.mark.parametrize(
    "hint",
    [
        *("B is the midpoint of AC.", "Compare A with B.", "Choose D.", "Angle B is right."),
        *("A\nC", "D is correct.", "B is a right angle.", "B is not correct."),
    ],
)
def test_other_capitals_do_not(hint):
    assert spans(hint, "B", kind="choice") == []


DECOY = "```python\ndef f(x):\n    return 0\n```"
SQUARE = "```python\ndef f(x):\n    return x * x\n```"


@pytest.mark.parametrize(
    ("hint", "leak"),
    [
        (f"Write this:\n{SQUARE}\nThen stop.", [SQUARE]),
        (f"This: {SQUARE}.".replace("`", "~"), [SQUARE.replace("`", "~")]),
        (SQUARE.replace("x * x", "x + x"), []),
        (SQUARE.removesuffix("```"), []),  # a block that is not closed is no program
        ("The answer is 9, so f(3) == 9.", []),
        # A decoy behind it, or before it: the verifier takes the last block.
        (f"{SQUARE}\nor\n{DECOY}", [f"{SQUARE}\nor\n{DECOY}"]),
        ("\n".join([DECOY] * 9 + [SQUARE]), ["\n".join([DECOY] * 9 + [SQUARE])]),
        ("\n".join([DECOY] * 9), []),
    ],
)
def test_a_program_leaks_where_its_code_block_passes_the_tests(hint, leak):
    assert spans(hint, "assert f(3) == 9", kind="program") == leak


def test_without_a_code_block_no_program_is_run():
    async def equal(problem, candidates):
        raise AssertionError("asked")

    asked = replace(problem(), answer="assert f(3) == 9", kind="program")
    assert asyncio.run(find_leaks(["Square it.", ""], asked, equal)) == [(), ()]


# -- what is asked --------------------------------------------------------------------------------

HINT = "First 4 + 5 = 9, so $x = 437$; the answer is 437."


def test_each_leak_has_the_role_that_it_counts_for():
    [leaks] = asyncio.run(find_leaks([HINT], replace(problem(), answer="437"), EQUAL))
    assert [leak.role for leak in leaks] == ["named", "stated"]
    assert redact(HINT, leaks) == "First 4 + 5 = 9, so $x = [...]$; the answer is [...]."


def test_a_value_that_the_verifier_cannot_decide_on_is_no_leak():
    async def timeouts(items):
        return [Verdict(0.0, "timeout") for _ in items]

    asked = replace(problem(), answer="437")
    assert asyncio.run(find_leaks([HINT], asked, graded_equal(timeouts))) == [()]


def test_the_verifier_is_asked_once_for_all_hints_of_a_problem_and_for_each_value_once():
    asked_for = []

    async def equal(problem, candidates):
        asked_for.append(list(candidates))
        return [False] * len(candidates)

    # What no comparison can make 437 is not asked about: 5, 9 = 5 + 4, 438.
    hints = ["0437 and 0437, 437.0 = 433 + 4, 9 = 5 + 4", "+437 or 0437", "none", "438"]
    asked = replace(problem(), text="437.00? 7?", answer="437")
    assert asyncio.run(find_leaks(hints, asked, equal)) == [(), (), (), ()]
    assert asked_for == [["0437", "437.0", "437", "+437", "437.00"]]


# -- markup -------------------------------------------------------------------------------------

LOOKS = [
    *("**{}**", "*{}*", "_{}_", "__{}__", "***{}***", "**_{}_**", "~~{}~~", "`{}`", "<b>{}</b>"),
    *(r"\text{{{}}}", r"\textbf{{{}}}", r"\mathbf{{{}}}", r"\mathrm{{{}}}", r"$\text{{{}}}$"),
]
DIGITS = ["０１２３４５６７８９", "٠١٢٣٤٥٦٧٨٩", "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗"]
SAYINGS = [
    "The answer is {}.",
    "So she has {} books left.",
    "That leaves {} books.",
    "9 - 5 + 433 = {}",
    "Therefore x = {}.",
    "Think of {} first.",
    "Is it more than {}?",
    "Look at line {} again.",
]


@pytest.mark.parametrize("answer", ["437", "7"])
@pytest.mark.parametrize("saying", SAYINGS)
def test_a_value_leaks_whatever_it_looks_like(saying, answer):
    question = "How many books has she left?"
    is_leak = bool(spans(saying.format(answer), answer, question))
    looks = [look.format(answer) for look in LOOKS]
    looks += [answer.translate(str.maketrans("0123456789", digits)) for digits in DIGITS]
    hints = [saying.format(look) for look in looks]
    assert [hint for hint in hints if bool(spans(hint, answer, question)) != is_leak] == []


def test_what_stands_between_two_numbers_is_no_emphasis():
    assert spans("2 * 437 * 3 and 2**437**3 and x_437_y", "437") == []


@pytest.mark.parametrize(
    "hint",
    [
        *(
            "**Answer:** 7",
            "**Final answer: 7**",
            "<answer>7</answer>",
            "#### 7",
            "Ans: 7",
        ),
        *("It should be 7 instead of 15.", "You should have gotten 7.", "Result: 7", "it's 7."),
        *("Not 15; 7 is right.", "The right number is 7, not 15.", "leading to 7", "left with 7"),
    ],
)
def test_a_correction_gives_a_small_answer_away(hint):
    assert spans(hint, "7") == ["7"]


@pytest.mark.parametrize("hint", ["#### 7. Subtract", "It should be more than 7.", "Is 7 right?"])
def test_a_small_number_beside_such_words_does_not(hint):
    assert spans(hint, "7") == []


# -- numbers in words ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("two thousand three hundred and six", ["2306"]),
        ("seven and a half", ["15/2"]),
        ("Three, four", ["3", "4"]),
        ("three and four", ["3", "4"]),
        ("a dozen", ["12"]),
        ("the third of two", ["2"]),
        ("at one third", ["1/3"]),
        ("a hand", []),
    ],
)
def test_numbers_in_words(text, numbers):
    found = [value.text for value in values(text) if value.shape == "word"]
    for number, value in zip(numbers, found, strict=True):
        assert asyncio.run(EQUAL(replace(problem(), answer=number), [value])) == [True]


def test_words_that_the_verifier_does_not_read_are_not_taken_for_a_part_of_them():
    assert spans("It is three hundred and a half.", "300") == []


def test_an_answer_of_more_digits_than_python_reads_is_compared_all_the_same():
    assert spans("It is " + "7" * 5000, "7" * 5000) == ["7" * 5000]

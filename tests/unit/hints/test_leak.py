"""Which values of a hint give the answer away, and what each policy makes of them."""

import asyncio
from dataclasses import replace

import pytest
from fakes import problem
from growth import LINEAR, exponent
from hypothesis import given
from hypothesis import strategies as st

from recipe.hint.hints.leak import LeakGuard, find_leaks, judged_equal, redact
from recipe.hint.hints.leak_text import compact, mentions
from recipe.hint.hints.leak_words import word_numbers
from recipe.hint.schema import Verdict
from recipe.hint.verify.maths import judge


async def judge_all(items):
    return [judge(item.response, item.answer) for item in items]


EQUAL = judged_equal(judge_all)


def spans(hint: str, answer: str, question: str = "How many are there?", kind="maths") -> list[str]:
    asked = replace(problem(), text=question, answer=answer, kind=kind)
    return [hint[leak.start : leak.end] for leak in asyncio.run(find_leaks(hint, asked, EQUAL))]


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


@pytest.mark.parametrize("hint", ["Choose B.", "The answer is (B).", r"\boxed{B}", "So option B"])
def test_the_letter_of_a_choice_leaks_where_it_is_named_as_one(hint):
    assert spans(hint, "B", kind="choice") == ["B"]
    assert spans(hint, r"\text{(B)}") == ["B"]


@pytest.mark.parametrize("hint", ["B is the midpoint of AC.", "Compare A with B.", "Choose D."])
def test_other_capitals_do_not(hint):
    assert spans(hint, "B", kind="choice") == []


def test_a_program_is_not_looked_at():
    assert spans("The answer is 2.", "assert f(1) == 2", kind="program") == []


# -- policies -------------------------------------------------------------------------------------

HINT = "First 4 + 5 = 9, so $x = 437$; the answer is 437."


@pytest.mark.parametrize(
    ("policy", "status", "text"),
    [
        ("measure", "ok", HINT),
        ("drop", "leaked", ""),
        ("redact", "ok", "First 4 + 5 = 9, so $x = [...]$; the answer is [...]."),
    ],
)
def test_each_policy_does_what_it_says(policy, status, text):
    guard = LeakGuard(policy, EQUAL)
    found = asyncio.run(guard.check(replace(problem(), answer="437"), HINT))
    assert (found.status, found.text) == (status, text)
    assert [leak.role for leak in found.leaks] == ["named", "stated"]


def test_a_hint_without_a_leak_is_left_alone_by_every_policy():
    for policy in ("measure", "drop", "redact"):
        found = asyncio.run(LeakGuard(policy, EQUAL).check(problem(), "Think."))
        assert (found.status, found.text, found.leaks) == ("ok", "Think.", ())


def test_a_value_that_the_verifier_cannot_decide_on_is_no_leak():
    async def timeouts(items):
        return [Verdict(0.0, "timeout") for _ in items]

    asked = replace(problem(), answer="437")
    assert asyncio.run(find_leaks(HINT, asked, judged_equal(timeouts))) == ()


def test_the_verifier_is_asked_once_per_hint_and_value():
    asked_for = []

    async def equal(answer, candidates):
        asked_for.append(list(candidates))
        return [False] * len(candidates)

    hint = "5 and 5 and 6 = 5 + 1"
    asyncio.run(find_leaks(hint, replace(problem(), text="6?", answer="437"), equal))
    assert asked_for == [["5", "6"]]


# -- any text -------------------------------------------------------------------------------------

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
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=60))


@given(TEXTS, st.sampled_from(["12", "1/2", "x+1", r"\text{no}", "(1,2)"]))
def test_any_hint_is_read_and_only_leaks_are_replaced(hint, answer):
    async def equal(gold, candidates):
        return [candidate == gold for candidate in candidates]

    asked = replace(problem(), answer=answer)
    leaks = asyncio.run(find_leaks(hint, asked, equal))
    kept, at = [], 0
    for leak in leaks:
        assert at <= leak.start < leak.end <= len(hint)
        kept += [hint[at : leak.start], "[...]"]
        at = leak.end
    assert redact(hint, leaks) == "".join(kept) + hint[at:]


@given(TEXTS)
def test_a_mention_lies_within_the_text_and_holds_a_value(text):
    for mention in mentions(text):
        assert 0 <= mention.statement <= mention.start < mention.end <= len(text)
        assert compact(mention.text) != ""


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

    async def equal(gold, candidates):
        asked_for.extend(candidates)
        return [compact(candidate) == compact(gold) for candidate in candidates]

    hint = " ".join(holder.replace("%s", blank) for holder, blank in held)
    asked = replace(problem(), text=question, answer=answer, kind=kind)
    leaks = asyncio.run(find_leaks(hint, asked, equal))
    assert all(compact(each) for each in asked_for)
    assert all(compact(hint[leak.start : leak.end]) for leak in leaks)


HOSTILE = {
    "brackets": lambda size: "(" * size,
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
    "one long statement": lambda size: "x = 12 + y " * (size // 11),
}


async def everything_equal(gold, candidates):
    return [True] * len(candidates)


@pytest.mark.parametrize("name", HOSTILE)
def test_the_work_on_a_hostile_hint_grows_with_its_size(name):
    def look(hint):
        return asyncio.run(find_leaks(hint, problem(), everything_equal))

    assert exponent(look, HOSTILE[name], 4_000) < LINEAR


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("two thousand three hundred and six", ["2306"]),
        ("one hundred and three quarters", ["403/4"]),
        ("seven and a half", ["15/2"]),
        ("Three, four", ["3", "4"]),
        ("a dozen", ["12"]),
        ("the third of two", ["2"]),
        ("at one third", ["1/3"]),
        ("a hand", []),
    ],
)
def test_numbers_in_words(text, numbers):
    assert [str(found.value) for found in word_numbers(text)] == numbers


def test_an_answer_of_more_digits_than_python_reads_is_compared_all_the_same():
    assert spans("It is " + "7" * 5000, "7" * 5000) == ["7" * 5000]

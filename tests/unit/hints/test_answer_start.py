"""Where a solution's final answer begins, however it is written."""

import pytest

from recipe.hint.hints.solution_prefix import answer_start
from recipe.problems.schema import Problem


def shown(solution, answer, text="What is it?"):
    """What stands before the answer."""
    item = Problem("p", ({"role": "user", "content": text},), text, solution, answer)
    return solution[: answer_start(item)]


@pytest.mark.parametrize("answer", ["1234", "56", "7"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("所以一共是", "个石头。"),
        ("したがって", "個です。"),
        ("그래서 모두 ", "개입니다."),
        ("ดังนั้นมี", "ชิ้น"),
        ("The area is ", "cm."),
        ("Er läuft also ", "m weit."),
        ("Он пробежит ", "м."),
        ("In all he pays Rs", "."),
        ("That leaves USD", " for her."),
        ("He stands on the ", "th step."),
        ("Together they pay $", ".00 for it."),
    ],
)
def test_a_number_is_found_where_letters_or_zeros_touch_it(answer, before, after):
    assert shown(f"Add up. {before}{answer}{after}", answer) == f"Add up. {before}"


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("−1234", "-1234"),
        ("–7", "-7"),
        ("-12", "−12"),
        ("−2.5", "-2.5"),
        ("x−1", "x-1"),
        ("(−1, 2)", "(-1, 2)"),
        ("FALSE", "False"),
        ("no solution", "No solution"),
        ("YES", "yes"),
        ("1,234.50", "1234.50"),
        ("12 345", "12345"),
        ("12{,}345", "12,345"),
    ],
)
def test_an_answer_is_found_in_other_signs_separators_and_case(written, answer):
    assert shown(f"So we get {written}.", answer) == "So we get "


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        ("Put x2 = 5 and H2O, then 12 of 25.", "2"),
        ("From x100 and a100 take 1000.", "100"),
        ("It weighs 1.1234 or 12345 or 1234.5 of them.", "1234"),
        ("An ABACUS is a table.", "A"),
        ("The items are 1, 2 and 3.", "1,2"),
        ("Write 2x + 1 for p^2.", "2x + 12"),
    ],
)
def test_a_part_of_another_number_name_or_word_is_not_the_answer(solution, answer):
    assert shown(solution, answer) == solution


@pytest.mark.parametrize("after", ["x = 4", "n, an even number", "D drawings", "x is even"])
def test_a_short_answer_that_stands_alone_comes_before_one_that_letters_touch(after):
    assert shown(f"From this x = 2. It gives 2{after}.", "2") == "From this x = "


@pytest.mark.parametrize(
    ("before", "statement"),
    [
        ("Count. ", "The answer is 12."),
        ("Count. So ", "the answer is twelve, i.e. 12."),
        ("Count. ", "Answer: 12."),
        ("Count. Our ", "answer is therefore 12."),
        ("Count. ", "The final answer, then, is 12."),
        ("Count. ", "Answers: 12 and 5."),
        ("数一数。", "答案是12。"),
        ("数一数。", "答案：12。"),
    ],
)
def test_a_short_answer_that_is_stated_early_is_not_shown(before, statement):
    # 12 stands twice, and the search from the end alone finds the second.
    assert shown(f"{before}{statement} To see why count 3 * 4 = 12.", "12") == before


@pytest.mark.parametrize("way", ["8 points/answer = 48", "each answer counts", "to answer it"])
def test_the_word_answer_alone_states_nothing(way):
    assert shown(f"There are {way}. So it is 12.", "12") == f"There are {way}. So it is "

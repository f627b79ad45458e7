"""Prefixes of solutions: how much, where they end, and what they never show."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.hint.hints.levels_json import parse_hint_levels
from recipe.hint.hints.solution_prefix import SolutionPrefix, answer_start
from recipe.hint.prompt import Texts, with_hint
from recipe.problems.schema import Problem

CASES = json.loads((Path(__file__).parents[2] / "golden/prefixes.json").read_text())
RATIOS = (0.25, 0.5, 0.75)


def problem(solution, answer="", text="What is it?", name="p"):
    return Problem(name, ({"role": "user", "content": text},), text, solution, answer)


def hint_levels(item, ratios=RATIOS, unit="char"):
    return asyncio.run(SolutionPrefix(ratios=ratios, unit=unit).write(item, None))


def shown(solution, answer, text="What is it?"):
    """What stands before the answer."""
    return solution[: answer_start(problem(solution, answer, text))]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_solution_gives_the_prefixes_written_beside_it(case):
    item = problem(case["solution"], case["answer"], case.get("problem", "What is it?"))
    found = hint_levels(item, case["ratios"], case["unit"])
    assert found.status == "ok"
    assert list(found.hints_L) == case["hints"]


@pytest.mark.parametrize("solution", ["", "   ", "\\boxed{4}", "$\\boxed{4}$ is it.", "4"])
def test_a_solution_that_begins_with_its_answer_gives_no_hint(solution):
    assert hint_levels(problem(solution, "4")).status == "missing_solution"


@given(st.text(alphabet="ab $\\{}[]().\n1", max_size=60), st.floats(0.01, 0.99))
def test_a_prefix_is_always_a_prefix_and_never_passes_the_answer(solution, ratio):
    item = problem(solution, "1")
    found = hint_levels(item, (ratio,))
    assert (found.status == "ok") == bool(solution[: answer_start(item)].strip())
    if found.status == "ok":
        [hint] = found.hints_L
        assert hint.strip()
        assert solution.startswith(hint)
        assert len(hint) <= answer_start(item)


def test_commands_of_a_solution_come_through_json_and_the_prompt_unchanged():
    solution = (
        "Let $\\theta = \\frac{\\pi}{3}$ and $\\beta\\neq 0$. \\textbf{Note} that "
        "\\[\\sqrt{2}\\,\\nabla f = \\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}\\] and "
        "$\\tan\\theta$ are known, \\\\ so that $\\rho$ is $\\boxed{\\frac{1}{2}}$."
    )
    item = problem(solution, "\\frac{1}{2}")
    hints = hint_levels(item).hints_L
    reply = json.dumps({f"level_{level}": hint for level, hint in enumerate(hints, start=1)})
    for hint, parsed in zip(hints, parse_hint_levels(reply), strict=True):
        prompt = with_hint(list(item.messages), parsed, Texts())[-1]["content"]
        assert prompt.endswith(hint)
        assert solution.startswith(hint)
        assert not re.search(r"\\boxed|\\$", hint)


SUM = "$$ \\sum_{k=1}^{n} k^2 = \\frac{n(n+1)(2n+1)}{6} $$ Put n = 10 and simplify to \\boxed{385}"


@pytest.mark.parametrize("unit", ["char", "sentence"])
@pytest.mark.parametrize("blank", ["", "\t\n" * 40], ids=len)
@pytest.mark.parametrize("solution", [SUM, "One. Two. Three. Four \\boxed{385}", "a 385"])
def test_white_space_before_a_solution_takes_no_level_away(solution, blank, unit):
    found = hint_levels(problem(blank + solution, "385"), unit=unit)
    assert found.status == "ok"
    for hint in found.hints_L:
        assert hint.strip() and solution.startswith(hint.strip())


# -- where the final answer begins ----------------------------------------------------------------


@pytest.mark.parametrize("answer", ["1234", "7"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("所以一共是", "个石头。"),
        ("그래서 모두 ", "개입니다."),
        ("ดังนั้นมี", "ชิ้น"),
        ("The area is ", "cm."),
        ("In all he pays Rs", "."),
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
        ("-12", "−12"),
        ("x−1", "x-1"),
        ("FALSE", "False"),
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
        ("It weighs 1.1234 or 12345 or 1234.5 of them.", "1234"),
        ("An ABACUS is a table.", "A"),
        ("Write 2x + 1 for p^2.", "2x + 12"),
    ],
)
def test_a_part_of_another_number_name_or_word_is_not_the_answer(solution, answer):
    assert shown(solution, answer) == solution


@pytest.mark.parametrize("after", ["x = 4", "n, an even number", "x is even"])
def test_a_short_answer_that_stands_alone_comes_before_one_that_letters_touch(after):
    assert shown(f"From this x = 2. It gives 2{after}.", "2") == "From this x = "


@pytest.mark.parametrize(
    ("before", "statement"),
    [
        ("Count. ", "The answer is 12."),
        ("Count. ", "Answer: 12."),
        ("Count. ", "The final answer, then, is 12."),
        ("数一数。", "答案是12。"),
    ],
)
def test_a_short_answer_that_is_stated_early_is_not_shown(before, statement):
    # 12 stands twice, and the search from the end alone finds the second.
    assert shown(f"{before}{statement} To see why count 3 * 4 = 12.", "12") == before


def test_the_word_answer_alone_states_nothing():
    way = "There are 8 points/answer = 48, each answer counts, to answer it. So it is "
    assert shown(f"{way}12.", "12") == way

"""Prefixes of solutions: how much, where they end, and what they never show."""

import asyncio
import json
import os
import re
from pathlib import Path

import pytest
from fakes import ScriptedEngine, run
from hypothesis import given
from hypothesis import strategies as st

from recipe.hint.hints.self_generated import parse_hint_levels
from recipe.hint.hints.solution_prefix import SolutionPrefix, answer_start, unit_ends
from recipe.hint.methods.ghpo import Ghpo
from recipe.hint.prompt import Texts, with_hint
from recipe.problems.schema import Problem

CASES = json.loads((Path(__file__).parents[2] / "golden/prefixes.json").read_text())
RATIOS = (0.25, 0.5, 0.75)
WARM = 21
DATA = os.environ.get("HINT_BENCHMARK_DATA")
needs_data = pytest.mark.skipif(
    DATA is None, reason="HINT_BENCHMARK_DATA names no folder with the benchmarks' rows"
)
WRITTEN = [
    (
        "Each of 6 boxes holds 14 pens. 9 pens are sold. How many are left?",
        "There are 6 * 14 = 84 pens in all the boxes.\nAfter it 84 - 9 = 75 pens are left.",
        "75",
    ),
    (
        "A ticket costs $4, a drink $3. What do 5 people pay for both?",
        "One person pays $4 + $3 = $7.\nSo 5 people pay 5 * $7 = $35 together.",
        "35",
    ),
    (
        "A shelf of 40 books loses a quarter, then gains 6. How many are there?",
        "A quarter of 40 is 10 books.\nThat leaves 40 - 10 = 30.\nWith the others 30 + 6 = 36.",
        "36",
    ),
]


def problem(solution, answer="", text="What is it?", name="p"):
    return Problem(name, ({"role": "user", "content": text},), text, solution, answer)


def hint_levels(item, ratios=RATIOS, ends=None):
    return asyncio.run(SolutionPrefix(ratios=ratios, ends=ends).write(item, None))


def rows(name, fallback=()):
    if DATA is None:
        return list(fallback)
    # Not splitlines: some texts hold other line separators than "\n".
    lines = (Path(DATA) / f"{name}.jsonl").read_text().strip().split("\n")
    return [
        problem(row["solution"], str(row["answer"]), row["problem"], row["id"])
        for row in map(json.loads, lines)
    ]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_solution_gives_the_prefixes_written_beside_it(case):
    item = problem(case["solution"], case["answer"], case.get("problem", "What is it?"))
    found = hint_levels(item, case["ratios"], unit_ends(case["unit"], None))
    assert found.status == "ok"
    assert list(found.hint_levels.hints_L) == case["hints"]


def test_tokens_are_counted_as_the_tokenizer_counts_them():
    # Ten tokens of three characters; 25, 50 and 75 % are 2, 5 and 8 of them (2.5 -> 2, 7.5 -> 8).
    found = hint_levels(problem("abc" * 10), ends=lambda text: range(3, len(text) + 1, 3))
    assert [len(hint) for hint in found.hint_levels.hints_L] == [6, 15, 24]


@pytest.mark.parametrize("solution", ["", "   ", "\\boxed{4}", "$\\boxed{4}$ is it.", "4"])
def test_a_solution_that_begins_with_its_answer_gives_no_hint(solution):
    assert hint_levels(problem(solution, "4")).status == "missing_solution"


@given(st.text(alphabet="ab $\\{}[]().\n1", max_size=60), st.floats(0.01, 0.99))
def test_a_prefix_is_always_a_prefix_and_never_passes_the_answer(solution, ratio):
    item = problem(solution, "1")
    found = hint_levels(item, (ratio,))
    assert (found.status == "ok") == bool(solution[: answer_start(item)].strip())
    if found.status == "ok":
        [hint] = found.hint_levels.hints_L
        assert hint.strip()
        assert solution.startswith(hint)
        assert len(hint) <= answer_start(item)


class PrefixEngine(ScriptedEngine):
    """Knows a level by the prefix that the prompt ends with."""

    def __init__(self, outcomes, item):
        super().__init__(outcomes)
        self.hints = hint_levels(item).hint_levels.hints_L

    def level_of(self, prompt_ids):
        _, lead, hint = "".join(map(chr, prompt_ids)).partition("\nHere is a hint to help you:\n")
        return self.hints.index(hint) + 1 if lead else 0


def ghpo_visit(item, outcomes):
    return run(
        Ghpo(max_level=3),
        {},
        engine=PrefixEngine(outcomes, item),
        item=item,
        source=SolutionPrefix(ratios=RATIOS),
        step=WARM,
    )


def small_word_problems():
    items = rows("gsm8k_train", [problem(s, a, t) for t, s, a in WRITTEN])
    # Where 25 and 50 % end at one place (the answer, a formula), the levels cannot be told apart.
    return [item for item in items if len(set(hint_levels(item).hint_levels.hints_L)) == 3][:200]


def test_a_group_solved_at_half_of_the_solution_has_exactly_that_prefix_in_its_prompt():
    for item in small_word_problems():
        outcome = ghpo_visit(item, {0: [0, 0], 1: [0, 0], 2: [0, 1], 3: [1, 1]})
        prompt = "".join(map(chr, outcome.rows[0].prompt_ids_T))
        _, hint = prompt.split("\nHere is a hint to help you:\n")
        assert prompt.startswith(item.text)
        assert item.solution.startswith(hint)
        # Half of the characters, and fewer only before the answer or inside a formula.
        end = min(round(len(item.solution) * 0.5), answer_start(item))
        assert len(item.solution[:end].rstrip()) == len(hint) or "$" in item.solution
        assert outcome.record.first_row_level == 2


def test_a_group_that_is_solved_keeps_its_prompt():
    for item in small_word_problems():
        for rewards in ([0, 1], [1, 1]):
            outcome = ghpo_visit(item, {0: rewards})
            assert "".join(map(chr, outcome.rows[0].prompt_ids_T)) == item.text


def commands(text):
    return re.findall(r"\\(?:[A-Za-z]+|.)", text, re.DOTALL)


def trip(item):
    """Prefix -> JSON -> parser -> prompt: the hints that went in and those that came out."""
    hints = hint_levels(item).hint_levels.hints_L
    reply = json.dumps({f"level_{level}": hint for level, hint in enumerate(hints, start=1)})
    parsed = parse_hint_levels(f"```json\n{reply}\n```", 3)
    prompts = [
        with_hint(list(item.messages), hint, Texts())[-1]["content"] for hint in parsed.hints_L
    ]
    return hints, [prompt.removeprefix(item.text) for prompt in prompts]


def test_commands_of_written_solutions_come_through_json_and_the_prompt_unchanged():
    solution = (
        "Let $\\theta = \\frac{\\pi}{3}$ and $\\beta\\neq 0$. \\textbf{Note} that "
        "\\[\\sqrt{2}\\,\\nabla f = \\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}\\] and "
        "$\\tan\\theta$ are known, \\\\ so that $\\rho$ is $\\boxed{\\frac{1}{2}}$."
    )
    for hint, prompt in zip(*trip(problem(solution, "\\frac{1}{2}")), strict=True):
        assert prompt.endswith(hint)
        assert commands(prompt) == commands(hint)
        assert solution.startswith(hint)


@needs_data
def test_commands_of_five_hundred_solutions_come_through_json_and_the_prompt_unchanged():
    done = 0
    for item in rows("math500"):
        if hint_levels(item).status != "ok":
            assert not item.solution[: answer_start(item)].strip()
            continue
        for hint, prompt in zip(*trip(item), strict=True):
            assert prompt.endswith(hint)
            assert commands(prompt) == commands(hint)
            assert commands(item.solution)[: len(commands(hint))] == commands(hint)
            assert "\\boxed" not in hint
        done += 1
    assert done >= 490


SUM = "$$ \\sum_{k=1}^{n} k^2 = \\frac{n(n+1)(2n+1)}{6} $$ Put n = 10 and simplify to \\boxed{385}"


@pytest.mark.parametrize("unit", ["char", "sentence", "token"])
@pytest.mark.parametrize("blank", ["\n", " ", "\n\n  ", "\t\n" * 40], ids=len)
@pytest.mark.parametrize(
    "solution", [SUM, "One. Two. Three. Four \\boxed{385}", "\\[x\\] is all. \\boxed{385}", "a 385"]
)
def test_white_space_before_a_solution_takes_no_level_away(solution, blank, unit):
    ends = {"token": lambda text: range(1, len(text) + 1)}.get(unit) or unit_ends(unit, None)
    found = hint_levels(problem(blank + solution, "385"), ends=ends)
    assert found.status == hint_levels(problem(solution, "385"), ends=ends).status == "ok"
    for hint in found.hint_levels.hints_L:
        assert hint.strip()
        assert solution.startswith(hint.strip())


@pytest.mark.parametrize("ends", [[], [1], [1, 2]])
def test_a_tokenizer_that_counts_only_white_space_ends_no_run(ends):
    found = hint_levels(problem("\n\nOne two \\boxed{3}", "3"), ends=lambda text: ends)
    assert set(found.hint_levels.hints_L) == {"\n\nOne two"}

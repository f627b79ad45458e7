"""The rows of a warm-up: what is asked, what is to be learned, and what is left out."""

import asyncio
import json

import pytest

from recipe.hint.hints.levels_json import parse_hint_levels
from recipe.hint.hints.self_generated import hint_request
from recipe.hint.hints.solution_prefix import solution_levels
from recipe.hint.prompt import Texts, with_hint
from recipe.problems.columns import make_row
from recipe.problems.schema import Problem, problem_from_row
from recipe.run.run_folder import RunFolder
from recipe.study.warmup import KINDS, RowMaker, _show_losses, _shown, solved
from recipe.verify.grading import grade

ALL = dict.fromkeys(KINDS, 1.0)
SHELLS = problem_from_row(
    make_row(
        "Gita has 6 shells and buys 2 bags with 17 shells each. How many shells are there?",
        "40",
        solution="The bags hold 2 x 17 = 34 shells.\nTogether that is 6 shells + 34 shells = 40.",
    )
)


async def judge_all(items):
    return [grade(item) for item in items]


def rows_of(problem, shares=ALL, style="paper", seed=1):
    return asyncio.run(RowMaker(shares, Texts(), style, judge_all, seed).rows_of(problem))


def problem(solution, answer="40", text="How many?", kind="maths"):
    return problem_from_row(make_row(text, answer, solution=solution, kind=kind))


def asking_for(form, solution="6 + 34 = 40"):
    asked = {"role": "user", "content": f"How many? {form}"}
    return Problem("a", (asked,), "How many?", solution, "40")


def test_levels_name_the_operations_then_show_the_first_line_then_all_but_the_last_result():
    assert solution_levels(SHELLS) == (
        "Steps: 2; multiply, then add.",
        "Steps: 2; multiply, then add.\nBegin with:\nThe bags hold 2 x 17 = 34 shells.",
        "The bags hold 2 x 17 = 34 shells.\nNext, compute: Together that is 6 shells + 34 shells",
    )


@pytest.mark.parametrize(
    ("solution", "closes"),
    [
        ("2 x 17 = 34\n6 + 34 = 40\n\\boxed{40}", "Next, compute: 6 + 34"),
        ("2 x 17 = 34\n6 + 34 = 40\n#### 40", "Next, compute: 6 + 34"),
        ("2 x 17 = 34\nHence she has $6 + 34 = \\boxed{40}$.", "Next, compute: Hence she has"),
        ("The bags hold 34. She has 6 + 34 = $40.", "Next, compute: She has 6 + 34"),
        ("34 are in bags.\nAll of them count.\nSo 40", "Next, compute: So"),
    ],
)
def test_level_3_ends_before_the_last_result_wherever_the_answer_is_written(solution, closes):
    assert solution_levels(problem(solution))[2].splitlines()[-1] == closes


def test_a_solution_of_one_step_has_two_levels_and_one_without_steps_none():
    levels = solution_levels(problem("She has 6 + 34 = 40."))
    assert levels == ("Steps: 1; add.", *["Steps: 1; add.\nNext, compute: She has 6 + 34"] * 2)
    assert solution_levels(problem("\\boxed{40}")) == ()
    assert solution_levels(problem("return a", "assert f(1) == 1", kind="program")) == ()


def test_the_three_rows_ask_as_a_run_does_and_answer_with_the_solution_or_the_levels():
    rows, levels = rows_of(SHELLS), solution_levels(SHELLS)
    assert list(rows) == ["solve", "hinted", "write"]
    response = f"{SHELLS.solution}\nThe final answer is \\boxed{{40}}."
    assert rows["solve"] == (SHELLS.messages, response)
    hinted = [(with_hint(SHELLS.messages, level, Texts(), "paper"), response) for level in levels]
    assert rows["hinted"] in hinted
    request, written = rows["write"]
    assert request == hint_request(Texts(), SHELLS.text, SHELLS.solution)
    assert parse_hint_levels(written) == levels
    latex = problem("$\\nu = 2 \\cdot 17 = 34$\n$6 + \\nu = 40$")
    assert parse_hint_levels(rows_of(latex)["write"][1]) == solution_levels(latex)


def test_a_hint_enters_in_the_style_of_the_run_and_a_prefilled_one_needs_no_row():
    assert rows_of(SHELLS, style="release")["hinted"][0][1]["content"].startswith("Question:\n")
    assert list(rows_of(SHELLS, style="prefill")) == ["solve", "write"]


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("Put it in \\boxed{}.", "The final answer is \\boxed{40}."),
        ("End with #### and the number.", "#### 40"),
        ("Write <answer>N</answer>.", "<answer>40</answer>"),
        ("The last line is 'Answer: N'.", "Answer: 40"),
    ],
)
def test_the_last_line_has_the_answer_in_the_format_that_is_asked_for(form, line):
    assert solved(asking_for(form)) == f"6 + 34 = 40\n{line}"
    assert solved(asking_for(form, f"6 + 34 = 40\n{line}")) == f"6 + 34 = 40\n{line}"
    assert list(rows_of(asking_for(form), ALL | {"hinted": 0, "write": 0})) == ["solve"]


def test_rows_that_would_teach_something_wrong_are_left_out_with_a_reason():
    assert rows_of(problem("")) == {"without solution": ((), "")}
    assert rows_of(problem("She has 6 + 34 = 41.\n\\boxed{41}")) == {"graded wrong": ((), "")}
    assert rows_of(problem("\\boxed{40}"))["write without steps"] == ((), "")
    told_early = problem("The answer will be 40 in all.\n6 + 34 = 40, as 34 + 6 = 40.")
    assert not {"hinted", "write"} & rows_of(told_early, ALL).keys()


def test_a_program_is_put_into_the_block_that_its_prompt_asks_for():
    tests = "assert double(2) == 4"
    code = "def double(n):\n    return 2 * n"
    rows = rows_of(problem(code, tests, "Write double(n).", kind="program"))
    assert rows["solve"][1] == f"```python\n{code}\n```"
    assert rows["write without steps"] == ((), "")


def test_shares_are_drawn_by_problem_and_seed_alone():
    some = [problem(SHELLS.solution, text=f"How many, number {n}?") for n in range(60)]
    half = dict.fromkeys(KINDS, 0.5)

    def drawn(seed):
        return [sorted(rows_of(each, half, seed=seed)) for each in some]

    assert drawn(1) == drawn(1) != drawn(2)
    counts = [sum(kind in each for each in drawn(1)) for kind in KINDS]
    assert all(15 <= count <= 45 for count in counts)


def test_steps_that_a_killed_command_had_not_shown_are_shown_and_kept_once(tmp_path, capsys):
    folder = RunFolder(tmp_path)
    folder.create()
    for step in (1, 2):
        folder.append_metrics(step, {"train/loss": 1.0})
    data = {"train/loss": 0.5, "train/global_tokens": 70}
    rows = (json.dumps({"step": step, "data": data}) for step in (1, 2, 3))
    (folder.logs / "losses.jsonl").write_text("".join(f"{row}\n" for row in rows))
    _show_losses(folder, 3, _shown(folder))
    _show_losses(folder, 3, _shown(folder))
    found = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert [(row["step"], row["train/loss"]) for row in found] == [(1, 1.0), (2, 1.0), (3, 0.5)]
    assert capsys.readouterr().out == "step 3/3  loss 0.5000  70 tokens\n"

"""The score of reasoning-gym's data sets, in processes that can be killed and write nothing."""

import ast
import inspect
import json
import re

import pytest

from recipe.problems.prepare import Given, read_rows
from recipe.verify import gym
from recipe.verify.pool import VerifierPool
from recipe.verify.rewards import compute_score
from recipe.verify.schema import Item

DATASETS = pytest.importorskip("reasoning_gym.factory").DATASETS


@pytest.fixture(scope="module")
def pool():
    with VerifierPool(1, 3.0) as pool:
        yield pool


def one(name):
    [row] = read_rows(f"reasoning_gym:{name}", Given(), limit=1).rows
    return row


def graded(pool, row, *responses, is_truncated=False):
    rest = (is_truncated, "reasoning_gym", row["problem"], json.dumps(row))
    return pool.grade_many_blocking([Item(each, row["answer"], *rest) for each in responses])


def test_several_answers_are_right_and_a_part_of_the_score_is_no_success(pool):
    row = one("countdown")
    right, other, wrong = graded(
        pool,
        row,
        f"<think><answer>1</answer></think> So <answer>1</answer> <answer>{row['answer']}</answer>",
        f"<answer>\n0 + {row['answer']}\n</answer>",
        "<answer>1</answer>",
    )
    assert (right.score, right.reason, right.reward) == (1.0, "correct", 1.0)
    assert right.extracted == row["answer"]
    assert (other.score, other.reason) == (0.0, "wrong")  # a number that is not there
    assert (wrong.score, wrong.reason) == (0.0, "wrong") and 0 < wrong.train_reward < 0.1


def test_a_response_without_an_answer_needs_no_process(pool):
    row = one("countdown")
    answer = row["answer"]
    texts = [f"\\boxed{{{answer}}}", f"<answer>{answer}", f"<think><answer>{answer}</answer>"]
    assert [v.reason for v in graded(pool, row, *texts)] == ["no_answer", "malformed", "no_answer"]
    assert [v.reason for v in graded(pool, row, *texts, is_truncated=True)] == ["truncated"] * 3


FORGED = (
    "(lambda m: m.update(read_result=lambda _: m['Verdict'](1.0, 'correct')))"
    "(vars(__import__('recipe.verify.gym', fromlist=['x'])))"
)
ATTACKS = {
    "string_insertion": [
        FORGED,
        "[oracle_answer]",
        "[right := {answer!r}]",
        "[f'{{oracle_answer}}']",
        "[{answer!r}] if open('{file}', 'w') else ''",
        "[{answer!r} for _ in [setattr(type(self), 'score_answer', lambda *_: 1.0)]]",
        "{nest}",
    ],
    "n_queens": ["[row.split() for row in valid_solutions[0].splitlines()]", "exit(0)"],
    "countdown": [
        FORGED,
        "0x{target:x} + 0x0 * ({numbers})",
        "{numbers} {ones}",
        "-~-~({numbers})",
        "9**9**9**9**9",
        "{nest}",
    ],
    "simple_integration": [
        "Integral({integrand}, {variable})",
        "integrate({integrand}, {variable})",
        "S('{answer}')",
        "({answer}).subs(C, 0)",
        "sympify({answer})",
        "lambdify((), '{answer}')()",
    ],
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_answer_that_is_evaluated_cannot_forge_its_score(pool, name, tmp_path):
    row, file = one(name), tmp_path / "written"
    entry = ast.literal_eval(row["extra_info"]["reasoning_gym"]["entry"])
    numbers, target = entry["metadata"].get("numbers", []), entry["metadata"].get("target", 0)
    more = target - sum(numbers)
    known = entry["metadata"] | {
        "answer": row["answer"],
        "file": file,
        "nest": "[" * 10**5 + "]" * 10**5,
        "numbers": " + ".join(map(str, numbers)),
        "ones": ("+ x/x " if more > 0 else "- x/x ") * abs(more),
        "target": target,
    }
    answers = [each.format(**known) for each in ATTACKS[name]]
    verdicts = graded(pool, row, *(f"<answer>{each}</answer>" for each in answers))
    assert [(v.reason, v.train_reward) for v in verdicts] == [("wrong", 0.0)] * len(answers)
    assert not file.exists()


def test_a_list_of_the_right_characters_is_worth_what_the_library_says(pool):
    row = one("string_insertion")
    [honest] = graded(pool, row, f"<answer>{list(row['answer'])}</answer>")
    assert (honest.reason, honest.train_reward) == ("wrong", 0.1)


def test_no_other_score_evaluates_the_answer():
    evaluating = re.compile(r"\b(?:eval|exec|parse_expr|sympify)\((?!problem|entry|meta)")
    found = set()
    for name, (data_set, _) in DATASETS.items():
        scored = inspect.getsource(data_set.score_answer)
        found |= {name} if evaluating.search(scored) else set()
    assert found == gym._FORMS.keys() | gym._LISTS


def test_a_hang_is_ungraded_and_the_next_grade_is_right(pool):
    row = one("polynomial_multiplication")
    hang, right = graded(
        pool, row, "<answer>9**9**9**9**9</answer>", f"<answer>{row['answer']}</answer>"
    )
    assert (hang.reason, hang.train_reward) == ("timeout", 0.0)
    assert hang.is_ungraded and right.reason == "correct"


def test_verls_interface_reads_the_entry_too():
    row = one("countdown")
    info = row["extra_info"] | {"kind": "reasoning_gym"}
    call = row["data_source"], f"<answer>{row['answer']}</answer>", row["answer"], info
    assert compute_score(*call) == 1.0

"""The score of reasoning-gym's data sets, in processes that can be killed and write nothing."""

import json

import pytest

from recipe.problems.prepare import Given, read_rows
from recipe.verify.pool import VerifierPool
from recipe.verify.rewards import compute_score
from recipe.verify.schema import Item

pytest.importorskip("reasoning_gym")


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


def test_an_answer_that_is_run_as_python_writes_nothing_and_starts_nothing(pool, tmp_path):
    # This score gives 0.1 where the value of the answer is the right one.
    row, file = one("string_insertion"), tmp_path / "written"
    right = f"[{row['answer']!r}]"
    attacks = [
        f"{right} if open({str(file)!r}, 'w') else ''",
        f"{right} if __import__('os').system('touch {file}') == 0 else ''",
        f"{right} if __import__('socket').socket() else ''",
    ]
    honest, *others = graded(pool, row, *(f"<answer>{each}</answer>" for each in [right, *attacks]))
    assert honest.train_reward == 0.1
    assert [each.train_reward for each in others] == [0.0] * 3
    assert not file.exists()


def test_a_hang_and_a_crash_are_ungraded_and_the_next_grade_is_right(pool):
    row = one("string_insertion")
    hang, crash, right = graded(
        pool,
        row,
        "<answer>sum(1 for _ in iter(int, 1))</answer>",
        "<answer>__import__('os')._exit(1)</answer>",
        f"<answer>{row['answer']}</answer>",
    )
    assert (hang.reason, hang.train_reward) == ("timeout", 0.0)
    assert (crash.reason, crash.train_reward) == ("error", 0.0)
    assert hang.is_ungraded and crash.is_ungraded and right.reason == "correct"


def test_verls_interface_reads_the_entry_too():
    row = one("countdown")
    info = row["extra_info"] | {"kind": "reasoning_gym"}
    call = row["data_source"], f"<answer>{row['answer']}</answer>", row["answer"], info
    assert compute_score(*call) == 1.0

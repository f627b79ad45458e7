"""A user's own reward function is called as verl calls it, and cannot harm more than its answer."""

from __future__ import annotations

import json

import numpy as np
import pytest

from recipe.run.errors import VerifierError
from recipe.verify.functions import read_result
from recipe.verify.options import GradeOptions
from recipe.verify.pool import VerifierPool
from recipe.verify.schema import Item, Verdict

ROW = json.dumps({"data_source": "s", "ground_truth": "5", "extra_info": {"index": 7}})
REWARDS = """
import asyncio, json, os, sys, time
CALLS = 0

def compute_score(data_source, solution_str, ground_truth, extra_info, bonus=0.0):
    global CALLS
    CALLS += 1
    if solution_str == "hang":
        time.sleep(3600)
    if solution_str == "spin":
        9 ** 9 ** 9 ** 2
    if solution_str == "raise":
        raise KeyError("no such unit")
    if solution_str == "exit":
        sys.exit(3)
    if solution_str == "crash":
        os.abort()
    if solution_str in ("nan", "inf"):
        return float(solution_str)
    if solution_str == "none":
        return None
    if solution_str == "text":
        return "1.0"
    if solution_str == "calls":
        return {"score": CALLS, "acc": True}
    if solution_str == "echo":
        seen = [data_source, solution_str, ground_truth, extra_info]
        return {"score": 1.0, "acc": 1.0, "pred": json.dumps(seen)}
    right = solution_str == ground_truth
    return {"score": (1.0 if right else -1.0) + bonus, "acc": right, "pred": solution_str}

async def awaited(data_source, solution_str, ground_truth, extra_info):
    await asyncio.sleep(0)
    return float(solution_str == ground_truth)

def by_keyword(**given):
    return {"score": 2.0, "acc": 0, "pred": " ".join(sorted(given))}

def narrow(data_source, solution_str):
    return 1.0

constant = 3
"""


@pytest.fixture
def rewards(tmp_path):
    (tmp_path / "rewards.py").write_text(REWARDS)
    return str(tmp_path / "rewards.py")


def pool_of(path, name="compute_score", **options):
    timeout_s = options.pop("timeout_s", 10.0)
    options = GradeOptions(function_path=path, function_name=name, wall_factor=1.0, **options)
    return VerifierPool(2, timeout_s, options=options)


def graded(pool, *responses):
    return pool.grade_many_blocking([Item(text, "5", row=ROW) for text in responses])


def test_score_trains_and_accuracy_is_reported(rewards):
    with pool_of(rewards, function_kwargs={"bonus": 0.5}) as pool:
        right, wrong = graded(pool, "5", "6")
    # 1 + 0.5 and -1 + 0.5
    assert right == Verdict(1.0, "correct", "5", "function", reward=1.5)
    assert wrong == Verdict(0.0, "wrong", "6", "function", reward=-0.5)


def test_the_row_reaches_the_function_as_it_stands(rewards):
    with pool_of(rewards) as pool:
        [verdict] = graded(pool, "echo")
    extra_info = {"index": 7, "num_turns": 2, "rollout_reward_scores": {}}
    assert json.loads(verdict.extracted) == ["s", "echo", "5", extra_info]


def test_an_async_function_and_one_of_keywords_are_called_too(rewards):
    with pool_of(rewards, "awaited") as pool:
        assert [each.score for each in graded(pool, "5", "6")] == [1.0, 0.0]
    with pool_of(rewards, "by_keyword", function_kwargs={"more": 1}) as pool:
        [verdict] = graded(pool, "5")
    assert verdict.extracted == "data_source extra_info ground_truth more solution_str"
    assert (verdict.score, verdict.train_reward) == (0.0, 2.0)


def test_what_fails_is_counted_and_named_and_the_rest_is_graded(rewards, caplog):
    failing = ["raise", "exit", "crash", "nan", "inf", "none", "text"]
    with pool_of(rewards, timeout_s=5.0) as pool:
        verdicts = graded(pool, *failing, "hang", "spin", "5")
        assert [each.reason for each in verdicts] == ["error"] * 7 + ["timeout"] * 2 + ["correct"]
    said = "\n".join(record.message for record in caplog.records)
    for reason in (
        "KeyError: 'no such unit'",
        "SystemExit: 3",
        "died",
        "ValueError: score=nan is not finite",
        "ValueError: score=inf is not finite",
        "ValueError: score='None' (NoneType) is not a number",
        "ValueError: score='1.0' (str) is not a number",
    ):
        assert reason in said


def test_no_call_is_seen_by_the_next(rewards):
    with pool_of(rewards) as pool:
        assert [each.train_reward for each in graded(pool, *["calls"] * 5)] == [1.0] * 5


def test_an_item_without_a_row_is_for_the_projects_verifier(rewards):
    with pool_of(rewards, "by_keyword") as pool:
        [verdict] = pool.grade_many_blocking([Item(r"\boxed{\sqrt{8}}", r"2\sqrt{2}")])
    assert (verdict.reason, verdict.reward) == ("correct", None)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing", "the file has no function 'nothing'"),
        ("constant", "has no function 'constant'"),
        ("narrow", "cannot be called with data_source, solution_str, ground_truth, extra_info"),
    ],
)
def test_a_function_that_cannot_be_called_is_named(rewards, name, says):
    with pool_of(rewards, name) as pool, pytest.raises(VerifierError, match=says):
        graded(pool, "5")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def compute_score(", "SyntaxError"),
        ("import threading, time\nthreading.Thread(target=time.sleep, args=(99,)).start()\n"
         "def compute_score(**_): return 1.0", "importing it starts a thread"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_loaded_is_named(tmp_path, source, says):
    (tmp_path / "broken.py").write_text(source)
    pool = pool_of(str(tmp_path / "broken.py"))
    with pool, pytest.raises(VerifierError, match=says):
        graded(pool, "5")
    with pool_of(str(tmp_path / "none.py")) as pool:
        with pytest.raises(VerifierError, match="none.py: no such file"):
            graded(pool, "5")


def test_a_module_beside_the_file_may_be_imported(tmp_path):
    (tmp_path / "beside_it.py").write_text("VALUE = 0.25\n")
    source = "from beside_it import VALUE\ndef compute_score(**_): return VALUE\n"
    (tmp_path / "rewards.py").write_text(source)
    with pool_of(str(tmp_path / "rewards.py")) as pool:
        assert graded(pool, "5") == [Verdict(0.25, "wrong", "", "function", reward=0.25)]


@pytest.mark.parametrize(
    ("result", "score", "reward"),
    [
        (1, 1.0, 1.0),
        (True, 1.0, 1.0),
        (-1.0, 0.0, -1.0),  # no accuracy: the score between 0 and 1
        (np.float32(0.5), 0.5, 0.5),
        ({"score": -1.0, "acc": True}, 1.0, -1.0),
        ({"score": 2, "acc": 0}, 0.0, 2.0),
    ],
)
def test_a_result_is_read_as_score_and_accuracy(result, score, reward):
    verdict = read_result(result)
    assert (verdict.score, verdict.reward) == (score, reward)
    assert verdict.reason == ("correct" if score == 1.0 else "wrong")


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ([1.0], "is not a number"),
        ({"acc": 1.0}, "score=.None. .NoneType. is not a number"),
        ({"score": "1"}, "score='1' .str. is not a number"),
        ({"score": 1.0, "acc": 2.0}, "acc=2.0 is not an accuracy"),
        ({"score": 1.0, "acc": None}, "acc='None'"),
        (1 + 2j, "is not a number"),
    ],
)
def test_what_is_no_score_is_refused(result, says):
    with pytest.raises(ValueError, match=says):
        read_result(result)

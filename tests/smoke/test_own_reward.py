"""A user's own reward function in three real steps: right, hanging and raising on some answers."""

import re

import pytest
from runs import train

pytestmark = pytest.mark.slow
STEPS = 3
REWARDS = r"""
import re, time

def digits(text):
    found = re.findall(r"boxed\{(\d*)", text)
    return found[-1] if found else ""

def right(data_source, solution_str, ground_truth, extra_info, bonus):
    assert data_source.startswith("tiny/") and extra_info["index"].startswith(data_source)
    given = digits(solution_str)
    same = sum(a == b for a, b in zip(given, ground_truth))
    return {"score": same / len(ground_truth) + bonus, "acc": same >= 2, "pred": given}

def faulty(**call):
    given = digits(call["solution_str"])
    if given[-1:] in ("1", "2"):
        while True:
            pass
    if given[-1:] in ("3", "4"):
        raise KeyError("no such digit")
    return right(bonus=0.0, **call)
"""
DAPO = (
    "reward.reward_manager.name=dapo",
    "+reward.reward_kwargs.max_resp_len=48",
    "+reward.reward_kwargs.overlong_buffer_cfg.enable=true",
    "+reward.reward_kwargs.overlong_buffer_cfg.len=48",
    "+reward.reward_kwargs.overlong_buffer_cfg.penalty_factor=1.0",
)


def run_with(folder, name, *overrides):
    (folder / "rewards.py").write_text(REWARDS)
    run = train(
        folder / "run",
        "trainer.method=sage",
        f"trainer.total_training_steps={STEPS}",
        f"reward.custom_reward_function.path={folder / 'rewards.py'}",
        f"reward.custom_reward_function.name={name}",
        "hint.verify.timeout_s=1",
        "data.train_batch_size=4",
        "actor_rollout_ref.actor.ppo_mini_batch_size=4",
        *overrides,
    )
    assert run.code == 0, run.err
    assert sorted(run.by_step()) == [1, 2, 3]
    return run


def test_accuracy_steers_the_search_and_the_score_with_its_penalty_trains(tmp_path):
    run = run_with(tmp_path, "right", "+reward.custom_reward_function.reward_kwargs.bonus=2", *DAPO)
    for record in run.records:
        assert set(record["reasons"]) <= {"correct", "wrong"}
        for rewards in record["rewards"][:-1]:
            assert not any(rewards)  # the search climbed because nothing was accurate
        assert {value for rewards in record["rewards"] for value in rewards} <= {0.0, 1.0}
        # A share of five digits, 2 more, and up to 1 less: a token of 48 costs 1/48.
        for value in record["rewards"]:
            assert 1.0 <= value <= 3.0 - 1 / 48
            assert (
                min(abs((value - k / 5) * 48 % 1 - side) for k in range(6) for side in (0, 1))
                < 1e-6
            )
    assert any(sum(record["rewards"][-1]) > 0 for record in run.records)
    assert any(row["actor/grad_norm"] > 0 for row in run.metrics)


def test_a_function_that_hangs_or_raises_is_counted_and_named(tmp_path):
    run = run_with(tmp_path, "faulty")
    counts = {}
    for record in run.records:
        for reason, number in record["reasons"].items():
            counts[reason] = counts.get(reason, 0) + number
    assert counts["timeout"] > 0
    assert counts["error"] > 0
    assert counts["wrong"] > 0
    undecided = sum(sum(record["num_ungraded"]) for record in run.records)
    assert sum(row["hint/undecided"] for row in run.metrics) == undecided
    assert undecided >= counts["timeout"] + counts["error"]
    said = "\n".join(path.read_text(errors="replace") for path in run.folder.rglob("worker-*.err"))
    assert re.search(r"error on prompt tiny/\w+/\d+: KeyError: 'no such digit'", said)
    assert re.search(r"timeout on prompt tiny/\w+/\d+: no verdict after 1\.\d s", said)

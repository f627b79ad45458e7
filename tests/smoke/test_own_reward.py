"""A user's own reward function in two real steps of mode colocate_async.

It is right on half of the problems; on the others one text in eight makes it hang and a quarter
make it raise, whatever the policy prefers to write.
"""

import re

import pytest
from runs import train

pytestmark = pytest.mark.slow
STEPS = 2
REWARDS = r"""
import re
import zlib

def digits(text):
    found = re.findall(r"boxed\{(\d*)", text)
    return found[-1] if found else ""

def score(data_source, solution_str, ground_truth, extra_info, bonus):
    assert data_source.startswith("tiny/") and extra_info["index"].startswith(data_source)
    given = digits(solution_str)
    if int(extra_info["index"][-1]) % 2:
        draw = zlib.crc32((extra_info["index"] + solution_str).encode()) % 16
        if draw < 2:
            while True:
                pass
        if draw < 6:
            raise KeyError("no such digit")
    same = sum(a == b for a, b in zip(given, ground_truth))
    return {"score": same / len(ground_truth) + bonus, "acc": same >= 2, "pred": given}
"""
DAPO = (
    "reward.reward_manager.name=dapo",
    "+reward.reward_kwargs.max_resp_len=48",
    "+reward.reward_kwargs.overlong_buffer_cfg.enable=true",
    "+reward.reward_kwargs.overlong_buffer_cfg.len=48",
    "+reward.reward_kwargs.overlong_buffer_cfg.penalty_factor=1.0",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "rewards.py").write_text(REWARDS)
    run = train(
        folder / "run",
        "trainer.method=sage",
        "trainer.v1.trainer_mode=colocate_async",
        f"trainer.total_training_steps={STEPS}",
        f"reward.custom_reward_function.path={folder / 'rewards.py'}",
        "reward.custom_reward_function.name=score",
        "+reward.custom_reward_function.reward_kwargs.bonus=2",
        "hint.verify.timeout_s=1",
        "hint.verify.wall_factor=60",  # on a busy machine too, the processor's limit comes first
        *DAPO,
    )
    assert run.code == 0, run.err
    return run


def on_problems(run, *, faulty):
    records = [row for row in run.records if int(row["problem_id"][-1]) % 2 == faulty]
    assert records
    return records


def test_rollouts_go_on_during_training_in_colocate_async_mode(run):
    assert sorted(run.by_step()) == list(range(1, STEPS + 1))
    assert len(run.records) == len({record["uid"] for record in run.records}) == 8 * STEPS


def test_accuracy_steers_the_search_and_the_score_with_its_penalty_trains(run):
    records = on_problems(run, faulty=False)
    for record in records:
        assert set(record["reasons"]) <= {"correct", "wrong"}
        for done in record["rounds"][:-1]:
            assert not any(done["accuracies"])  # the search escalated because nothing was accurate
        assert {value for done in record["rounds"] for value in done["accuracies"]} <= {0.0, 1.0}
        # A share of five digits, 2 more, and up to 1 less: a token of 48 costs 1/48.
        for value in record["rewards"]:
            assert 1.0 <= value <= 3.0 - 1 / 48
            assert (
                min(abs((value - k / 5) * 48 % 1 - side) for k in range(6) for side in (0, 1))
                < 1e-6
            )
    assert any(sum(record["rounds"][-1]["accuracies"]) > 0 for record in records)
    assert any(row["actor/grad_norm"] > 0 for row in run.metrics)


def test_a_function_that_hangs_or_raises_is_counted_and_named(run):
    counts = {}
    for record in on_problems(run, faulty=True):
        for reason, number in record["reasons"].items():
            counts[reason] = counts.get(reason, 0) + number
    assert counts["timeout"] > 0
    assert counts["error"] > 0
    assert counts["wrong"] > 0
    ungraded = sum(done["num_ungraded"] for record in run.records for done in record["rounds"])
    assert sum(row["hint/ungraded"] for row in run.metrics) == ungraded
    assert ungraded >= counts["timeout"] + counts["error"]
    said = "\n".join(path.read_text(errors="replace") for path in run.folder.rglob("worker-*.err"))
    assert re.search(r"error on prompt tiny/\w+/\d+: KeyError: 'no such digit'", said)
    assert re.search(r"timeout on prompt tiny/\w+/\d+: no verdict after 1\.\d s", said)

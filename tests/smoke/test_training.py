"""Real runs on the embedded world: Ray, verl, FSDP2, vLLM and TransferQueue, on the CPU."""

import re

import pytest
from runs import check_records, check_weights, train

STEPS = 3


def check_samples(run, steps):
    """Every step leaves prompts to look at, with all levels that were tried."""
    records = {record["uid"]: record for record in run.records}
    assert sorted({row["step"] for row in run.samples}) == list(range(1, steps + 1))
    assert len({row["uid"] for row in run.samples}) == len(run.samples) <= 8 * steps
    # A quarter of the 8 places is drawn blindly.
    assert sum("random" in row["why"] for row in run.samples) == 2 * steps
    for row in run.samples:
        record = records[row["uid"]]
        assert [each["level"] for each in row["rounds"]] == [
            each["level"] for each in record["rounds"]
        ]
        graded = sum(len(entry["rows"]) for entry in row["responses"])
        assert graded == sum(len(each["accuracies"]) for each in record["rounds"])
        assert all(each["hint"] for each in row["rounds"] if each["hint_status"] == "ok")
        assert any("boxed" in entry.get("response", "") for entry in row["responses"])
    for row in run.metrics:
        shares = [value for name, value in row.items() if name.startswith("verify/by_")]
        assert sum(shares) == pytest.approx(1.0)


@pytest.mark.slow
def test_sage_escalates_only_where_nobody_was_right_and_two_ranks_and_replicas_agree(tmp_path):
    run = train(
        tmp_path,
        "trainer.method=sage",
        f"trainer.total_training_steps={STEPS}",
        "trainer.n_gpus_per_node=2",
    )
    check_records(run, STEPS)
    check_weights(run, STEPS)
    check_samples(run, STEPS)
    hinted = 0
    for record in run.records:
        levels = [done["level"] for done in record["rounds"]]
        assert levels == list(range(len(levels)))
        for done in record["rounds"][:-1]:
            assert not any(done["accuracies"])
        hinted += record["accepted_level"] > 0
    assert 0 < hinted < len(run.records)  # both kinds of row were compared
    assert sum(row["hint/generate_success"] for row in run.metrics) > 0
    agent = (run.folder / "logs/ray/runtime_env_agent.log").read_text(encoding="utf-8")
    assert re.search(r'"py_executable": "[^"]*/hint-[^"]*/python"', agent)  # the fork client


def levels_of(run):
    """The accepted levels of all steps and the planned ones of the last."""
    accepted = {record["accepted_level"] for record in run.records}
    return accepted, {record["planned_level"] for record in run.by_step()[STEPS]}


@pytest.mark.long
def test_grpo_stays_at_level_zero(tmp_path):
    steps = f"trainer.total_training_steps={STEPS}"
    run = train(tmp_path, "trainer.method=grpo", steps)
    check_records(run, STEPS)
    check_weights(run, STEPS)
    assert levels_of(run) == ({0}, {0})


@pytest.mark.long
def test_a_fixed_level_is_that_of_every_prompt_or_none(tmp_path):
    steps = f"trainer.total_training_steps={STEPS}"
    run = train(tmp_path, "trainer.method=fixed", steps)
    check_records(run, STEPS)
    check_weights(run, STEPS)
    accepted, planned = levels_of(run)
    assert accepted <= {0, 2}  # 0 where no hint could be written
    assert planned == {2}

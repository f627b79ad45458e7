"""SAGE-LIGHT in three epochs, and a killed run of it that goes on as if nothing had happened."""

import json

import numpy as np
import pytest
from runs import check_records, check_weights, killed_after, train

pytestmark = pytest.mark.slow
STEPS = 6
SETTINGS = (
    "trainer.method=sage-light",
    f"trainer.total_training_steps={STEPS}",
    "trainer.save_freq=3",
    # 16 problems, 8 a step: the kill is at the border of an epoch, the hard place.
    "data.train_max_samples=16",
)


def prompts_of(run):
    return {step: {row["problem_id"] for row in rows} for step, rows in run.by_step().items()}


def levels_of(run):
    return {
        (row["step"], row["problem_id"]): (row["planned_level"], row["accepted_level"])
        for row in run.records
    }


def state_of(run, step):
    with np.load(run.folder / f"checkpoints/global_step_{step}/hint_state.npz") as state:
        order = np.argsort(state["ids"])
        return {name: state[name][order] for name in state if name != "version"}


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    run = train(tmp_path_factory.mktemp("straight"), *SETTINGS)
    check_records(run, STEPS)
    return run


def test_sage_light_trains_at_the_levels_of_its_schedule(straight):
    check_weights(straight, STEPS)
    assert {record["accepted_level"] for record in straight.records} <= {0, 1, 2}
    # Two epochs behind: never right at level 0, nor at level 1, means two steps up.
    last = [*straight.by_step()[5], *straight.by_step()[6]]
    assert max(record["planned_level"] for record in last) == 2


def test_a_run_killed_in_the_middle_of_a_step_resumes_with_the_same_data_and_levels(
    straight, tmp_path
):
    folder = tmp_path / "killed"
    # Step 4 is being made: its records are written after its rollouts.
    killed_after(folder, 3, *SETTINGS)
    killed_at = max((row["step"] for row in _records(folder)), default=0)
    assert killed_at <= 4
    half = folder / "checkpoints/global_step_4"
    half.mkdir()
    (half / "data.pt").write_text("half a checkpoint")
    (folder / "checkpoints/latest_checkpointed_iteration.txt").write_text("")

    resumed = train(folder, *SETTINGS)
    assert resumed.code == 0, resumed.err
    assert "resumed from step 3" in resumed.out
    assert prompts_of(resumed) == prompts_of(straight)
    assert levels_of(resumed) == levels_of(straight)
    assert len(resumed.records) == len({row["uid"] for row in resumed.records}) == STEPS * 8
    chosen = [(row["step"], row["problem_id"]) for row in resumed.samples if "random" in row["why"]]
    assert chosen == [
        (row["step"], row["problem_id"]) for row in straight.samples if "random" in row["why"]
    ]
    expected = state_of(straight, 3)
    for name, column in state_of(resumed, 3).items():
        assert np.array_equal(column, expected[name]), name
    expected = state_of(straight, STEPS)
    for name, column in state_of(resumed, STEPS).items():
        if name == "accuracy":  # rollouts may differ in the last digits of a probability
            continue
        assert np.array_equal(column, expected[name]), name


def _records(folder):
    path = folder / "records.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]

"""SAGE-LIGHT in three epochs, and a run of it that goes on after its vLLM was killed."""

import os
import signal

import numpy as np
import psutil
import pytest
from runs import (
    Run,
    assert_nothing_is_left,
    check_records,
    check_weights,
    started,
    train,
    wait_for,
)

from recipe.hint.reward_tracker import saved_ids

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
        ids = saved_ids(state)
        order = np.argsort(ids)
        columns = {n: state[n][order] for n in state if n not in ("version", "ids")}
        return columns | {"ids": np.array(sorted(ids))}


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


def test_a_run_whose_vllm_process_is_killed_ends_with_its_name_and_resumes_as_if_it_had_not(
    straight, tmp_path
):
    folder = tmp_path / "killed"
    with started(folder, *SETTINGS) as process:
        complete = folder / "checkpoints/global_step_3/COMPLETE"
        wait_for(complete.exists, "the checkpoint of step 3", process)
        # Step 4 is being made: its records are written after its rollouts.
        engines = [
            child
            for child in psutil.Process(process.pid).children(recursive=True)
            if any("EngineCore" in part for part in child.cmdline())  # the title vLLM gives it
        ]
        assert engines, "no vLLM engine process among the children"
        os.kill(engines[0].pid, signal.SIGKILL)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 2
        assert "vLLM" in err or "EngineDead" in err
        assert_nothing_is_left(folder)
    assert max(row["step"] for row in Run(2, "", err, folder).records) <= 4
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

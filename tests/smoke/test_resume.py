"""SAGE-LIGHT in three epochs, whose vLLM is killed after the second: the run goes on as it was."""

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

from recipe.hint.record import PromptRecord
from recipe.hint.reward_tracker import RewardTracker

pytestmark = pytest.mark.slow
STEPS, SAVED = 6, 3
SETTINGS = (
    "trainer.method=sage-light",
    f"trainer.total_training_steps={STEPS}",
    f"trainer.save_freq={SAVED}",
    # 16 problems, 8 a step: the checkpoint is in the middle of the second epoch.
    "data.train_max_samples=16",
)


def decisions(run):
    """The step that the killed run did and the resumed one does again: problem -> levels.

    The killed run may have done a second one before the signal arrived.
    """
    return {
        row["problem_id"]: (row["planned_level"], row["accepted_level"])
        for row in run.records
        if row["step"] == SAVED + 1
    }


def chosen_blindly(run):
    return [
        row["problem_id"]
        for row in run.samples
        if "random" in row["why"] and row["step"] == SAVED + 1
    ]


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of the run, what the command said, and its decisions and samples until then."""
    folder = tmp_path_factory.mktemp("killed")
    with started(folder, *SETTINGS) as process:
        wait_for(lambda: len(Run(0, "", "", folder).metrics) > SAVED, "step 4", process)
        engines = [
            child
            for child in psutil.Process(process.pid).children(recursive=True)
            if any("EngineCore" in part for part in child.cmdline())  # the title vLLM gives it
        ]
        assert engines, "no vLLM engine process among the children"
        os.kill(engines[0].pid, signal.SIGKILL)
        _, err = process.communicate(timeout=600)
        assert_nothing_is_left(folder)
    run = Run(process.returncode, "", err, folder)
    return run, decisions(run), chosen_blindly(run)


@pytest.fixture(scope="module")
def resumed(killed):
    folder = killed[0].folder
    half = folder / "checkpoints/global_step_4"
    half.mkdir()
    (half / "data.pt").write_text("half a checkpoint")
    (folder / "checkpoints/latest_checkpointed_iteration.txt").write_text("")
    return train(folder, *SETTINGS)


def test_a_run_whose_vllm_process_is_killed_ends_with_its_name(killed):
    run, _, _ = killed
    assert run.code == 2
    assert "vLLM" in run.err or "EngineDead" in run.err


def test_it_does_its_lost_steps_again_as_it_had_done_them(killed, resumed):
    _, before, blindly = killed
    assert resumed.code == 0, resumed.err
    assert f"resumed from step {SAVED}" in resumed.out
    assert len(before) == 8
    assert decisions(resumed) == before
    assert chosen_blindly(resumed) == blindly


def test_every_step_is_there_once_at_the_levels_of_the_schedule(resumed):
    check_records(resumed, STEPS)
    check_weights(resumed, STEPS)
    epochs = [
        sorted(row["problem_id"] for step in steps for row in resumed.by_step()[step])
        for steps in ((1, 2), (3, 4), (5, 6))
    ]
    assert epochs[0] == epochs[1] == epochs[2] and len(set(epochs[0])) == 16
    assert {record["accepted_level"] for record in resumed.records} <= {0, 1, 2}
    # Two epochs behind: never right at level 0, nor at level 1, means two steps up.
    last = [*resumed.by_step()[5], *resumed.by_step()[6]]
    assert max(record["planned_level"] for record in last) == 2


def test_what_is_known_of_the_problems_is_what_the_records_say(resumed):
    tracker = RewardTracker()
    for step in range(1, STEPS + 1):
        tracker.update(PromptRecord.from_json(row) for row in resumed.by_step()[step])
    path = resumed.folder / f"checkpoints/global_step_{STEPS}/hint_state.npz"
    saved = RewardTracker()
    with np.load(path) as state:
        saved.load_state_dict(dict(state))
    ids = {row["problem_id"] for row in resumed.records}
    assert len(saved) == len(tracker) == len(ids)
    assert saved.metrics() == tracker.metrics()
    assert all(saved.state(each) == tracker.state(each) for each in ids)

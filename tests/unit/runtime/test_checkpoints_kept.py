"""Which checkpoints stay on the disk, and how much room each takes."""

import os
import shutil

import pytest
from omegaconf import OmegaConf

from recipe.hint.adapter.preflight.folder import checkpoint_bytes
from recipe.run.checkpoints import (
    MERGED,
    QUEUE,
    REPLAY_FILE,
    STATE_FILE,
    complete_steps,
    drop_old,
    empty_step,
    mark_complete,
    newest_complete,
)


def lay(root, *steps, time_ns=0):
    """Write checkpoints of ours, as whole ones that were completed in this order."""
    for number, folder in enumerate(f"global_step_{step}" for step in steps):
        for part in ("actor", "critic"):
            (root / folder / part).mkdir(parents=True, exist_ok=True)
            (root / folder / part / "model.pt").write_text("much")
        (root / folder / STATE_FILE).write_text("ours")
        mark_complete(root, int(folder.split("_")[-1]))
        os.utime(root / folder / "COMPLETE", ns=(time_ns + number, time_ns + number))


def parts(root):
    return {int(path.parent.name[12:]): path.name for path in root.glob("global_step_*/actor")}


def test_starts_share_the_number_of_checkpoints_that_stay(tmp_path):
    # Eight starts of one save each: verl counts the saves of one process, and would keep all.
    for number in range(1, 9):
        lay(tmp_path, number, time_ns=10 * number)
        drop_old(tmp_path, number, 2)
        assert sorted(parts(tmp_path)) == [*range(max(1, number - 1), number + 1)]
    left = {path.parent.name for path in tmp_path.glob("global_step_*/critic")}
    assert left == {"global_step_7", "global_step_8"}
    assert complete_steps(tmp_path) == [7, 8]


def test_all_checkpoints_stay_without_a_number(tmp_path):
    lay(tmp_path, 1, 2, 3)
    drop_old(tmp_path, 3, None)
    assert complete_steps(tmp_path) == [1, 2, 3]


def test_a_run_that_started_over_keeps_its_own_checkpoints(tmp_path):
    lay(tmp_path, 10, 20, 30)
    lay(tmp_path, 5, 15, time_ns=10)  # its second life
    drop_old(tmp_path, 15, 2)
    assert complete_steps(tmp_path) == [5, 15, 20, 30]


@pytest.mark.parametrize("keep", [None, 1, 2])
def test_weights_without_a_mark_stay(tmp_path, keep):
    # A half save, a checkpoint of plain verl, a copy that lost its mark: who knows?
    lay(tmp_path, 4, 6)
    for step in (3, 5):
        (tmp_path / f"global_step_{step}" / "actor").mkdir(parents=True)
    (tmp_path / "global_step_3" / STATE_FILE).write_text("ours")
    drop_old(tmp_path, 6, keep)
    assert sorted(parts(tmp_path)) == ([3, 5, 6] if keep == 1 else [3, 4, 5, 6])


def test_what_the_run_was_resumed_from_stays_for_the_same_command(tmp_path):
    lay(tmp_path, 80, 85, 90)
    drop_old(tmp_path, 90, 2, spared=tmp_path / "global_step_80")
    assert complete_steps(tmp_path) == [80, 85, 90]
    lay(tmp_path, 95, time_ns=10)
    drop_old(tmp_path, 95, 2, spared=tmp_path / "global_step_80")
    assert complete_steps(tmp_path) == [80, 90, 95]


def sizes(policy="fp32", critic="fp32", *, prompt=8, response=4):
    return OmegaConf.create(
        {
            "actor_rollout_ref": {
                "actor": {"fsdp_config": {"model_dtype": policy}},
                "rollout": {"prompt_length": prompt, "response_length": response},
            },
            "critic": {"fsdp": {"model_dtype": critic}},
        }
    )


@pytest.mark.parametrize(
    ("policy", "critic", "expected"),
    [
        ("fp32", "fp32", [12_000, 18_000, 20_000, 12_000]),
        ("bf16", "fp32", [6_000, 12_000, 14_000, 10_000]),
        # Of the critic 3 x 2 bytes, and its slow target in 4: 500 x 10 = 5,000.
        ("bf16", 16, [6_000, 9_000, 11_000, 7_000]),
    ],
)
def test_a_checkpoint_has_the_size_of_policy_critic_and_slow_target(policy, critic, expected):
    # 1,000 numbers: weights, two moments; of a critic with a target a fourth time.
    config = sizes(policy, critic)
    assert checkpoint_bytes(config, 1000, 0, has_target=False) == expected[0]
    assert checkpoint_bytes(config, 1000, 500, has_target=False) == expected[1]
    assert checkpoint_bytes(config, 1000, 500, has_target=True) == expected[2]
    assert checkpoint_bytes(config, 1000, None, has_target=True) == expected[0]  # at least
    assert checkpoint_bytes(config, None, 0, has_target=False) is None
    OmegaConf.update(config, "actor_rollout_ref.model.lora_rank", 8, force_add=True)
    assert checkpoint_bytes(config, 1000, 500, has_target=True) == expected[3]


def test_what_serves_with_weights_that_verl_has_removed_goes_with_them(tmp_path):
    lay(tmp_path, 3, 6)
    for folder in tmp_path.glob("global_step_*"):
        (folder / REPLAY_FILE).write_text("much")
        (folder / QUEUE).mkdir()
        (folder / QUEUE / "rows.pkl").write_text("more")
    shutil.rmtree(tmp_path / "global_step_3" / "actor")
    drop_old(tmp_path, 6)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob(f"*/{REPLAY_FILE}"))
    assert left == [f"global_step_6/{REPLAY_FILE}"]
    assert [path.parent.name for path in tmp_path.glob(f"*/{QUEUE}")] == ["global_step_6"]
    assert newest_complete(tmp_path) == 6
    (tmp_path / "global_step_6" / "COMPLETE").unlink()
    assert newest_complete(tmp_path) is None  # not the one without weights


def test_a_step_that_is_written_over_loses_the_parts_of_another_number_of_processes(tmp_path):
    # 4 processes saved step 3 before; now 2 do: model_world_size_4_* beside model_world_size_2_*
    # could not be merged.
    lay(tmp_path, 3, 6)
    folder = tmp_path / "global_step_3"
    for part in ("actor", "critic", QUEUE, MERGED):
        (folder / part).mkdir(exist_ok=True)
        (folder / part / "model_world_size_4_rank_0.pt").write_text("old")
    (folder / "notes.txt").write_text("a person's")
    empty_step(tmp_path, 3)
    assert sorted(path.name for path in folder.iterdir()) == [STATE_FILE, "notes.txt"]
    assert complete_steps(tmp_path) == [6]
    assert sorted(parts(tmp_path)) == [6]

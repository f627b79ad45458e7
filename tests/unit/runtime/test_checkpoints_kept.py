"""Which checkpoints stay on the disk, and how much room each takes."""

import os
import shutil

import pytest

from recipe.hint.runtime.checkpoints import (
    QUEUE,
    REPLAY_FILE,
    STATE_FILE,
    complete_steps,
    drop_old,
    mark_complete,
    newest_complete,
)
from recipe.hint.runtime.preflight.folder import checkpoint_bytes


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


def test_a_checkpoint_has_the_size_of_policy_critic_and_slow_target():
    # 1,000 numbers in 4 bytes: weights, two moments; of a critic with a target a fourth time.
    assert checkpoint_bytes(1000, 0, has_target=False) == 12_000
    assert checkpoint_bytes(1000, 500, has_target=False) == 18_000
    assert checkpoint_bytes(1000, 500, has_target=True) == 20_000
    assert checkpoint_bytes(1000, 500, has_target=True, is_frozen=True) == 12_000
    assert checkpoint_bytes(1000, None, has_target=True) == 12_000  # at least
    assert checkpoint_bytes(None, 0, has_target=False) is None


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

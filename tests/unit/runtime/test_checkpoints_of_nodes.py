"""A checkpoint is whole when the files of all trainer processes are on the disk."""

import os

import pytest

from recipe.run import checkpoints
from recipe.run.checkpoints import COMPLETE, mark_complete, newest_complete, step_folder
from recipe.run.errors import HintError

KINDS = ("model", "optim", "extra_state")
STEP = 50


def save(root, ranks, size, *, kinds=KINDS, part="actor", at=None):
    """What verl's processes write."""
    folder = step_folder(root, STEP) / part
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        for rank in ranks:
            path = folder / f"{kind}_world_size_{size}_rank_{rank}.pt"
            path.write_bytes(b"weights")
            if at is not None:
                os.utime(path, (at, at))


def test_files_of_all_processes_make_a_checkpoint_whole(tmp_path):
    save(tmp_path, range(16), 16)
    save(tmp_path, range(16), 16, part="critic", kinds=("model", "optim", "target"))
    mark_complete(tmp_path, STEP)
    assert newest_complete(tmp_path) == STEP


def test_a_node_that_saves_on_its_own_disk_is_found_at_the_first_checkpoint(tmp_path):
    """2 nodes of 8 processes without a shared disk: this one has the files of 8 of 16."""
    save(tmp_path, range(8), 16)
    told = (
        r"actor has the files \w+_world_size_16_rank_\*.pt of 8 of 16 .* "
        r"rank 8, 9, 10, 11, 12, 13, 14, 15 lie on .* a disk that all nodes share"
    )
    with pytest.raises(HintError, match=told):
        mark_complete(tmp_path, STEP, seen_within_s=0.0)
    assert not (step_folder(tmp_path, STEP) / COMPLETE).exists()
    assert newest_complete(tmp_path) is None


def test_only_the_first_ranks_that_are_missing_are_named(tmp_path):
    """32 of 40 are missing."""
    save(tmp_path, range(8), 40)
    with pytest.raises(HintError, match=r"of 8 of 40 .*rank 8, 9, 10, 11, 12, 13, 14, 15, \.\.\. "):
        mark_complete(tmp_path, STEP, seen_within_s=0.0)


@pytest.mark.parametrize(("part", "kind"), [("actor", "optim"), ("critic", "target")])
def test_one_missing_file_of_any_kind_is_named_with_its_rank(tmp_path, part, kind):
    save(tmp_path, range(4), 4)
    save(tmp_path, range(4), 4, part="critic", kinds=(*KINDS, "target"))
    (step_folder(tmp_path, STEP) / part / f"{kind}_world_size_4_rank_2.pt").unlink()
    with pytest.raises(HintError, match=rf"{part} has the files {kind}_.* of 3 of 4 .*rank 2 lie"):
        mark_complete(tmp_path, STEP, seen_within_s=0.0)


def test_a_run_that_saves_no_optimizer_misses_none(tmp_path):
    save(tmp_path, range(2), 2, kinds=("model",))
    mark_complete(tmp_path, STEP)
    assert newest_complete(tmp_path) == STEP


def test_what_a_former_run_on_more_processes_left_is_not_missed(tmp_path):
    """Killed in its save, with the files of 3 of 8 processes; now there are 2."""
    save(tmp_path, range(3), 8, at=1_000)
    save(tmp_path, range(2), 2, at=2_000)
    mark_complete(tmp_path, STEP)
    assert newest_complete(tmp_path) == STEP


def test_a_file_that_a_network_disk_shows_late_is_waited_for(tmp_path, monkeypatch):
    save(tmp_path, range(1), 2)
    monkeypatch.setattr(checkpoints.time, "sleep", lambda _: save(tmp_path, range(2), 2))
    mark_complete(tmp_path, STEP)
    assert newest_complete(tmp_path) == STEP


def test_a_driver_without_any_file_of_the_actor_has_a_disk_of_its_own(tmp_path):
    (step_folder(tmp_path, STEP)).mkdir(parents=True)
    with pytest.raises(HintError, match=r"global_step_50/actor is not there: .* all nodes share"):
        mark_complete(tmp_path, STEP, needs=("actor",), seen_within_s=0.0)

"""A run that is set back, started over and killed resumes from its own last whole checkpoint."""

import random

import pytest

from recipe.run import checkpoints
from recipe.run.checkpoints import (
    STATE_FILE,
    drop_old,
    empty_step,
    mark_complete,
    point_at,
    repair_pointer,
)
from recipe.run.errors import ConfigError

POINTER = "latest_checkpointed_iteration.txt"  # verl's
MOMENTS = ("files", "pointer emptied", "pointer", "COMPLETE", "our pointer", "end")


class Killed(Exception):
    pass


def save(root, step, killed_after, monkeypatch):
    """Save as the trainer and verl do, up to one of the moments."""
    empty_step(root, step)
    folder = root / f"global_step_{step}"
    (folder / "actor").mkdir(parents=True, exist_ok=True)
    (folder / STATE_FILE).write_text("ours")
    if killed_after == "files":
        return
    (root / POINTER).write_text("")
    if killed_after == "pointer emptied":
        return
    (root / POINTER).write_text(str(step))
    if killed_after == "pointer":
        return
    real, written = checkpoints.write_whole, []

    def write(path, text):
        real(path, text)
        written.append(path)
        if len(written) == {"COMPLETE": 1, "our pointer": 2}.get(killed_after):
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "write_whole", write)
        try:
            mark_complete(root, step)
        except Killed:
            pass


@pytest.mark.parametrize("seed", range(200))
def test_a_life_never_goes_on_from_a_checkpoint_of_an_earlier_one(tmp_path, monkeypatch, seed):
    draw = random.Random(seed)
    at, whole = 0, set()
    point_at(tmp_path, 0)  # as a run's first start does
    for _ in range(draw.randrange(1, 12)):
        act = draw.choice(["save", "save", "save", "set back", "start over"])
        if act == "set back" and whole:
            at = draw.choice(sorted(whole))
            point_at(tmp_path, at)
        elif act == "start over":
            at = 0
            point_at(tmp_path, 0)
        else:
            step, moment = at + draw.randrange(1, 4), draw.choice(MOMENTS)
            save(tmp_path, step, moment, monkeypatch)
            whole.discard(step)
            if moment in MOMENTS[3:]:
                at = step
                whole.add(step)
        assert (repair_pointer(tmp_path) or 0) == at
        assert (tmp_path / POINTER).read_text() == str(at)  # what verl goes by


def test_a_user_may_set_a_run_back_by_verls_pointer(tmp_path, monkeypatch):
    for step in (2, 4):
        save(tmp_path, step, "end", monkeypatch)
    (tmp_path / POINTER).write_text("2")
    assert repair_pointer(tmp_path) == 2


def test_a_run_whose_only_checkpoint_was_moved_aside_by_another_name_begins_anew(
    tmp_path, monkeypatch
):
    save(tmp_path, 4, "end", monkeypatch)
    (tmp_path / "global_step_4").rename(tmp_path / "global_step_4.bad")
    assert repair_pointer(tmp_path) is None
    (tmp_path / "global_step_6/actor").mkdir(parents=True)  # written by verl alone
    with pytest.raises(ConfigError, match=r"holds global_step_6 and no checkpoint with COMPLETE"):
        repair_pointer(tmp_path)


def test_a_folder_with_a_step_of_another_spelling_is_no_checkpoint(tmp_path, monkeypatch):
    save(tmp_path, 10, "end", monkeypatch)
    for name in ("global_step_010", "global_step_\u0661\u0660"):
        (tmp_path / name).mkdir()
    drop_old(tmp_path, 20)
    assert repair_pointer(tmp_path) == 10

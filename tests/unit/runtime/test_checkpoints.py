"""Only a whole checkpoint is ever resumed from, and of those the run's own newest ones stay."""

import os
import random
import shutil
import threading

import pytest

from recipe.run import checkpoints
from recipe.run.checkpoints import (
    COMPLETE,
    MERGED,
    QUEUE,
    STATE_FILE,
    check_undamaged,
    complete_steps,
    drop_old,
    empty_step,
    mark_complete,
    point_at,
    repair_pointer,
)
from recipe.run.errors import ConfigError, HintError
from recipe.run.run_folder import METRICS_FILE, RunFolder

POINTER = "latest_checkpointed_iteration.txt"  # verl's
MOMENTS = ("files", "pointer emptied", "pointer", "COMPLETE", "end")


def make(root, *steps, half=()):
    for step in (*steps, *half):
        (root / f"global_step_{step}").mkdir(parents=True)
        (root / f"global_step_{step}" / "data.pt").write_text("verl's")
    for step in steps:
        mark_complete(root, step)
    return root


@pytest.mark.parametrize("content", [b"123", None])
def test_a_checkpoint_with_a_cut_or_missing_file_is_refused_by_its_name(tmp_path, content):
    make(tmp_path, 3)
    folder = tmp_path / "global_step_5"
    (folder / "actor").mkdir(parents=True)
    (folder / "actor/model.pt").write_bytes(b"0123456789")
    mark_complete(tmp_path, 5)
    (folder / "notes.txt").write_text("a further file does no harm")
    check_undamaged(folder)
    (folder / "actor/model.pt").write_bytes(content) if content else (
        folder / "actor/model.pt"
    ).unlink()
    with pytest.raises(ConfigError, match=r"global_step_5 is damaged: actor/model.pt"):
        check_undamaged(folder)
    shutil.rmtree(folder)  # as the message says
    assert repair_pointer(tmp_path) == 3


def test_every_file_is_on_the_disk_before_its_checkpoint_is_marked(tmp_path, monkeypatch):
    folder = tmp_path / "global_step_3"
    (folder / "actor").mkdir(parents=True)
    files = [folder / "data.pt", folder / "actor" / "model.pt"]
    for file in files:
        file.write_text("verl's")
    synced, real = [], os.fsync

    def fsync(descriptor):
        if not (folder / COMPLETE).exists():
            synced.append(os.fstat(descriptor).st_ino)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    mark_complete(tmp_path, 3)
    assert {file.stat().st_ino for file in files} <= {*synced}


@pytest.mark.parametrize("late_s", [0.2, 60])
def test_files_of_other_trainer_processes_are_waited_for_and_named(tmp_path, monkeypatch, late_s):
    """Two nodes of one process each; without a shared disk the second one's file never comes."""
    monkeypatch.setattr(checkpoints, "_SEEN_S", 1)
    folder = tmp_path / "global_step_5/actor"
    folder.mkdir(parents=True)
    files = [folder / f"model_world_size_2_rank_{rank}.pt" for rank in range(2)]
    files[0].write_bytes(b"pieces")
    later = threading.Timer(late_s, files[1].write_bytes, (b"pieces",))
    later.start()
    try:
        if late_s < 1:
            mark_complete(tmp_path, 5, needs=("actor",))
            check_undamaged(folder.parent)
        else:
            told = r"has 1 of 2 files model_world_size_2_rank_\*: .* all nodes share"
            with pytest.raises(HintError, match=told):
                mark_complete(tmp_path, 5, needs=("actor",))
            assert not (folder.parent / COMPLETE).exists()
    finally:
        later.cancel()


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
    real = checkpoints.write_whole

    def write(path, text):
        real(path, text)
        if killed_after == "COMPLETE":
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "write_whole", write)
        try:
            mark_complete(root, step)
        except Killed:
            pass


@pytest.mark.parametrize("seed", range(40))
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
                whole.add(step)
            if moment == "end":
                at = step
        assert (repair_pointer(tmp_path) or 0) == at
        assert (tmp_path / POINTER).read_text() == str(at)  # what verl goes by


def lay(root, *steps):
    """Write checkpoints of ours."""
    for step in steps:
        for part in ("actor", "critic"):
            (root / f"global_step_{step}" / part).mkdir(parents=True, exist_ok=True)
        (root / f"global_step_{step}" / STATE_FILE).write_text("ours")
        mark_complete(root, step)


def parts(root):
    return {int(path.parent.name[12:]): path.name for path in root.glob("global_step_*/actor")}


def test_starts_share_the_number_of_checkpoints_that_stay(tmp_path):
    # Eight starts of one save each: verl counts the saves of one process, and would keep all.
    for number in range(1, 9):
        lay(tmp_path, number)
        drop_old(tmp_path, number, 2)
        assert sorted(parts(tmp_path)) == [*range(max(1, number - 1), number + 1)]
    assert complete_steps(tmp_path) == [7, 8]


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


@pytest.mark.parametrize("lines", ["", '{"step": 0, "val": 1}\n{"step": 3, "val": 1}\n'])
def test_the_line_of_a_step_that_was_saved_and_not_logged_comes_back(tmp_path, lines):
    folder = RunFolder(tmp_path)
    folder.metrics.write_text(lines)
    folder.restore_metrics(3, tmp_path)  # the file was damaged, and deleted
    assert folder.metrics.read_text() == lines
    (tmp_path / METRICS_FILE).write_text('{"hint/prompts": 8, "actor/loss": NaN}')
    folder.restore_metrics(3, tmp_path)
    whole = folder.metrics.read_text()
    assert whole == lines + '{"step": 3, "hint/prompts": 8, "actor/loss": NaN}\n'
    folder.restore_metrics(3, tmp_path)  # it is there now
    assert folder.metrics.read_text() == whole


def test_records_and_metrics_after_the_checkpoint_are_forgotten_with_a_cut_line(tmp_path):
    folder = RunFolder(tmp_path)
    folder.records.write_text('{"step": 3}\n{"step": 4}\n{"step": 4, "le')
    folder.metrics.write_text('{"step": 0}\n{"step": 3}\n{"step": 4}\n')
    folder.samples.write_text('{"step": 2, "why": []}\n{"step": 4, "why": []}\n{"step"')
    folder.begin_after(3)
    assert folder.records.read_text() == '{"step": 3}\n'
    assert folder.samples.read_text() == '{"step": 2, "why": []}\n'
    assert folder.metrics.read_text() == '{"step": 0}\n{"step": 3}\n'


def test_a_run_that_starts_anew_moves_the_earlier_files_aside(tmp_path):
    folder = RunFolder(tmp_path)
    for content in ("first\n", "second\n"):
        folder.records.write_text(content)
        folder.begin_after(0)
    assert not folder.records.exists()
    assert (tmp_path / "records.1.jsonl").read_text() == "first\n"
    assert (tmp_path / "records.2.jsonl").read_text() == "second\n"

"""Only a whole checkpoint is ever resumed from."""

import json
import shutil
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from omegaconf import OmegaConf

from recipe.hint.adapter.preflight import folder
from recipe.hint.adapter.preflight.folder import check_disk, check_run_folder
from recipe.run.checkpoints import (
    MERGED,
    STATE_FILE,
    empty_step,
    known_checkpoints,
    mark_complete,
    model_files,
    point_at,
    repair_pointer,
)
from recipe.run.errors import ConfigError
from recipe.run.run_folder import METRICS_FILE, RunFolder
from recipe.run.watchdog import Watchdog, read_fatal, write_fatal

POINTER = "latest_checkpointed_iteration.txt"


def make(root, *steps, half=()):
    for step in (*steps, *half):
        (root / f"global_step_{step}").mkdir(parents=True)
        (root / f"global_step_{step}" / "data.pt").write_text("verl's")
    for step in steps:
        mark_complete(root, step)
    return root


@pytest.mark.parametrize("content", ["", "30", "garbage"])
def test_a_pointer_left_by_a_kill_is_set_right(tmp_path, content):
    make(tmp_path, 3, 20, half=[30])
    (tmp_path / POINTER).write_text(content)
    assert repair_pointer(tmp_path) == 20
    assert (tmp_path / POINTER).read_text() == "20"


@pytest.mark.parametrize("keep", [2, 3, None])
def test_two_checkpoints_kept_are_enough(tmp_path, keep):
    trainer = {"save_freq": 1, "max_actor_ckpt_to_keep": keep, "default_local_dir": str(tmp_path)}
    assert check_disk(OmegaConf.create({"trainer": trainer}), None, 9).startswith(f"{keep or 9} ")


def test_a_run_that_only_validates_needs_no_room(tmp_path):
    trainer = {"val_only": True, "save_freq": 1, "default_local_dir": str(tmp_path)}
    said = check_disk(OmegaConf.create({"trainer": trainer}), 10**30, 9)
    assert said == "no checkpoints"


@pytest.mark.parametrize(
    ("present", "keep", "resumed", "expected"),
    [
        ([], None, 0, 10),
        ([], 2, 0, 2),
        ([50, 100, 150, 200, 250, 300, 350, 400, 450], None, 450, 1),
        ([400, 450], 2, 450, 1),  # 450, 500, and 450 stays as what the run was resumed from
        ([100, 150], 2, 150, 1),  # 450, 500 and 150: one more than now
        ([150], 3, 150, 3),
        ([], 2, 150, 2),  # from another run's folder, of which nothing is here
        ([50, 100, 150, 200], 2, 0, 2),  # started over; these may be written over
        ([500], None, 500, 0),
    ],
)
def test_only_checkpoints_still_to_be_written_need_room(
    tmp_path, monkeypatch, present, keep, resumed, expected
):
    for step in present:
        (make(tmp_path, step) / f"global_step_{step}/actor").mkdir()
    monkeypatch.setattr(folder, "resumed_step", lambda config: resumed)
    trainer = {"save_freq": 50, "max_actor_ckpt_to_keep": keep, "default_local_dir": str(tmp_path)}
    config = OmegaConf.create({"trainer": trainer | {"max_critic_ckpt_to_keep": None}})
    disk = SimpleNamespace(free=expected * 100)
    monkeypatch.setattr(folder.shutil, "disk_usage", lambda path: disk)
    assert check_disk(config, 100, 500).startswith(f"{expected} {'more ' * (resumed > 0)}check")
    if expected:
        disk.free -= 1
        with pytest.raises(ConfigError, match=f"{expected} checkpoints? of 1e-07 GB need"):
            check_disk(config, 100, 500)


@pytest.mark.parametrize("part", ["actor", "critic"])
def test_one_checkpoint_kept_is_refused_with_the_reason(tmp_path, part):
    keep = {"max_actor_ckpt_to_keep": None, f"max_{part}_ckpt_to_keep": 1}
    trainer = {"save_freq": 1, **keep, "default_local_dir": str(tmp_path)}
    with pytest.raises(ConfigError, match=f"{part}.*=1.*: verl deletes .* before the"):
        check_disk(OmegaConf.create({"trainer": trainer}), None, 9)


def files_of(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("ours", [False, True])
def test_checkpoints_of_which_none_is_whole_are_refused_and_stay(tmp_path, ours):
    # A plain verl checkpoint; a copy of ours that lost COMPLETE.
    make(tmp_path, half=[5])
    (tmp_path / POINTER).write_text("5")
    if ours:
        (tmp_path / "global_step_5" / STATE_FILE).write_text("ours")
    before = files_of(tmp_path)
    with pytest.raises(ConfigError, match=r"holds global_step_5 and no checkpoint with COMPLETE"):
        repair_pointer(tmp_path)
    assert files_of(tmp_path) == before


def test_a_plain_checkpoint_without_a_pointer_is_refused_too(tmp_path):
    with pytest.raises(ConfigError, match="Training would begin at step 1 over them"):
        repair_pointer(make(tmp_path, half=[5]))


def test_a_run_killed_in_its_first_save_starts_anew(tmp_path):
    (tmp_path / "global_step_4").mkdir()  # before the first file of the save
    make(tmp_path, half=[5])
    (tmp_path / "global_step_5" / STATE_FILE).write_text("ours, and no pointer of verl's yet")
    assert repair_pointer(tmp_path) is None


def test_the_check_before_the_start_refuses_what_the_run_would(tmp_path):
    config = OmegaConf.create(
        {
            "hint": {"run_dir": str(tmp_path), "teacher": {"cache_dir": str(tmp_path)}},
            "trainer": {
                "experiment_name": "e",
                "project_name": "p",
                "default_local_dir": str(make(tmp_path / "checkpoints", half=[5])),
                "resume_mode": "auto",
            },
        }
    )
    with pytest.raises(ConfigError, match="no checkpoint with COMPLETE"):
        check_run_folder(config)
    config.trainer.resume_mode = "disable"
    assert check_run_folder(config) == "exists, no complete checkpoint: starts at step 1"


@pytest.mark.parametrize(
    "damage, told",
    [
        (lambda file: file.write_bytes(b"123"), r"3 bytes at actor/model.pt, expected 10 bytes"),
        (Path.unlink, r"nothing at actor/model.pt, expected 10 bytes"),
    ],
)
def test_a_checkpoint_with_a_cut_or_missing_file_is_refused_by_its_name(tmp_path, damage, told):
    make(tmp_path, 3)
    folder = tmp_path / "global_step_5"
    (folder / "actor").mkdir(parents=True)
    (folder / "actor/model.pt").write_bytes(b"0123456789")
    mark_complete(tmp_path, 5)
    assert repair_pointer(tmp_path) == 5
    (folder / "notes.txt").write_text("a further file does no harm")
    assert repair_pointer(tmp_path) == 5
    damage(folder / "actor/model.pt")
    with pytest.raises(ConfigError, match=rf"global_step_5 is damaged: {told}"):
        repair_pointer(tmp_path)
    shutil.rmtree(folder)  # as the message says
    assert repair_pointer(tmp_path) == 3


def test_a_checkpoint_of_an_earlier_version_says_nothing_of_its_files(tmp_path):
    make(tmp_path, 5)
    (tmp_path / "global_step_5/COMPLETE").write_text("5\n")
    (tmp_path / "global_step_5/data.pt").unlink()
    assert repair_pointer(tmp_path) == 5


def test_a_line_is_never_added_to_what_a_full_disk_left_of_one(tmp_path):
    folder = RunFolder(tmp_path)
    for left, kept in (('{"step": 3}\n{"st', '{"step": 3}\n'), ('{"step": 4, "h', ""), ("", "")):
        folder.metrics.write_text(left)
        folder.append_metrics(4, {"loss": 1})
        assert folder.metrics.read_text() == kept + '{"step": 4, "loss": 1}\n'


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
    # An early version kept what verl takes out before it logs.
    (tmp_path / METRICS_FILE).write_text('{"hint/prompts": 8, "_filtered": "{0.0: 2}"}')
    folder.restore_metrics(3, tmp_path)
    assert folder.metrics.read_text() == whole


def test_a_run_without_checkpoints_starts_anew(tmp_path):
    assert repair_pointer(tmp_path / "nowhere") is None


def test_records_and_metrics_after_the_checkpoint_are_forgotten_with_a_cut_line(tmp_path):
    folder = RunFolder(tmp_path)
    folder.records.write_text('{"step": 3}\n{"step": 4}\n{"step": 4, "le')
    folder.metrics.write_text('{"step": 0}\n{"step": 3}\n{"step": 4}\n')
    folder.samples.write_text('{"step": 2, "why": []}\n{"step": 4, "why": []}\n{"step"')
    folder.begin_after(3)
    assert folder.records.read_text() == '{"step": 3}\n'
    assert folder.samples.read_text() == '{"step": 2, "why": []}\n'
    assert folder.metrics.read_text() == '{"step": 0}\n{"step": 3}\n'


@pytest.mark.parametrize(
    "tail", [b'{"step": 3, "x', b"\xff\xfe\n", b"\0" * 40, b"7\n", b"[]\n", b'{"no": 1}\n', b"\n"]
)
def test_a_damaged_line_does_not_stop_a_run_from_resuming(tmp_path, tail):
    folder = RunFolder(tmp_path)
    folder.records.write_bytes(b'{"step": 3}\n' + tail)
    folder.begin_after(3)
    assert folder.records.read_bytes() == b'{"step": 3}\n'


def test_the_records_of_a_long_run_are_not_held_in_memory(tmp_path):
    folder = RunFolder(tmp_path)
    row = json.dumps({"step": 1, "filler": "x" * 2000}) + "\n"
    folder.records.write_text(row * 5000)  # 10 MB
    tracemalloc.start()
    folder.begin_after(1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert folder.records.stat().st_size == 5000 * len(row)
    assert peak < 2**20


def test_a_run_that_starts_anew_moves_the_earlier_files_aside(tmp_path):
    folder = RunFolder(tmp_path)
    for content in ("first\n", "second\n"):
        folder.records.write_text(content)
        folder.begin_after(0)
    assert not folder.records.exists()
    assert (tmp_path / "records.1.jsonl").read_text() == "first\n"
    assert (tmp_path / "records.2.jsonl").read_text() == "second\n"


def test_a_run_set_back_to_an_earlier_checkpoint_goes_on_from_there(tmp_path):
    make(tmp_path, 100, 60)  # 60 was saved last and is what the pointer names
    assert repair_pointer(tmp_path) == 60


def test_a_run_begun_anew_over_a_former_one_goes_on_from_its_own_checkpoints_only(tmp_path):
    make(tmp_path, 3, 6)
    point_at(tmp_path, 0)  # trainer.resume_mode=disable; killed before its first save
    assert repair_pointer(tmp_path) is None
    empty_step(tmp_path, 3)  # killed within it
    assert repair_pointer(tmp_path) is None
    mark_complete(tmp_path, 3)
    assert repair_pointer(tmp_path) == 3  # not the former run's 6


def test_a_checkpoint_being_written_over_is_not_whole(tmp_path):
    make(tmp_path, 3, 6)
    empty_step(tmp_path, 6)
    assert repair_pointer(tmp_path) == 3


def test_the_first_reason_of_a_failure_stays(tmp_path):
    write_fatal(tmp_path, "the cause", "Traceback\n  line 1")
    write_fatal(tmp_path, "what followed")
    assert read_fatal(tmp_path) == "the cause"
    assert json.loads((tmp_path / "fatal.json").read_text())["stack"] == ["Traceback", "  line 1"]


def test_a_phase_within_its_limit_ends_without_a_trace(tmp_path):
    watchdog = Watchdog(tmp_path)
    with watchdog.phase("somebody", 300.0, "hint.watchdog.x_s"):
        time.sleep(0.6)  # longer than one look of the watching thread
    watchdog.stop()
    assert read_fatal(tmp_path) is None


def test_a_phase_past_its_limit_ends_the_process_and_names_what_took_so_long(tmp_path):
    import subprocess
    import sys

    code = (
        "import time, pathlib\n"
        "from recipe.run.watchdog import Watchdog\n"
        f"dog = Watchdog(pathlib.Path({str(tmp_path)!r}))\n"
        "with dog.phase('the delivery', 0.2, 'hint.watchdog.x_s'):\n"
        "    time.sleep(600)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=300, check=False)
    assert done.returncode == 70
    expected = "the delivery took longer than hint.watchdog.x_s=0.2 s"
    assert read_fatal(tmp_path).startswith(expected)
    assert 'File "<string>", line 5' in (tmp_path / "stacks.txt").read_text()


def test_a_step_that_is_saved_again_loses_the_weights_merged_from_the_first_save(tmp_path):
    folder = make(tmp_path, 3) / "global_step_3"
    (folder / MERGED).mkdir()
    assert model_files(folder) == (folder / MERGED, True)
    empty_step(tmp_path, 3)
    mark_complete(tmp_path, 3)
    assert model_files(folder) == (folder / "actor" / "huggingface", False)


def test_a_draft_of_a_save_that_was_killed_is_no_part_of_the_checkpoint(tmp_path):
    folder = make(tmp_path, half=[3]) / "global_step_3"
    (folder / f".{STATE_FILE}.123.tmp").write_text("half")
    empty_step(tmp_path, 3)
    mark_complete(tmp_path, 3)
    assert list(json.loads((folder / "COMPLETE").read_text())["bytes"]) == ["data.pt"]


@pytest.mark.parametrize("given", ["", "checkpoints", "checkpoints/global_step_7", "checkpoint_8"])
def test_a_path_that_is_no_checkpoint_leads_to_those_of_its_run(tmp_path, given):
    root = tmp_path / "run" / "checkpoints"
    root.mkdir(parents=True)
    assert known_checkpoints(tmp_path / "run" / given) == f"{root} has no checkpoint yet"
    for step in (20, 3, 100):
        (root / f"global_step_{step}").mkdir()
        if step != 100:  # killed while it was saved
            mark_complete(root, step)
    told = f"{root} has global_step_3, global_step_20"
    assert known_checkpoints(tmp_path / "run" / given) == told


def test_a_path_far_from_any_run_leads_to_none(tmp_path):
    assert known_checkpoints(tmp_path / "gone" / "model") == ""

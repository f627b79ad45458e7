"""Which phase is named, how an error is told, and what the mark of a checkpoint waits for."""

import os
import subprocess
import sys

from ray.exceptions import RayTaskError

from recipe.run.checkpoints import (
    COMPLETE,
    check_resumable,
    complete_steps,
    drop_old,
    mark_complete,
    repair_pointer,
)
from recipe.run.watchdog import NO_ANSWER, Watchdog, read_fatal, sentence_of, text_of


def test_of_phases_that_are_late_together_the_innermost_is_named(tmp_path):
    code = (
        "import time, pathlib\n"
        "from recipe.run.watchdog import Watchdog\n"
        f"dog = Watchdog(pathlib.Path({str(tmp_path)!r}))\n"
        "with dog.phase('the step', 0.0, 'x_s'), dog.phase('the server', 0.0, 'y_s'):\n"
        "    time.sleep(600)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], timeout=300, check=False)
    assert done.returncode == 70
    assert read_fatal(tmp_path).startswith("the server took longer than y_s=0 s; stacks")


def test_the_end_of_a_phase_leaves_the_one_around_it_watched(tmp_path):
    dog = Watchdog(tmp_path)
    with dog.phase("the step", 300.0, "x_s"):
        with dog.phase("the server", 200.0, "y_s"):
            pass
        assert [each.label for each in dog._stack] == ["the step took longer than x_s=300 s"]
    assert dog._stack == []
    dog.stop()


def test_a_phase_that_is_renewed_goes_on_and_what_is_late_in_the_end_says_more(tmp_path):
    """Renewed at 0.6, 1.2 and 1.8 s, with a limit of 1 s."""
    code = (
        "import time, pathlib\n"
        "from recipe.run.watchdog import NO_ANSWER, Watchdog\n"
        f"dog = Watchdog(pathlib.Path({str(tmp_path)!r}))\n"
        "with dog.phase('it', 1.0, 'x_s', fault=NO_ANSWER, more=lambda: '; all') as renew:\n"
        "    for _ in range(3):\n"
        "        time.sleep(0.6)\n"
        "        renew()\n"
        "    print('still here', flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, timeout=300, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (70, "still here\n")
    assert read_fatal(tmp_path).startswith(f"it {NO_ANSWER} x_s=1 s; all; stacks of all threads")


def test_an_error_is_told_by_its_first_cause_however_deep(tmp_path):
    inner = RayTaskError("f", "a traceback", ValueError("no\n  such\tthing")).as_instanceof_cause()
    outer = RayTaskError("g", "a traceback", inner)
    group = ExceptionGroup("all", [ExceptionGroup("some", [outer]), KeyError("later")])
    assert sentence_of(group, tmp_path) == "ValueError: no such thing"


def test_a_long_error_is_cut_between_words_at_1000_characters():
    """249 words of 3 characters and a space are 996, with the sign of the cut 999."""
    cut = text_of(ValueError("abc " * 500))
    assert cut == " ".join(["abc"] * 249) + " ..."
    whole = " ".join(["abc"] * 250)
    assert text_of(ValueError(whole)) == whole


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


def test_a_file_and_a_folder_of_another_name_are_no_checkpoints(tmp_path):
    (tmp_path / "global_step_7").write_text("a note of the user's")
    (tmp_path / "global_step_07").mkdir()
    (tmp_path / "global_step_07" / "data.pt").write_text("a copy")
    check_resumable(tmp_path)
    assert repair_pointer(tmp_path) is None


def test_the_newest_checkpoint_stays_whatever_it_holds(tmp_path):
    """Its weights may be elsewhere; those of an earlier one are gone, and its mark with them."""
    for step in (4, 5):
        (tmp_path / f"global_step_{step}").mkdir()
        mark_complete(tmp_path, step)
    drop_old(tmp_path, 5, 1)
    assert complete_steps(tmp_path) == [5]


def test_a_draft_alone_is_a_first_save_that_was_killed(tmp_path):
    folder = tmp_path / "global_step_4"
    folder.mkdir()
    (folder / ".hint_state.npz.tmp").write_text("the beginning of our state")
    assert repair_pointer(tmp_path) is None

"""Which of Ray's log files are kept with a run, and what the command shows of its console file."""

import io

import pytest

from recipe.hint.runtime import launcher
from recipe.hint.runtime.launcher import _Console, keep_logs
from recipe.hint.runtime.reporter import Pace

OURS, THEIRS, IDLE = "a" * 56, "b" * 56, "c" * 56
NODE = {"raylet.out", "gcs_server.out", f"worker-{IDLE}-ffffffff-9.out"}


def files_of(worker, job, pid):
    return {
        f"worker-{worker}-{job}-{pid}.out",
        f"worker-{worker}-{job}-{pid}.err",
        f"python-core-worker-{worker}_{pid}.log",
        f"python-core-driver-{job}{'f' * 48}_{pid}.log",
        f"runtime_env_setup-{job}.log",
    }


@pytest.fixture
def session(tmp_path):
    """Ray's folder on a machine where two jobs have run."""
    folder = tmp_path / "session/logs"
    (folder / "old").mkdir(parents=True)
    (folder / "events").mkdir()
    for name in (*files_of(OURS, "02000000", 7), *files_of(THEIRS, "01000000", 8), *NODE):
        (folder / name).write_text(name)
    (folder / f"old/worker-{OURS}-02000000-6.out").write_text("ended")
    (folder / f"old/worker-{THEIRS}-01000000-5.out").write_text("ended")
    (folder / "events/event_RAYLET.log").write_text("all jobs")
    return folder


def kept(session, job):
    target = session.parent.parent / "kept"
    keep_logs(session, target, job)
    return {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}


def test_of_a_cluster_that_others_use_only_files_of_the_job_are_kept(session):
    old = f"old/worker-{OURS}-02000000-6.out"
    assert kept(session, "02000000") == files_of(OURS, "02000000", 7) | {old}


def test_of_a_cluster_of_its_own_the_output_of_the_node_is_kept_too(session):
    old = f"old/worker-{THEIRS}-01000000-5.out"
    assert kept(session, "01000000") == files_of(THEIRS, "01000000", 8) | NODE | {old}


def test_in_a_file_an_evaluation_tells_its_samples_from_time_to_time(tmp_path, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(launcher.time, "monotonic", lambda: now)
    monkeypatch.setattr(launcher, "Pace", lambda total: Pace(total, clock=lambda: now))
    monkeypatch.setattr("sys.stderr", io.StringIO())  # no terminal, so no bar
    monkeypatch.setattr("sys.stdout", shown := io.StringIO())
    path = tmp_path / "console.log"
    path.touch()
    console = _Console(path)
    # 10 samples every 4 s: told after the first 10 s or more, and at the end.
    for done in (10, 20, 30, 40, 50):
        now += 4.0
        with path.open("a") as file:
            file.write(f"samples {done}/50\n")
        console.show()
    # After 30 samples 20 are left: two times 4 s.
    assert shown.getvalue().splitlines() == ["samples 30/50  8 s left", "samples 50/50"]

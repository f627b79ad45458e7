"""A folder has one run at a time; Ray's log files kept with it, and what its console file shows."""

import io
import os

import pytest
from omegaconf import OmegaConf

from recipe.run import launcher
from recipe.run.errors import ConfigError
from recipe.run.folder_lock import claimed
from recipe.run.launcher import _Console
from recipe.run.ray_logs import engine_error, keep_logs
from recipe.run.run_folder import RunFolder

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


def test_a_second_run_in_a_folder_is_refused_before_ray_starts(tmp_path, monkeypatch):
    monkeypatch.setattr(launcher.ray, "init", lambda **_: pytest.fail("Ray was started"))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/console.log").write_text("of the first run")
    config = OmegaConf.create(
        {
            "trainer": {"default_local_dir": "checkpoints", "eval_only": False},
            "hint": {"run_dir": str(tmp_path), "teacher": {"cache_dir": "cache"}, "prompts": None},
            "data": {"train_files": "a.parquet", "val_files": "b.parquet"},
            "actor_rollout_ref": {"model": {"path": "base"}},
            "critic": {"model": {"path": "base"}},
            "reward": {"custom_reward_function": {"path": None}},
        }
    )
    in_use = f"in use by another run .process {os.getpid()} on "
    with claimed(tmp_path / ".lock"), pytest.raises(ConfigError, match=in_use):
        launcher.run_to_its_end(config, object)
    assert (tmp_path / "logs/console.log").read_text() == "of the first run"
    assert not (tmp_path / "config.yaml").exists()


def test_of_a_cluster_that_others_use_only_files_of_the_job_are_kept(session):
    old = f"old/worker-{OURS}-02000000-6.out"
    assert kept(session, "02000000") == files_of(OURS, "02000000", 7) | {old}


def test_of_a_cluster_of_its_own_the_output_of_the_node_is_kept_too(session):
    old = f"old/worker-{THEIRS}-01000000-5.out"
    assert kept(session, "01000000") == files_of(THEIRS, "01000000", 8) | NODE | {old}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["(EngineCore pid=7) ERROR 11-26 02:27 [core.py:1374] ValueError: No memory"],
            "No memory",
        ),
        (
            ["(EngineCore pid=7) ValueError: No memory", "(EngineCore pid=7) OSError: 2"],
            "No memory",
        ),
        (
            [
                "(Worker pid=8) ERROR [mp.py:7] torch.OutOfMemoryError: CUDA out of memory",
                "(EngineCore pid=7) ERROR [core.py:9] RuntimeError: Worker failed",
            ],
            "CUDA out of memory",
        ),
        (["(EngineCore pid=7) WARNING [i.py:3] no _C: ModuleNotFoundError('vllm._C')"], None),
        (["ValueError: of another process"], None),
        (["(EngineCore pid=7) \x1b[31mERROR 11 [c.py:1]\x1b[0m AssertionError"], "AssertionError"),
        (["(EngineCore_DP0 pid=7) torch.distributed.DistStoreTimeout: x"], "x"),
        (["(EngineCore pid=7) KeyError: 1", "(Worker pid=8) RuntimeError: cancelled"], "1"),
        ([], None),
    ],
)
@pytest.mark.parametrize(
    "name", [f"worker-{OURS}-02000000-7.out", f"old/worker-{OURS}-02000000-6.err"]
)
def test_the_error_of_an_engine_is_the_first_that_it_or_its_worker_wrote(
    session, lines, expected, name
):
    noise = ["(EngineCore pid=7) ERROR [core.py:1] Traceback (most recent call last):", "x" * 10**5]
    (session / name).write_text("\n".join(noise + lines))
    (session / f"worker-{THEIRS}-01000000-8.out").write_text("(Worker pid=1) OSError: theirs")
    found = engine_error(session, "02000000")
    assert found == expected or found.endswith(f": {expected}")


def test_a_start_takes_away_no_line_of_an_earlier_one(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create()
    for text in ("first", "second"):
        folder.begin_console()
        folder.say(text)
    folder.begin_console()
    kept = {each.name: each.read_text() for each in folder.logs.glob("console*")}
    assert kept == {"console.1.log": "first\n", "console.2.log": "second\n"}


def test_in_a_file_an_evaluation_tells_its_samples_from_time_to_time(tmp_path, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(launcher.time, "monotonic", lambda: now)
    monkeypatch.setattr("sys.stderr", io.StringIO())  # no terminal, so no bar
    monkeypatch.setattr("sys.stdout", shown := io.StringIO())
    path = tmp_path / "console.log"
    path.touch()
    console = _Console(path)
    # 10 samples every 4 s: told after the first 10 s or more, and at the end.
    for done in (10, 20, 30, 40, 50):
        now += 4.0
        with path.open("a") as file:
            file.write(f"samples {done}/50  {50 - done} s left\n")
        console.show()
    told = ["samples 30/50  20 s left", "samples 50/50  0 s left"]
    assert shown.getvalue().splitlines() == told

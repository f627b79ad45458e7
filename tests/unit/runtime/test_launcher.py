"""A folder has one run at a time; Ray's logs are kept with it, and its console file is shown."""

import io
import os

import pytest
from omegaconf import OmegaConf

from recipe.run import launcher
from recipe.run.errors import ConfigError
from recipe.run.launcher import engine_error, keep_logs
from recipe.run.reporter import Console
from recipe.run.run_folder import RunFolder
from recipe.run.whole_file import claimed

OURS, THEIRS = "a" * 56, "b" * 56


@pytest.fixture
def session(tmp_path):
    """Ray's folder on a machine where two jobs have run."""
    folder = tmp_path / "session/logs"
    (folder / "old").mkdir(parents=True)
    for name in (
        f"worker-{OURS}-02000000-7.out",
        f"old/worker-{OURS}-02000000-6.err",
        f"worker-{THEIRS}-01000000-8.out",
        "raylet.out",
    ):
        (folder / name).write_text(name)
    return folder


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


def test_of_a_cluster_that_others_use_only_files_of_the_job_are_kept(session, tmp_path):
    def kept(job):
        target = tmp_path / f"kept-{job}"
        keep_logs(session, target, job)
        return {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}

    ours = {f"worker-{OURS}-02000000-7.out", f"old/worker-{OURS}-02000000-6.err"}
    assert kept("02000000") == ours
    assert kept("") == {*ours, f"worker-{THEIRS}-01000000-8.out", "raylet.out"}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["(EngineCore pid=7) ERROR 11-26 02:27 [core.py:1374] ValueError: No memory"],
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


def test_an_evaluation_tells_its_samples_from_time_to_time(tmp_path, monkeypatch):
    now = 1000.0
    monkeypatch.setattr("recipe.run.reporter.time.monotonic", lambda: now)
    monkeypatch.setattr("sys.stdout", shown := io.StringIO())
    path = tmp_path / "console.log"
    path.touch()
    console = Console(path)
    # 10 samples every 4 s: told after the first 10 s or more, and at the end.
    for done in (10, 20, 30, 40, 50):
        now += 4.0
        with path.open("a") as file:
            file.write(f"samples {done}/50  {50 - done} s left\n")
        console.show()
    told = ["samples 30/50  20 s left", "samples 50/50  0 s left"]
    assert shown.getvalue().splitlines() == told

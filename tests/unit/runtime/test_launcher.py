"""A folder has one run at a time; Ray's logs are kept with it, and its console file is shown."""

import pytest
from omegaconf import OmegaConf

from recipe.run import launcher
from recipe.run.errors import ConfigError
from recipe.run.launcher import keep_logs
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
    with claimed(tmp_path / ".lock"), pytest.raises(ConfigError, match="in use by another run"):
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


def test_a_start_takes_away_no_line_of_an_earlier_one(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create()
    for text in ("first", "second"):
        folder.begin_console()
        folder.say(text)
    folder.begin_console()
    kept = {each.name: each.read_text() for each in folder.logs.glob("console*")}
    assert kept == {"console.1.log": "first\n", "console.2.log": "second\n"}

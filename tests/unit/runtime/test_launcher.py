"""A folder has one run at a time; its console file is shown, and Ray's processes are watched."""

import signal
import subprocess
import sys
import time

import psutil
import pytest
from omegaconf import OmegaConf

from recipe.run import launcher
from recipe.run.errors import ConfigError, StallError
from recipe.run.launcher import RayServices
from recipe.run.reporter import Console
from recipe.run.run_folder import RunFolder
from recipe.run.whole_file import claimed


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


def test_a_start_shows_its_own_lines_behind_those_of_earlier_ones(tmp_path, capsys):
    folder = RunFolder(tmp_path)
    folder.create()
    for text in ("first", "second"):
        console = Console(folder)
        folder.say(text)
        console.show()
        assert capsys.readouterr().out == f"{text}\n"
    assert folder.console.read_text() == "first\nsecond\n"


SLEEPER = (
    "import ctypes, sys, time; ctypes.CDLL(None).prctl(15, sys.argv[1].encode(), 0, 0, 0); "
    "time.sleep(600)"
)


@pytest.fixture
def raylet():
    """A child of this process with the name of one of Ray's."""
    with subprocess.Popen([sys.executable, "-c", SLEEPER, "raylet"]) as process:
        while psutil.Process(process.pid).name() != "raylet":
            time.sleep(0.01)
        yield process
        process.kill()


def test_a_process_of_rays_that_died_is_named(raylet):
    services = RayServices()
    services.check()
    raylet.kill()
    raylet.wait()
    with pytest.raises(StallError, match="Ray's process raylet died"):
        services.check()


def test_a_process_of_rays_that_stays_stopped_is_named_and_killed_at_the_end(raylet, monkeypatch):
    services = RayServices()
    raylet.send_signal(signal.SIGSTOP)
    while psutil.Process(raylet.pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.01)
    services.check()  # it may go on in a moment
    monkeypatch.setattr(launcher, "_STOPPED_S", -1.0)
    with pytest.raises(StallError, match="Ray's process raylet was stopped"):
        services.check()
    services.shut_down()
    assert raylet.wait(10) == -signal.SIGKILL
